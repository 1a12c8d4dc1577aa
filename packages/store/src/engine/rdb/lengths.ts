/** Lengths as RDB files and dumps have them: the first byte tells how many bytes follow, the highest first. */

/** The first byte of a text that is an integer of 1, 2 or 4 bytes, or that LZF has compressed. */
export const INTEGER_HEADS: readonly number[] = [0xc0, 0xc1, 0xc2];
export const LZF_HEAD = 0xc3;

/** What LZF makes of so many bytes at most: three of them repeat up to 264. */
export const LZF_EXPANSION_MAX = 88;

/** @returns how many bytes the length has that begins with `head`; 0: it is not the beginning of a length */
export function lengthBytes(head: number): number {
  if (head < 0x40) return 1;
  if (head < 0x80) return 2;
  if (head === 0x80) return 5;
  return head === 0x81 ? 9 : 0;
}

/** All bytes of the length have to be there. Lengths of 64 bits are rounded: nothing is as long. */
export function lengthAt(bytes: Buffer, at: number): number {
  const head = bytes[at];
  if (head < 0x40) return head;
  if (head < 0x80) return ((head & 0x3f) << 8) | bytes[at + 1];
  if (head === 0x80) return bytes.readUInt32BE(at + 1);
  return Number(bytes.readBigUInt64BE(at + 1));
}
