/**
 * The protocol's decisions that the paper gets wrong, or that our own design could: one method each,
 * named by what it decides. Production has exactly this class. The simulator also has broken ones
 * (`sim/holes.ts`), to show that it would notice; see docs/paper-errata.md.
 */
import { RETIRED } from '../memory/contract.js';
import { framedWords, isChecked, type Window } from '../memory/record.js';
import type { Counters } from './data-path/counters.js';
import { decidedIndex } from './data-path/delivery.js';
import type { Extent, LogRing } from './data-path/log.js';
import type { Replication } from './data-path/replication.js';
import { makeBallot } from './leadership/ballot.js';
import type { SlotReader } from './leadership/slots.js';
import type { Member } from './member.js';

export class Rules {
  // --- taking over ---------------------------------------------------------------------------

  /** The round comes first: whoever tries later outbids everybody before (H17). */
  ballot(round: number, member: number): number {
    return makeBallot(round, member);
  }

  /** A candidate promises itself, and that counts (H7). */
  ownVote(): number {
    return 1;
  }

  /** An attempt ends when its member promises somebody else (H8). */
  isPreempted(member: Member, ballot: number): boolean {
    return member.promised !== ballot;
  }

  /** What a candidate compares answers with: its own ballot, whatever it has promised since (H8). */
  answeredBallot(_member: Member, ballot: number): number {
    return ballot;
  }

  /** A request that nobody answers is made again (H9). */
  asksAgain(): boolean {
    return true;
  }

  /** A request stays where it is; its reader remembers having seen it (H9, H10). */
  requestRead(_member: Member, _slot: SlotReader): void {}

  /** What a member seals is what stands in its memory after the promise (H23). */
  sealedLog(member: Member): LogRing | undefined {
    return member.log.current();
  }

  /** Among logs, a newer ballot wins; among equals, the one that reaches further (H20). */
  isFurther(a: Extent, b: Extent): boolean {
    return a.ballot > b.ballot || (a.ballot === b.ballot && a.endIndex > b.endIndex);
  }

  /** A grant counts only if its granter's life and promise are the same after the last grant (H24). */
  trustsGrantsAsTheyCome(): boolean {
    return false;
  }

  /** The ring at a member that may be overwritten: not the one that holds its current log (H22). */
  spareRing(log: Extent, writer: number): number {
    return log.ballot !== 0 && log.writer === writer ? 1 - log.ring : 0;
  }

  /** A restarted member takes no part before it knows what it had promised (H21). */
  recoversBeforeGranting(): boolean {
    return true;
  }

  /** One that resumes goes on as a member only if it was one: not if it recovered, or was being emptied (H31). */
  isKept(wasMember: boolean, permitted: number): boolean {
    return wasMember && permitted !== RETIRED;
  }

  /** One that resumes keeps the promise that it finds in its memory (H29) … */
  keptPromise(stored: number): number {
    return stored;
  }

  /** … and tells a promise again only to whom this very life made it (H30). */
  tellsAgain(member: Member, candidateIncarnation: number): boolean {
    return candidateIncarnation === member.promisedIncarnation;
  }

  // --- replicating ---------------------------------------------------------------------------

  /** A leader's write counts only while the key that it was granted is permitted (H11, H12). */
  logGuard(key: number): number {
    return key;
  }

  /** A member that promises somebody else leads no longer (H12). */
  stepsDown(member: Member, ballot: number): boolean {
    return member.promised !== ballot;
  }

  /** Members that grant late are brought up as well (H3) … */
  bringsUpLateMembers(): boolean {
    return true;
  }

  /** … with the whole log, all of it under the new ballot (H27). */
  installFrom(replication: Replication, _log: Extent): { index: number; position: number } {
    return { index: replication.baseIndex, position: replication.ring.base };
  }

  /** f+1 members decide; nobody waits for the rest (H16). */
  decisionQuorum(member: Member): number {
    return member.quorum;
  }

  /** A higher promise at a live member must be outbid, or that member is lost to us (H13, H28). */
  outbids(_refused: boolean): boolean {
    return true;
  }

  /** The decided index is published even if no entry follows (H15). */
  publishesWhenIdle(): boolean {
    return true;
  }

  // --- delivering ----------------------------------------------------------------------------

  /** A follower delivers from the log of the ballot it promised … (H2) */
  followedLog(member: Member): LogRing | undefined {
    return member.log.under(member.promised, member.promisedMember);
  }

  /** … what the leader says is decided (H2). */
  decidedIndex(member: Member, log: LogRing): number {
    return decidedIndex(member, log);
  }

  /** A new leader delivers everything it adopted (H1). */
  beforeFirstDelivery(_member: Member, _replication: Replication): void {}

  // --- inboxes -------------------------------------------------------------------------------

  /** Only a record with both its ends is a message … (H19) */
  recordWords(
    window: Window,
    position: number,
    epoch: number,
    number: number,
    wordsMax: number,
  ): number {
    return framedWords(window, position, epoch, number, wordsMax);
  }

  /** … and only if what was copied of it, with this hash, is what its writer put between them (H19). */
  isWhole(
    window: Window,
    position: number,
    words: number,
    epoch: number,
    number: number,
    hash: number,
  ): boolean {
    return isChecked(window, position, words, epoch, number, hash);
  }

  /** A new leader takes from each source what follows in the log, whatever it took earlier (H5, H6). */
  resumeSources(proposed: Counters, delivered: Counters, _member: Member): void {
    proposed.copyFrom(delivered);
  }

  /** Called when the log's entries have been folded in: there is nothing left to correct. */
  sourcesRecovered(_member: Member): void {}

  /** Clients are served in turn: the next round starts after the last one served (H18). */
  nextTurn(last: number, clients: number): number {
    return (last + 1) % clients;
  }

  // --- down the tree -------------------------------------------------------------------------

  /** Forwarding starts again from the log's base: the child says what it has (H4). */
  forwardFrom(replication: Replication, _member: Member): { index: number; position: number } {
    return { index: replication.baseIndex, position: replication.ring.base };
  }

  /** The parent hears what this group has decided, not what its leader has merely taken (H26). */
  countFromParent(member: Member): number {
    return member.delivered.nextFromParent;
  }

  // --- truncating ----------------------------------------------------------------------------

  /** An entry is dropped only once f+1 members have delivered it, whoever seems alive (H25). */
  truncationLimit(liveMinimum: number, deliveredByQuorum: number): number {
    return Math.min(liveMinimum, deliveredByQuorum);
  }
}
