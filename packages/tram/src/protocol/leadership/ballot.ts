/**
 * Ballots: (round, member), which order the attempts to lead. A ballot is one positive word, so that a marker can't tear.
 * The round is above the member: a later attempt wins, whichever member makes it. (With the paper's ⟨process, counter⟩,
 * processes with low numbers can starve.)
 *
 * Two incarnations of a member do not share a ballot: a granter remembers which incarnation it promised, and refuses the
 * same ballot to another.
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
