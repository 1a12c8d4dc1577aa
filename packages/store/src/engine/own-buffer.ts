/**
 * Buffers as values: each owns its memory, and what is beyond its end is zero. So a longer one can use the same memory, and a string that
 * grows by small steps is copied seldom.
 */

/** A buffer that grows gets as much again, but not more than this. */
const SPARE_MAX = 1 << 20;

export function ownBuffer(length: number, capacity = length): Buffer {
  return Buffer.from(new ArrayBuffer(capacity), 0, length);
}

export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = ownBuffer(bytes.length);
  copy.set(bytes);
  return copy;
}

/** @param buffer  one that owns its memory; not to be used any more */
export function grown(buffer: Buffer, length: number): Buffer {
  if (length <= buffer.buffer.byteLength) return Buffer.from(buffer.buffer, 0, length);
  const larger = ownBuffer(length, length + Math.min(length, SPARE_MAX));
  larger.set(buffer);
  return larger;
}
