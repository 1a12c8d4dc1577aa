/**
 * Ballots: who may lead, and since when. One positive word, so that a marker can't tear. The round
 * stands above the member: whoever comes later wins, whatever its number (the paper's ⟨process,
 * counter⟩ lets low processes starve).
 *
 * A ballot is not reused by a member's next life: a granter remembers which incarnation it promised
 * and refuses the same ballot to another.
 */
import { RETIRED } from '../../memory/contract.js';
import { assert } from '../assert.js';

const MEMBER_BITS = 3;

/** Below every ballot. */
export const NO_BALLOT = 0;

export function makeBallot(round: number, member: number): number {
  const ballot = round * (1 << MEMBER_BITS) + member;
  assert(round > 0 && ballot < RETIRED, 'ballots are positive words');
  return ballot;
}

export function roundOf(ballot: number): number {
  return ballot >> MEMBER_BITS;
}

export function memberOf(ballot: number): number {
  return ballot & ((1 << MEMBER_BITS) - 1);
}

export function describeBallot(ballot: number): string {
  return `${roundOf(ballot)}.${memberOf(ballot)}`;
}
