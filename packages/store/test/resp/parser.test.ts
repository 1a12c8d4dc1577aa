import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitWords } from '../../src/resp/inline.js';
import { copyOf, ProtocolError, RequestParser } from '../../src/resp/parser.js';

const BULK_MAX = 1 << 20;

function parserFor(authenticated = true): RequestParser {
  const parser = new RequestParser({ bulkBytesMax: BULK_MAX, requestBytesMax: 4 * BULK_MAX });
  parser.authenticated = authenticated;
  return parser;
}

/** All requests in these pieces. */
function requestsIn(pieces: readonly (string | Buffer)[], parser = parserFor()): string[][] {
  const requests: string[][] = [];
  for (const piece of pieces) {
    parser.feed(Buffer.from(piece as string, 'latin1'));
    while (parser.next()) requests.push([parser.name, ...parser.args]);
  }
  return requests;
}

function encoded(request: readonly string[]): string {
  return `*${request.length}\r\n${request.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

function errorOf(text: string, parser = parserFor()): string | undefined {
  try {
    requestsIn([text], parser);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ProtocolError);
    return (error as Error).message;
  }
}

const bytes = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 60,
});

describe('requests', () => {
  it('come out the same, however their bytes are split', () => {
    const request = fc.array(bytes, { minLength: 1, maxLength: 5 });
    const splits = fc.array(fc.nat(), { maxLength: 8 });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 6 }), splits, (requests, splits) => {
        const text = requests.map(encoded).join('');
        const places = splits.map((split) => split % (text.length + 1)).sort((a, b) => a - b);
        const pieces = [...places, text.length].map((to, i) =>
          text.slice(i ? places[i - 1] : 0, to),
        );
        expect(requestsIn(pieces)).toEqual(requests);
      }),
      { numRuns: 500 },
    );
  });

  it('come out the same, byte by byte', () => {
    const requests = [['SET', 'k', '\r\n$1\r\n'], ['GET', ''], ['a']];
    const pieces = [...requests.map(encoded).join('')];
    expect(requestsIn(pieces)).toEqual(requests);
  });

  it('may be large, and come in many pieces', () => {
    const value = 'v'.repeat(BULK_MAX);
    const text = encoded(['SET', 'k', value]) + encoded(['GET', 'k']);
    const pieces: string[] = [];
    for (let at = 0; at < text.length; at += 10_007) pieces.push(text.slice(at, at + 10_007));
    const parser = parserFor();
    expect(requestsIn(pieces, parser)).toEqual([
      ['SET', 'k', value],
      ['GET', 'k'],
    ]);
    expect(parser.heldBytes).toBe(0);
  });

  it('with no arguments are skipped', () => {
    expect(requestsIn(['*0\r\n*-5\r\n\r\n\n  \r\nPING\r\n'])).toEqual([['PING']]);
  });

  it('end their arguments with any two bytes', () => {
    expect(requestsIn(['*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n'])).toEqual([['PING'], ['PING']]);
  });

  it('are held until they are whole', () => {
    const parser = parserFor();
    expect(requestsIn(['*2\r\n$3\r\nGET\r\n$10\r\nabc'], parser)).toEqual([]);
    expect(parser.heldBytes).toBeGreaterThan(0);
  });
});

describe('protocol errors', () => {
  it.each([
    ['*abc\r\n', 'invalid multibulk length'],
    ['*\r\n', 'invalid multibulk length'],
    ['*+1\r\n', 'invalid multibulk length'],
    ['*01\r\n', 'invalid multibulk length'],
    ['*2147483648\r\n', 'invalid multibulk length'],
    ['*99999999999999999999999\r\n', 'invalid multibulk length'],
    ['*1\r\n+3\r\n', "expected '$', got '+'"],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$03\r\n', 'invalid bulk length'],
    [`*1\r\n$${BULK_MAX + 1}\r\n`, 'invalid bulk length'],
    ['set "a\r\n', 'unbalanced quotes in request'],
    ['x'.repeat(65_537), 'too big inline request'],
    [`*${'1'.repeat(65_537)}`, 'too big mbulk count string'],
    [`*1\r\n$${'1'.repeat(65_537)}`, 'too big bulk count string'],
  ])('%j', (text, message) => {
    expect(errorOf(text.slice(0, 70_000))).toBe(message);
  });

  it('limit what an unknown client may send', () => {
    expect(errorOf('*10\r\n', parserFor(false))).toBeUndefined();
    expect(errorOf('*11\r\n', parserFor(false))).toBe('unauthenticated multibulk length');
    expect(errorOf('*1\r\n$16384\r\n', parserFor(false))).toBeUndefined();
    expect(errorOf('*1\r\n$16385\r\n', parserFor(false))).toBe('unauthenticated bulk length');
  });

  it('limit all arguments of a request together', () => {
    const request = encoded(Array.from({ length: 5 }, () => 'x'.repeat(BULK_MAX)));
    expect(errorOf(request)).toBe('too big request');
  });

  it('do not come before the line is whole', () => {
    expect(errorOf('*abc')).toBeUndefined();
    expect(errorOf('*abc\r')).toBeUndefined();
  });

  it('are the only errors, whatever comes', () => {
    const parts = fc.constantFrom(
      '*',
      '$',
      '1',
      '2',
      '\r\n',
      '\r',
      '\n',
      '-',
      'x',
      '"',
      "'",
      ' ',
      '\\',
    );
    fc.assert(
      fc.property(fc.array(fc.array(fc.oneof(parts, bytes)), { maxLength: 5 }), (pieces) => {
        errorOf(pieces.map((piece) => piece.join('')).join(''));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('inline commands', () => {
  it.each([
    ['get a', ['get', 'a']],
    ['  set\t a   b ', ['set', 'a', 'b']],
    ['set a "x y"', ['set', 'a', 'x y']],
    ['set a "\\x41\\n\\"\\q\\xzz"', ['set', 'a', 'A\n"qxzz']],
    ["set a 'it\\'s \\n'", ['set', 'a', "it's \\n"]],
    ['""', ['']],
    ['a"b"', ['ab']],
    ['a\0b c', ['a']],
    ['"a"b', undefined],
    ["'a", undefined],
    ['"a\\', undefined],
  ])('%j', (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});

it('copyOf keeps the bytes', () => {
  fc.assert(
    fc.property(bytes, (value) => {
      expect(copyOf(value)).toBe(value);
    }),
  );
});
