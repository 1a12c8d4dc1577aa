/**
 * Keys: what a member's memory permits. A member makes a fresh one with every promise and tells it in
 * its grant, so that nothing written under an earlier promise, or for an earlier life of the member,
 * ever counts. One word: the life (modulo 2¹⁴) above a count of promises (modulo 2¹⁶ - 1, from 1 on).
 */

import { OPEN } from '../memory/contract.js';

const LIFE_SHIFT = 16;
const LIFE_MASK = 0x3fff;
const PROMISES = 0xffff;

export function keyOf(incarnation: number, promise: number): number {
  return ((incarnation & LIFE_MASK) << LIFE_SHIFT) | ((promise % PROMISES) + 1);
}

/** No life made the key in memory that was never written to. */
export function isOfLife(key: number, incarnation: number): boolean {
  return key !== OPEN && key >> LIFE_SHIFT === (incarnation & LIFE_MASK);
}
