/** What the clients of `tram-lab bench peers` send, and that they read answers however these are cut into pieces. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeFields,
  encodeField,
  encodeFrame,
  encodeGrpc,
  encodeHeaders,
  encodePut,
  encodePuts,
  FrameReader,
} from '../../../src/bench/peers/etcd-wire.js';
import { encodePublish, encodeSubscribe, NatsReader } from '../../../src/bench/peers/nats-wire.js';
import {
  encodeCommand,
  type Reply,
  ReplyReader,
  RespError,
} from '../../../src/bench/peers/resp.js';

/** The same bytes in pieces, cut anywhere. */
function pieces(bytes: Buffer): fc.Arbitrary<Buffer[]> {
  return fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 }).map((cuts) => {
    const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
    return at.slice(1).map((end, i) => Buffer.from(bytes.subarray(at[i], end)));
  });
}

function heardFrom(
  chunks: readonly Buffer[],
  reader: (heard: unknown[]) => { push(chunk: Buffer): void },
): unknown[] {
  const heard: unknown[] = [];
  const pushed = reader(heard);
  for (const chunk of chunks) pushed.push(chunk);
  return heard;
}

function expectSame(
  bytes: Buffer,
  expected: readonly unknown[],
  reader: (heard: unknown[]) => { push(chunk: Buffer): void },
): void {
  fc.assert(
    fc.property(pieces(bytes), (chunks) => {
      expect(heardFrom(chunks, reader)).toEqual(expected);
    }),
  );
}

describe('Redis', () => {
  test('a command is an array of strings', () => {
    expect(encodeCommand('XADD', 's', Uint8Array.of(0, 13, 10)).toString('latin1')).toBe(
      '*3\r\n$4\r\nXADD\r\n$1\r\ns\r\n$3\r\n\0\r\n\r\n',
    );
  });

  test('replies are read, however they arrive', () => {
    const bytes = Buffer.from(
      '+OK\r\n:17\r\n:-1\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n-ERR no\r\n*3\r\n+QUEUED\r\n*1\r\n:2\r\n-ERR in\r\n*0\r\n*-1\r\n',
    );
    const expected: Reply[] = [
      ...['OK', 17, -1, 'a\r\nbc', '', null, new RespError('ERR no')],
      ...[['QUEUED', [2], new RespError('ERR in')], [], null],
    ];
    expectSame(bytes, expected, (heard) => new ReplyReader((reply) => heard.push(reply)));
  });

  test('what is no reply is refused', () => {
    expect(() => new ReplyReader(() => {}).push(Buffer.from('HTTP/1.1\r\n'))).toThrow('byte 72');
  });
});

describe('NATS', () => {
  test('a publish names where its acknowledgement goes', () => {
    expect(encodePublish('shard-1', '_INBOX.1.7', Buffer.from('hello')).toString()).toBe(
      'PUB shard-1 _INBOX.1.7 5\r\nhello\r\n',
    );
    expect(encodeSubscribe('_INBOX.1.*', 1)).toBe('SUB _INBOX.1.* 1\r\n');
  });

  test('what the server says is read, however it arrives', () => {
    const bytes = Buffer.from(
      'INFO {"a":1}\r\nPONG\r\nMSG _INBOX.1.7 1 6\r\nab\r\ncd\r\nPING\r\nMSG a 1 b 0\r\n\r\n+OK\r\n' +
        "HMSG _INBOX.1.8 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nHMSG x 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n-ERR 'no'\r\n",
    );
    const expected = [
      ...['pong', ['_INBOX.1.7', 'ab\r\ncd', undefined], 'ping', ['a', '', undefined]],
      ...[['_INBOX.1.8', '', 'NATS/1.0 503'], ['x', 'hi', 'NATS/1.0'], "error 'no'"],
    ];
    expectSame(
      bytes,
      expected,
      (heard) =>
        new NatsReader({
          message: ({ subject, payload, status }) =>
            heard.push([subject, payload.toString(), status]),
          ping: () => heard.push('ping'),
          pong: () => heard.push('pong'),
          error: (text) => heard.push(`error ${text}`),
        }),
    );
  });
});

describe('etcd', () => {
  test('a put and a transaction of puts', () => {
    const put = encodePut('k', Buffer.from('vw'));
    expect(put.toString('hex')).toBe(`0a016b${'1202'}7677`);
    // success = 2 { request_put = 2 { … } }, once for each
    expect(encodePuts([put, put]).toString('hex')).toBe(`12091207${put.toString('hex')}`.repeat(2));
    expect(encodeGrpc(put).toString('hex')).toBe(`0000000007${put.toString('hex')}`);
  });

  test('fields are read back', () => {
    const long = Buffer.alloc(300, 7);
    const id = Buffer.from([2 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    const fields = decodeFields(Buffer.concat([encodeField(1, long), id, encodeField(20, id)]));
    expect(fields.get(1)).toEqual(long);
    expect(fields.get(2)).toBe(2n ** 64n - 1n);
    expect(fields.get(20)).toEqual(id);
    expect(() => decodeFields(Buffer.from([8]))).toThrow('ends too early');
    expect(() => decodeFields(Buffer.from([13, 0]))).toThrow('unknown kind 5');
  });

  test('headers are literals that no table keeps', () => {
    expect(encodeHeaders({ te: 'trailers' }).toString('latin1')).toBe('\0\x02te\x08trailers');
    expect(() => encodeHeaders({ te: 'x'.repeat(127) })).toThrow('too long');
  });

  test('frames are read, however they arrive', () => {
    const bytes = Buffer.concat([
      encodeFrame(4, 1, 0, Buffer.alloc(0)),
      encodeFrame(0, 1, 5, Buffer.from('abc')),
      encodeFrame(1, 4, 2 ** 31 - 1, Buffer.alloc(70_000, 'x')),
    ]);
    const expected = [
      [4, 1, 0, ''],
      [0, 1, 5, 'abc'],
      [1, 4, 2 ** 31 - 1, 'x'.repeat(70_000)],
    ];
    expectSame(
      bytes,
      expected,
      (heard) =>
        new FrameReader((type, flags, stream, content) =>
          heard.push([type, flags, stream, content.toString()]),
        ),
    );
  });
});
