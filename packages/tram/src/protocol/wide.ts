/** Counts beyond 32 bits, in two words: low, high. */
export const WIDE = 4294967296;

export function readWide(words: Int32Array, at: number): number {
  return words[at + 1] * WIDE + (words[at] >>> 0);
}

export function writeWide(words: Int32Array, at: number, value: number): void {
  words[at] = value | 0;
  words[at + 1] = Math.floor(value / WIDE);
}
