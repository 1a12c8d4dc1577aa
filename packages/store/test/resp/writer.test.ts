import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDouble, parseDouble } from '../../src/resp/number.js';
import { readReply } from '../../src/resp/reader.js';
import {
  BigNumber,
  BooleanReply,
  Double,
  ErrorReply,
  MapReply,
  NullArray,
  OK,
  Pairs,
  Push,
  type Reply,
  SetReply,
  Simple,
  Verbatim,
} from '../../src/resp/reply.js';
import { type Protocol, ReplyWriter } from '../../src/resp/writer.js';

function written(reply: Reply, protocol: Protocol): string {
  const writer = new ReplyWriter(8);
  writer.write(reply, protocol);
  return writer.written().toString('latin1');
}

describe('replies in RESP 2 and 3', () => {
  it.each<[Reply, string, string]>([
    [0, ':0\r\n', ':0\r\n'],
    [-12, ':-12\r\n', ':-12\r\n'],
    [123_456, ':123456\r\n', ':123456\r\n'],
    [2 ** 40, ':1099511627776\r\n', ':1099511627776\r\n'],
    [2n ** 63n - 1n, ':9223372036854775807\r\n', ':9223372036854775807\r\n'],
    ['', '$0\r\n\r\n', '$0\r\n\r\n'],
    ['a\r\n\xff', '$4\r\na\r\n\xff\r\n', '$4\r\na\r\n\xff\r\n'],
    [null, '$-1\r\n', '_\r\n'],
    [NullArray.instance, '*-1\r\n', '_\r\n'],
    [OK, '+OK\r\n', '+OK\r\n'],
    [new Simple('a\r\nb'), '+a  b\r\n', '+a  b\r\n'],
    [new ErrorReply('ERR a\r\nb'), '-ERR a  b\r\n', '-ERR a  b\r\n'],
    [[1, ['a']], '*2\r\n:1\r\n*1\r\n$1\r\na\r\n', '*2\r\n:1\r\n*1\r\n$1\r\na\r\n'],
    [new Double(3.3), '$18\r\n3.2999999999999998\r\n', ',3.2999999999999998\r\n'],
    [new Double(Infinity), '$3\r\ninf\r\n', ',inf\r\n'],
    [new Pairs([['a', 1]]), '*2\r\n$1\r\na\r\n:1\r\n', '*1\r\n*2\r\n$1\r\na\r\n:1\r\n'],
    [new MapReply([['a', 1]]), '*2\r\n$1\r\na\r\n:1\r\n', '%1\r\n$1\r\na\r\n:1\r\n'],
    [new SetReply(['a']), '*1\r\n$1\r\na\r\n', '~1\r\n$1\r\na\r\n'],
    [new Push(['a']), '*1\r\n$1\r\na\r\n', '>1\r\n$1\r\na\r\n'],
    [new Verbatim('a'), '$1\r\na\r\n', '=5\r\ntxt:a\r\n'],
    [new Verbatim('a', 'mkd'), '$1\r\na\r\n', '=5\r\nmkd:a\r\n'],
    [new BooleanReply(true), ':1\r\n', '#t\r\n'],
    [new BooleanReply(false), ':0\r\n', '#f\r\n'],
    [new BigNumber('1\r\n2'), '$4\r\n1\r\n2\r\n', '(1  2\r\n'],
  ])('%o', (reply, resp2, resp3) => {
    expect(written(reply, 2)).toBe(resp2);
    expect(written(reply, 3)).toBe(resp3);
  });
});

describe('doubles', () => {
  it.each([
    [3.3, '3.2999999999999998'],
    [1e-5, '1.0000000000000001e-05'],
    [1e300, '1.0000000000000001e+300'],
    [0.0001, '0.0001'],
    [0.5, '0.5'],
    [-0, '-0'],
    [1e16, '10000000000000000'],
    [1e17, '1e+17'],
    [1.5e17, '1.5e+17'],
    [-Infinity, '-inf'],
    [Number.NaN, 'nan'],
    [5e-324, '4.9406564584124654e-324'],
  ])('%d', (value, text) => {
    expect(formatDouble(value)).toBe(text);
    expect(parseDouble(text)).toBe(value);
  });

  it('come back as they were', () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        expect(parseDouble(formatDouble(value))).toBe(value);
      }),
    );
  });
});

const bytes = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 80,
});
const line = fc.string({ unit: fc.constantFrom('a', 'B', ' ', '!'), maxLength: 10 });
const { reply: anyReply } = fc.letrec<{ reply: Reply }>((tie) => ({
  reply: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    bytes,
    fc.maxSafeInteger().map((value) => value + 0),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
    fc.constant(null),
    line.map((text) => new Simple(text)),
    line.map((text) => new ErrorReply(text)),
    fc.double({ noNaN: true }).map((value) => new Double(value)),
    bytes.map((text) => new Verbatim(text)),
    fc.boolean().map((value) => new BooleanReply(value)),
    fc.bigInt().map((value) => new BigNumber(String(value))),
    fc.array(tie('reply'), { maxLength: 4 }),
    fc.array(tie('reply'), { maxLength: 4 }).map((members) => new SetReply(members)),
    fc.array(tie('reply'), { maxLength: 4 }).map((items) => new Push(items)),
    fc
      .array(fc.tuple(tie('reply'), tie('reply')), { maxLength: 4 })
      .map((entries) => new MapReply(entries)),
  ),
}));

describe('the reader', () => {
  it('reads what the writer has written as RESP 3', () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        expect(readReply(Buffer.from(written(reply, 3), 'latin1'))).toEqual(reply);
      }),
      { numRuns: 1000 },
    );
  });

  it('reads what the writer has written as RESP 2, which has fewer types', () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        const text = written(reply, 2);
        expect(written(readReply(Buffer.from(text, 'latin1')), 2)).toBe(text);
      }),
    );
    expect(readReply(Buffer.from('*-1\r\n'))).toBe(NullArray.instance);
  });

  it('says so if a reply is not whole, or none', () => {
    expect(() => readReply(Buffer.from('$5\r\nab'))).toThrow('not whole');
    expect(() => readReply(Buffer.from('+OK'))).toThrow('not whole');
    expect(() => readReply(Buffer.from('x\r\n'))).toThrow('not a reply');
  });
});

describe('the writer', () => {
  it('gives away its buffer, and begins with another one', () => {
    const writer = new ReplyWriter();
    writer.write('a', 2);
    const taken = writer.take();
    writer.write('b', 2);
    expect(taken.toString('latin1')).toBe('$1\r\na\r\n');
    expect(writer.written().toString('latin1')).toBe('$1\r\nb\r\n');
  });

  it('writes bytes that are RESP already', () => {
    const writer = new ReplyWriter(4);
    for (const length of [3, 33, 5000]) {
      writer.clear();
      writer.writeRaw(Buffer.alloc(length, 'x'));
      expect(writer.written().toString('latin1')).toBe('x'.repeat(length));
    }
  });
});
