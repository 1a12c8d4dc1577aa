/**
 * Hands snapshots to the journal of the host. The replica calls `step` in every step. When the journal wants a snapshot,
 * the first member of the group on this host that notices takes one, and hands it over chunk by chunk, while deliveries
 * go on and as the journal has room. A member that has fetched a snapshot from another member, because it was left behind,
 * hands over that one: the journal lacks the same entries as the member did.
 *
 * A journal that has nothing of the group may have replaced one that was lost. Others still count on what that one had. So it
 * begins with a snapshot of everything that its member may have delivered before: whoever finds the new journal after a
 * power cut may then count on it as on the old one.
 *
 * Invariant: a snapshot is begun only at or after the entry that the journal takes next, so it leaves no gap behind it.
 */
import { extend } from '../../memory/record.js';
import { InvariantError } from '../assert.js';
import type { Application, GroupJournal } from '../edges.js';
import type { Member } from '../member.js';
import { SnapshotTaking } from './snapshot.js';

/** After a failure of the service, it is asked again after so many times the time after which members are suspected. */
const RETRY_FACTOR = 10;

/** The rest of a snapshot that this member hands over. */
interface Handing {
  readonly isDone: boolean;
  take(): Int32Array | undefined;
  close(): void;
}

/** A snapshot that is there already. */
class Fetched implements Handing {
  private at = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly chunkWords: number,
  ) {}

  get isDone(): boolean {
    return this.at === this.words.length;
  }

  take(): Int32Array {
    const end = Math.min(this.at + this.chunkWords, this.words.length);
    const chunk = this.words.subarray(this.at, end);
    this.at = end;
    return chunk;
  }

  close(): void {
    // Nothing is held.
  }
}

export class JournalSnapshots {
  private handing: Handing | undefined;
  private readonly chunkWords: number;
  /** After the service has failed, it is not asked again before this time. */
  private notBeforeUs = Number.NEGATIVE_INFINITY;
  /** No earlier incarnation has delivered an entry from this index on; undefined as long as that is not known. */
  private replacesBelow: number | undefined;

  constructor(
    private readonly member: Member,
    private readonly journal: GroupJournal,
    private readonly application: Application,
  ) {
    this.chunkWords = member.layout.chunkWords;
  }

  /** Begin a snapshot if the journal wants one, or go on with it. Returns how many chunks were handed over. */
  step(nowUs: number): number {
    const { member, journal } = this;
    if (this.handing === undefined && !this.isWanted(nowUs)) return 0;
    if (!journal.hasRoom(this.chunkWords)) return 0;
    try {
      this.handing ??= this.begin();
      return this.handOver(this.handing);
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      this.drop();
      this.notBeforeUs = nowUs + RETRY_FACTOR * member.edges.timing.suspectAfterUs;
      member.edges.observer.snapshotFailed(error);
      return 0;
    }
  }

  private isWanted(nowUs: number): boolean {
    const { member, journal } = this;
    if (!this.mayBegin() || !journal.wantsSnapshot || nowUs < this.notBeforeUs) return false;
    return member.hasState && member.nextToDeliver >= journal.next;
  }

  /** Does a snapshot of this member replace what a lost journal may have had? */
  private mayBegin(): boolean {
    const { member, journal } = this;
    if (journal.next > 0 || member.past === 'none') return true;
    // Once it has recovered, it has delivered all that its earlier incarnations had.
    if (!member.normal) return false;
    this.replacesBelow ??= deliveredBefore(member);
    return member.nextToDeliver >= this.replacesBelow;
  }

  private begin(): Handing {
    const taking = new SnapshotTaking(this.member, this.application, this.chunkWords);
    this.journal.beginSnapshot(taking.index);
    return taking;
  }

  private handOver(handing: Handing): number {
    const chunk = handing.take();
    if (chunk !== undefined) this.journal.addPiece(chunk);
    if (handing.isDone) {
      this.journal.endSnapshot();
      this.handing = undefined;
    }
    // Pieces were pulled, even if they do not fill a chunk yet.
    return 1;
  }

  /** The member is about to restore another state. The service can't go on with its view of this one. */
  drop(): void {
    const { handing } = this;
    if (handing === undefined) return;
    this.handing = undefined;
    this.journal.dropSnapshot();
    handing.close();
  }

  /** The member has restored a snapshot of these words. If the journal lacks entries before it, it goes on from there. */
  restored(words: Int32Array): void {
    const { member, journal } = this;
    if (journal.next >= member.nextToDeliver) return;
    journal.leaveOut();
    // If another member is handing over an earlier one, or there is little room, or it is too old, one will be taken later.
    if (!journal.wantsSnapshot || !this.mayBegin()) return;
    journal.beginSnapshot(member.nextToDeliver);
    this.handing = new Fetched(words, this.chunkWords);
  }
}

/** No entry from this index on was delivered by an earlier incarnation. Its memory tells, if it was kept. */
function deliveredBefore(member: Member): number {
  const log = member.log.current();
  return log === undefined ? member.near : Math.max(member.near, extend(member.near, log.decided));
}
