/** Sets of groups as two bit masks, low and high (`protocol/overlay.ts`): size and iteration without allocation. */

export function sizeOf(low: number, high: number): number {
  return bitsOf(low) + bitsOf(high);
}

/** The next member after `group`, or -1. Start with -1. */
export function memberAfter(low: number, high: number, group: number): number {
  const next = group + 1;
  if (next < 32) {
    const rest = (low >>> next) << next;
    if (rest !== 0) return lowest(rest);
  }
  const from = next < 32 ? 0 : next - 32;
  const rest = from < 32 ? (high >>> from) << from : 0;
  return rest === 0 ? -1 : 32 + lowest(rest);
}

function lowest(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

function bitsOf(mask: number): number {
  const pairs = mask - ((mask >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
