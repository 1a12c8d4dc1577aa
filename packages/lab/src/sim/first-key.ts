/** The first key of an incarnation, for simulated and explored members: later than all keys of earlier incarnations. */

/** More keys than one incarnation makes. */
const KEYS_MAX = 0x10000;

export function firstKeyOf(incarnation: number): number {
  return incarnation * KEYS_MAX;
}
