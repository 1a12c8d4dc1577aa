/** LZF, in which Redis compresses long strings of dumps: runs of bytes, and repetitions of what was there before. */

import { LZF_EXPANSION_MAX } from './lengths.js';

/** @param length  of what was compressed */
export function decompressed(bytes: Buffer, length: number): Buffer {
  const require = (isGood: boolean) => {
    if (!isGood) throw new RangeError('not what LZF writes');
  };
  // Before the memory for it is taken.
  require(length <= bytes.length * LZF_EXPANSION_MAX);
  const out = Buffer.alloc(length);
  let from = 0;
  let to = 0;
  while (from < bytes.length) {
    const control = bytes[from++];
    if (control < 32) {
      const run = control + 1;
      require(from + run <= bytes.length && to + run <= length);
      bytes.copy(out, to, from, from + run);
      from += run;
      to += run;
      continue;
    }
    let repeated = (control >> 5) + 2;
    if (repeated === 9) repeated += bytes[from++];
    const back = to - ((control & 31) << 8) - bytes[from++] - 1;
    require(back >= 0 && to + repeated <= length);
    // Byte by byte: the repetition may reach into itself.
    for (let i = 0; i < repeated; i++) out[to++] = out[back + i];
  }
  require(to === length);
  return out;
}
