/** Values that JSON keeps pass; values that it would change are refused, with their path. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesCodec, jsonCodec } from '../src/codec.js';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

describe('JSON', () => {
  test('keeps every JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (any) => {
        // JSON has no -0.
        const value: unknown = JSON.parse(JSON.stringify(any));
        expect(jsonCodec.decode(jsonCodec.encode(any))).toEqual(value);
      }),
    );
  });

  test('is no bytes for undefined', () => {
    expect(jsonCodec.encode(undefined)).toHaveLength(0);
    expect(jsonCodec.decode(new Uint8Array(0))).toBeUndefined();
  });

  test('leaves out properties that are undefined', () => {
    expect(jsonCodec.encode({ a: undefined, b: 1 })).toEqual(text('{"b":1}'));
  });

  test('accepts objects without a prototype', () => {
    expect(jsonCodec.encode(Object.assign(Object.create(null), { a: 1 }))).toEqual(text('{"a":1}'));
  });

  const loop: unknown[] = [];
  loop.push(loop);

  test.each<[unknown, string]>([
    [new Map(), 'a Map'],
    [new Set(), 'a Set'],
    [new Date(0), 'a Date'],
    [1n, 'a bigint'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [() => 1, 'a function'],
    [Symbol('s'), 'a symbol'],
    [new Uint8Array(1), 'a Uint8Array: use bytesCodec for bytes'],
    [{ items: [1, { at: new Date(0) }] }, 'a Date, at .items[1].at'],
    [{ bytes: new Uint8Array(1) }, 'a Uint8Array, at .bytes'],
    [[1, undefined], 'undefined, at [1]'],
    // biome-ignore lint/suspicious/noSparseArray: that is the case
    [[, 1], 'undefined, at [0]'],
    [Promise.resolve(), 'a Promise'],
  ])('refuses %s', (value, what) => {
    expect(() => jsonCodec.encode(value)).toThrow(new TypeError(`JSON can't represent ${what}`));
  });

  test('refuses a value that contains itself', () => {
    expect(() => jsonCodec.encode(loop)).toThrow(
      /^JSON can't represent a value that contains itself/,
    );
  });

  test.each([
    ['text that is cut off', text('{"a":')],
    ['bytes that are no text', Uint8Array.of(0xff)],
  ])('does not decode %s', (_, bytes) => {
    expect(() => jsonCodec.decode(bytes)).toThrow(
      new TypeError(`${bytes.length} bytes are not JSON`),
    );
  });
});

test('bytes pass as they are, and nothing else does', () => {
  const bytes = Uint8Array.of(1, 2);
  expect(bytesCodec.encode(bytes)).toBe(bytes);
  expect(bytesCodec.decode(bytes)).toEqual(bytes);
  expect(() => bytesCodec.encode('text' as never)).toThrow('must be a Uint8Array, not a string');
});
