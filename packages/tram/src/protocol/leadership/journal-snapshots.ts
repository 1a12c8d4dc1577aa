/**
 * Hands snapshots to the journal of the host. When the journal wants one, the first member of the group on this host that
 * notices begins it, and hands it over chunk by chunk, while deliveries go on and as the journal has room: the replica calls
 * `step` in every step. A journal that has grown gets a snapshot of any state. A journal that has left entries out gets one
 * of the state right after a mark (`onMark`), so that it fits those of other groups (recoverable.ts).
 *
 * A journal that has nothing of the group may have replaced one that was lost. Others still count on what that one had: entries
 * that some member on this host had delivered. So it begins with a snapshot of everything that was decided before this member
 * began: a recovery that finds the new journal may then count on it as on the old one.
 *
 * Invariant: a snapshot is begun at the entry that the journal takes next, so it leaves no gap. Only one at a mark may be
 * begun after it. (A member may be ahead of the journal: another member of the group on this host hands it the entries.)
 */
import { InvariantError } from '../assert.js';
import type { Application, GroupJournal } from '../edges.js';
import type { Member } from '../member.js';
import type { Rows } from './rows.js';
import { SnapshotTaking } from './snapshot.js';

/** After a failure of the service, it is asked again after so many times the time after which members are suspected. */
const RETRY_FACTOR = 10;

export class JournalSnapshots {
  private handing: SnapshotTaking | undefined;
  private readonly chunkWords: number;
  /** The time of the last step. */
  private nowUs = Number.NEGATIVE_INFINITY;
  /** After the service has failed, it is not asked again before this time. */
  private notBeforeUs = Number.NEGATIVE_INFINITY;
  /** Everything that was decided before this member began is below this index; undefined as long as it is not known. */
  private replacesBelow: number | undefined;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly journal: GroupJournal,
    private readonly application: Application,
  ) {
    this.chunkWords = member.layout.chunkWords;
  }

  /** Begin a snapshot if the journal wants one, or go on with it. Returns how many chunks were handed over. */
  step(nowUs: number): number {
    const { journal } = this;
    this.nowUs = nowUs;
    if (this.handing === undefined && !this.isWanted()) return 0;
    if (!journal.hasRoomForPiece(this.chunkWords)) return 0;
    return this.attempt(() => {
      this.handing ??= this.begin(false);
      return this.handOver(this.handing);
    });
  }

  /**
   * A mark was delivered just now. If the journal has left entries out, begin the snapshot from which it goes on. The pieces
   * find room later.
   * @param isNeeded  take it even if the disk is busy
   */
  onMark(isNeeded: boolean): void {
    const { member, journal } = this;
    if (journal.isBusy && !isNeeded) return;
    if (this.handing !== undefined || !journal.wantsMark || !this.mayBegin()) return;
    if (this.nowUs < this.notBeforeUs) return;
    if (member.nextToDeliver < journal.next) return;
    // Snapshots at earlier marks count now, or never: the journal drops those once it has this one.
    journal.complete(member.completeMark);
    this.attempt(() => {
      this.handing = this.begin(true);
      return 0;
    });
  }

  /** The service may fail. Then the snapshot is dropped, and another one is taken later. */
  private attempt(action: () => number): number {
    const { member } = this;
    try {
      return action();
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      this.drop();
      this.notBeforeUs = this.nowUs + RETRY_FACTOR * member.edges.timing.suspectAfterUs;
      member.edges.observer.snapshotFailed(error);
      return 0;
    }
  }

  private isWanted(): boolean {
    const { member, journal } = this;
    if (!journal.wantsSnapshot || this.nowUs < this.notBeforeUs) return false;
    return member.hasState && member.nextToDeliver === journal.next;
  }

  /** Does a snapshot of this member replace what a lost journal may have had? */
  private mayBegin(): boolean {
    const { member, journal } = this;
    if (journal.next > 0 || member.past === 'none') return true;
    // Once it has recovered, it has delivered all that was decided before it began.
    if (member.past === 'lost') return member.normal;
    this.replacesBelow ??= this.endOfNewLog();
    const hasAll = this.replacesBelow !== undefined && member.nextToDeliver >= this.replacesBelow;
    member.edges.observer.transition(hasAll ? 'journal replaced' : 'new journal waits');
    return hasAll;
  }

  /**
   * Its memory was kept. What this does not show may have been delivered all the same: by another member on this host, or from a
   * log that another one has replaced. So the member waits for a log that has everything that was decided before it began, or has
   * dropped it. Returns where this log ends, or undefined if there is none yet.
   *
   * Such a log was installed since, and its ballot is at least as high as that of every entry that was decided before: f+1
   * members held the entry, and had promised its ballot. One of them is among the f+1 that have promised no higher ballot than
   * that of this log, as their rows have told since. The decided index of a log does not tell as much: before a candidate leads,
   * it is what the candidate has delivered.
   */
  private endOfNewLog(): number | undefined {
    const { member } = this;
    const { promised, promisedMember } = member;
    if (!member.hasPromisedAnew || !this.isHighest(promised)) return undefined;
    const log = member.log.under(promised, promisedMember);
    return log && member.log.extentOf(log, member.near).endIndex;
  }

  /** Have f+1 members, this one included, promised no higher ballot since this member began? */
  private isHighest(ballot: number): boolean {
    const { member, rows } = this;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      const { seen, normal, promised } = rows.peer(other);
      // One that recovers has forgotten what it had promised.
      if (other !== member.index && seen && normal && promised <= ballot) count++;
    }
    return count >= member.quorum;
  }

  private begin(isAtMark: boolean): SnapshotTaking {
    const { member } = this;
    const taking = new SnapshotTaking(member, this.application, this.chunkWords);
    this.journal.beginSnapshot(taking.index, member.marks, isAtMark);
    return taking;
  }

  private handOver(handing: SnapshotTaking): number {
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

  /** The member has restored a snapshot. If the journal lacks entries before it, it goes on after a mark. */
  restored(): void {
    const { member, journal } = this;
    if (journal.next < member.nextToDeliver) journal.leaveOut();
  }
}
