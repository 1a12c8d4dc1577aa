/**
 * Ballots: who may lead, and since when. With a member's life it makes a guard, one positive word, so
 * that a permission is checked with one load. The round stands above the member: whoever comes later wins, whatever its number
 * (the paper's ⟨process, counter⟩ lets low processes starve).
 *
 * A ballot is not reused by a member's next life: a granter remembers which incarnation it promised
 * and refuses the same ballot to another.
 */
import { RETIRED } from '../memory/contract.js';
import { assert } from './assert.js';

export const MEMBERS_MAX = 7;
const MEMBER_BITS = 3;

/** A life's share of a guard: incarnations modulo this. */
const LIFE_BITS = 3;
const LIVES = 1 << LIFE_BITS;

/** Below every ballot. */
export const NO_BALLOT = 0;

export function makeBallot(round: number, member: number): number {
  const ballot = round * (1 << MEMBER_BITS) + member;
  assert(
    round > 0 && ballot < BALLOT_END,
    'ballots leave room for a life in a guard below RETIRED',
  );
  return ballot;
}

/**
 * What a member permits when it promises `ballot`, and what a log's marker says: the ballot and the
 * life of the member itself, so that nothing meant for one of its lives counts in the next.
 */
export function guardOf(ballot: number, incarnation: number): number {
  return (ballot << LIFE_BITS) | (incarnation & (LIVES - 1));
}

export function ballotOf(guard: number): number {
  return guard >> LIFE_BITS;
}

export function isOfLife(guard: number, incarnation: number): boolean {
  return (guard & (LIVES - 1)) === (incarnation & (LIVES - 1));
}

const BALLOT_END = RETIRED >> LIFE_BITS;

export function roundOf(ballot: number): number {
  return ballot >> MEMBER_BITS;
}

export function memberOf(ballot: number): number {
  return ballot & ((1 << MEMBER_BITS) - 1);
}

export function describeBallot(ballot: number): string {
  return `${roundOf(ballot)}.${memberOf(ballot)}`;
}
