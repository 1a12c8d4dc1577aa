/**
 * Beginning from a journal (`Identity.start`): restore its snapshot, then deliver its entries. Both are the beginning of
 * the sequence that the group has decided, so the member is then where any member may be. No reply is sent: whoever waits
 * for one asks the leader.
 *
 * A member that opens an era also *rebases*. All sessions end, no reply is kept, and the log begins after what it has
 * delivered, with its first index. Ordered time and the counts of deliveries go on.
 *
 * Invariant: all members that open an era with the same snapshot and entries have the same state, to the byte.
 */
import { assert } from '../assert.js';
import type { Delivering } from '../data-path/delivery.js';
import type { Application } from '../edges.js';
import type { Member, Start } from '../member.js';
import { restoreSnapshot } from './snapshot.js';

export function replay(
  start: Start,
  member: Member,
  delivering: Delivering,
  application: Application,
): void {
  assert(!member.hasState, 'a member begins once, before its first step');
  if (start.snapshot === undefined) {
    member.beginLog();
  } else {
    restoreSnapshot(start.snapshot, member, application);
    member.edges.observer.restored(member.index, member.deliveries);
  }
  for (const entry of start.entries) delivering.deliverBody(entry);
  if (start.opensEra) {
    assert(member.log.current() === undefined, 'an era begins with an empty log');
    // Calls that wait are abandoned in the order of the client slots and their call slots.
    delivering.endAllSessions();
    member.rebase();
  }
}
