/**
 * Beginning from a journal (`Replica.begin`): restore its snapshot, then deliver its entries, stretch by stretch. Both are the
 * beginning of the sequence that the group has decided, so the member is then where any member may be. No reply is sent: a
 * client that waits for one asks the leader.
 *
 * A member that opens an era also *rebases*. All sessions end, no reply is kept, and the log begins after what it has
 * delivered, with its first index. Ordered time and the counts of deliveries go on.
 *
 * Invariant: all members that open an era with the same snapshot and entries have the same state, to the byte.
 */
import { assert } from '../assert.js';
import type { Delivering } from '../data-path/delivery.js';
import type { Application } from '../edges.js';
import type { Member, Start, Stretch } from '../member.js';
import type { Rows } from './rows.js';
import { restoreSnapshot } from './snapshot.js';

export class Replay {
  private readonly opensEra: boolean;

  /** @throws if the service can't restore the snapshot */
  constructor(
    { snapshot, opensEra }: Start,
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly delivering: Delivering,
    application: Application,
  ) {
    assert(!member.hasState, 'a member begins once, before its first step');
    this.opensEra = opensEra;
    if (snapshot === undefined) {
      member.beginLog();
    } else {
      restoreSnapshot(snapshot, member, application);
      member.edges.observer.restored(member.index, member.deliveries);
    }
  }

  /** The entries that follow. */
  deliver(stretch: Stretch): void {
    this.delivering.deliverJournaled(stretch);
  }

  /** That was all. */
  end(): void {
    const { member, rows, delivering, opensEra } = this;
    if (opensEra) {
      assert(member.log.current() === undefined, 'an era begins with an empty log');
      // Calls that wait are abandoned in the order of the client slots and their call slots.
      delivering.endAllSessions();
      member.rebase();
    }
    rows.publish();
  }
}
