/**
 * Keys: what a member's memory permits. A member makes a fresh one with every promise and tells it in
 * its grant, so that nothing written under an earlier promise, or for an earlier life of the member,
 * ever counts. One word: a life (modulo 2¹⁴) above a count of keys (modulo 2¹⁶ - 1, from 1 on). A life
 * that resumes makes further keys of the life in which its region was last empty.
 */

import { OPEN } from '../../memory/contract.js';

const LIFE_SHIFT = 16;
const LIFE_MASK = 0x3fff;
const KEYS = 0xffff;

export function keyOf(life: number, count: number): number {
  return ((life & LIFE_MASK) << LIFE_SHIFT) | ((count % KEYS) + 1);
}

/** No life made the key in memory that was never written to. */
export function isOfLife(key: number, life: number): boolean {
  return key !== OPEN && key >> LIFE_SHIFT === (life & LIFE_MASK);
}
