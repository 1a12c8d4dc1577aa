/** Values that JSON keeps pass; values that it would change are refused, with their path. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesCodec, jsonCodec, jsonStateCodec } from '../src/codec.js';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

describe('JSON', () => {
  test('keeps every JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (any) => {
        // JSON has no -0.
        const value: unknown = JSON.parse(JSON.stringify(any));
        expect(jsonCodec.decode(jsonCodec.encode(value))).toEqual(value);
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
    [-0, '-0'],
    [{ least: [-0] }, '-0, at .least[0]'],
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

  test('searches an object once, however often it occurs', () => {
    let value: unknown[] = [];
    // 2⁶⁰ ways lead to the innermost one.
    for (let i = 0; i < 60; i++) value = [value, value];
    expect(() => jsonCodec.encode([value, new Map()])).toThrow("can't represent a Map, at [1]");
  });

  test('of a command or a reply may have an object twice', () => {
    const item = { a: 1 };
    expect(jsonCodec.encode([item, item])).toEqual(text('[{"a":1},{"a":1}]'));
  });

  const item = { a: 1 };

  test.each<[string, unknown, string]>([
    [
      'with an object that occurs twice',
      { one: item, other: item },
      'an object that occurs twice, at .other',
    ],
    ['with a property that is undefined', { list: [{ a: undefined }] }, 'undefined, at .list[0].a'],
    ['with a Map', { a: new Map() }, 'a Map, at .a'],
  ])('refuses a state %s', (_, state, what) => {
    expect(() => jsonStateCodec.encode(state)).toThrow(
      new TypeError(`JSON can't represent ${what}`),
    );
  });

  test('keeps every state of JSON values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // A copy has no object twice.
        const state = JSON.parse(JSON.stringify(value));
        expect(jsonStateCodec.decode(jsonStateCodec.encode(state))).toEqual(state);
      }),
    );
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
