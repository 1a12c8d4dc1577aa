/**
 * Has a group lost its state for good? A pure rule over the rows of its members. Operators end a cluster and remove its
 * memory on this word, so it must never be taken back. It is said in two cases:
 *
 * 1. More than f members have lost their memory and follow no leader yet. Each of them waits for f+1 others that have not,
 *    and there are at most f. (A member that follows a leader, and fetches what it lacks, may yet become a full member.)
 * 2. All members run, and no log that a candidate can adopt continues what some member has delivered. A log *lacks* the
 *    state if it starts after everything that any member has delivered. A log that does not lack it can be adopted if f+1
 *    members have logs that are no newer, or do not lack it either. If there is none, every candidate adopts a log that
 *    lacks the state, and waits for entries that no member has: no member delivers, none leads, and no log changes.
 *
 * Rows are read one after the other, and a member that hangs has an old one. So both looks of `StateLoss` must find the
 * same, with the same incarnations, and every member must have been heard from in between.
 *
 * The rule may miss a loss: if a log that does not lack the state is of the newest ballot but shorter than others of that
 * ballot, it is never adopted, and rows do not tell.
 */
import { NO_BALLOT } from './ballot.js';
import type { Peer } from './row.js';

/** What the row of a running member tells; `Peer` has it. */
export type Standing = Pick<
  Peer,
  'incarnation' | 'beats' | 'normal' | 'promised' | 'logBallot' | 'delivered' | 'needs'
>;

/** @param members  all members of a group; undefined: it does not run, or nothing is known of it */
export function isStateLost(members: readonly (Standing | undefined)[]): boolean {
  const quorum = (members.length >> 1) + 1;
  const running = members.filter((member) => member !== undefined);
  const normal = running.filter((member) => member.normal);
  const forgotten = running.filter((member) => !member.normal && member.promised === NO_BALLOT);
  if (forgotten.length >= quorum) return true;
  if (normal.length + forgotten.length < members.length) return false;
  const delivered = Math.max(...normal.map((member) => member.delivered));
  const lacks = ({ needs }: Standing): boolean => needs > delivered;
  const canBeAdopted = ({ logBallot }: Standing): boolean =>
    normal.filter((other) => !lacks(other) || other.logBallot <= logBallot).length >= quorum;
  return !normal.some((member) => !lacks(member) && canBeAdopted(member));
}

/** How many heartbeats of a member must arrive between two looks. What was on its way at the first look does not count. */
const BEATS = 2;

/** Looks at one group again and again. */
export class StateLoss {
  /** What the first look that found it lost has seen of each member. */
  private first: (Pick<Standing, 'incarnation' | 'beats'> | undefined)[] | undefined;

  /** True once the state is lost for good. */
  look(members: readonly (Standing | undefined)[]): boolean {
    if (!isStateLost(members)) {
      this.first = undefined;
      return false;
    }
    const { first } = this;
    const isSame = members.every(
      (member, place) => member?.incarnation === first?.[place]?.incarnation,
    );
    if (first === undefined || !isSame) {
      this.first = members.map(
        (member) => member && { incarnation: member.incarnation, beats: member.beats },
      );
      return false;
    }
    return members.every(
      (member, place) => member === undefined || member.beats >= first[place]!.beats + BEATS,
    );
  }
}
