/**
 * Keys: what a member's memory permits. A member makes a fresh key with every promise and sends it in its grant, so that
 * nothing that is written under an earlier promise, or for an earlier incarnation of the member, ever counts.
 *
 * Keys are consecutive words. After the last one they begin again, so a key is made twice only if there were 2³¹ others
 * in between. A member whose region is empty begins after the keys of its earlier incarnations (`Identity.firstKey`).
 */
import { OPEN, RETIRED } from '../../memory/contract.js';

/** Neither OPEN nor RETIRED is a key. */
const KEYS = RETIRED - OPEN - 1;

/** The key that comes `count` keys after this one. The first key of all comes one after OPEN. */
export function keyAfter(key: number, count: number): number {
  return ((key + count - 1) % KEYS) + 1;
}

/**
 * Was the key made at the time of `first` or later, and not 2³⁰ keys or more after it? OPEN, which memory holds that was
 * never written, was not.
 */
export function isSince(key: number, first: number): boolean {
  return key !== OPEN && (key - first + KEYS) % KEYS < KEYS / 2;
}
