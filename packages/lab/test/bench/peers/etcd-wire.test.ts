/** The protocols of etcd: requests as sent, frames read however they arrive. */
import { expect, test } from 'vitest';
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
import { expectSame } from './pieces.js';

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

test('headers are literals without indexing', () => {
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
