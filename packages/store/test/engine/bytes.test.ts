/** Byte strings are written and read. */
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../../src/engine/bytes.js';

test.each(['set', 'sex', 'se', 'sets', ''])(
  'a byte string is read as it is, whatever is expected: %s',
  (expected) => {
    const reader = new ByteReader(new ByteWriter().bytes('set').bytes('get').written());
    expect(reader.bytes(expected)).toBe('set');
    expect(reader.bytes(expected)).toBe('get');
    expect(reader.isAtEnd).toBe(true);
  },
);

test.each([0, 1, 32, 33, 5000])('%i raw bytes', (length) => {
  const bytes = Buffer.from(Array.from({ length }, (_, i) => i % 251));
  expect(new ByteWriter().uint8(7).raw(bytes).uint8(9).written()).toEqual(
    Buffer.concat([Buffer.of(7), bytes, Buffer.of(9)]),
  );
});
