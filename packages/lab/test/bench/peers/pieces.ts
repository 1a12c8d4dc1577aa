/** Byte streams that arrive in pieces, for the tests of the readers. */
import fc from 'fast-check';
import { expect } from 'vitest';

/** The same bytes, cut at random places. */
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

/** However the bytes are cut, the reader reports the same. */
export function expectSame(
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
