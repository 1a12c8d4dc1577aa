/**
 * Keys: what a member's memory permits. A member makes a fresh key with every promise and sends it in its grant, so that
 * nothing that is written under an earlier promise, or for an earlier incarnation of the member, ever counts.
 *
 * A key is one word: an incarnation (modulo 2¹⁴) above a count of keys (modulo 2¹⁶ - 1, from 1 on). The incarnation is
 * the one in which the member's region was last empty, also if a later one resumes with that region.
 */

import { OPEN } from '../../memory/contract.js';

const INCARNATION_SHIFT = 16;
const INCARNATION_MASK = 0x3fff;
const KEYS = 0xffff;

export function keyOf(incarnation: number, count: number): number {
  return ((incarnation & INCARNATION_MASK) << INCARNATION_SHIFT) | ((count % KEYS) + 1);
}

/** Was the key made in this incarnation? OPEN, which memory holds that was never written, is of none. */
export function isOfIncarnation(key: number, incarnation: number): boolean {
  return key !== OPEN && key >> INCARNATION_SHIFT === (incarnation & INCARNATION_MASK);
}
