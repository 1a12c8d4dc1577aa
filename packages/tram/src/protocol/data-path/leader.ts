/**
 * The data path of a group's leader, in the order in which it runs (paper Algorithm 2). `lead` starts it. Then every
 * round finds messages in the inboxes (2.2) and writes them into every member's log (2.3): `order`. Once writes have
 * completed, it decides what a quorum holds, forwards it to the children (2.5), delivers it and replies (2.4): `finish`.
 * Under strict order, replies wait for the gate (settling.ts), and with `durability: 'always'` until their entries are
 * recoverable (recoverable.ts); nothing else does.
 *
 * The replica's `doWork` calls `order` and `finish` once a round while it leads. Each round does a bounded amount of
 * work and never waits. takeover.ts explains how a member becomes leader.
 *
 * Invariants: delivered ≤ decided ≤ end. Only decided entries are delivered or forwarded. All of them are, unless the
 * journal has no room for them.
 */

import {
  copyHashed,
  copyWords,
  distance,
  FRAME_WORDS,
  HEAD_WORDS,
  hashFour,
  isChecked,
  numberAt,
  word,
} from '../../memory/record.js';
import { assert } from '../assert.js';
import { MESSAGE, OWN, PARENT, SOURCE, sourceIn } from '../layout.js';
import type { Rows } from '../leadership/rows.js';
import type { Member } from '../member.js';
import { WIDE } from '../wide.js';
import type { Counters } from './counters.js';
import type { Delivering } from './delivery.js';
import { Forwarding } from './forwarding.js';
import { ClientInbox, ParentInbox } from './inbox.js';
import type { OrderedClock } from './ordered-clock.js';
import { OwnEntries } from './own-entries.js';
import { Recoverable } from './recoverable.js';
import type { Replication } from './replication.js';
import { Settling } from './settling.js';
import { Truncation } from './truncation.js';

const NEVER = Number.POSITIVE_INFINITY;

export class Leader {
  private readonly parent: ParentInbox;
  private readonly clients: ClientInbox[] = [];
  private readonly ownEntries: OwnEntries;
  readonly forwarding: Forwarding;
  /** Counters over all entries of the log, decided or not. Never behind `member.delivered`. */
  private readonly proposed: Counters;
  /** These two may be looked at from outside. */
  readonly settling: Settling;
  readonly recoverable: Recoverable;
  private readonly truncation: Truncation;
  /** The client that the next round looks at first. */
  private turn = 0;
  /** Do the clients come before the parent in the next round? */
  private clientsFirst = false;
  private readonly firstIndex: number;
  /** Did an entry find no room in the log in this round? And has the round made room for it at its end? */
  private logIsFull = false;
  hasMadeRoom = false;

  constructor(
    private readonly member: Member,
    rows: Rows,
    private readonly replication: Replication,
    private readonly delivering: Delivering,
    /** Absent if the service wants no ticks. */
    clock: OrderedClock | undefined,
  ) {
    const { sizes } = member.layout;
    this.parent = new ParentInbox(member);
    this.firstIndex = sizes.firstIndex;
    for (let c = 0; c < sizes.clients; c++) this.clients.push(new ClientInbox(member, c));
    this.forwarding = new Forwarding(member, rows, replication);
    this.proposed = member.newCounters();
    const { forwarding, parent, proposed } = this;
    this.ownEntries = new OwnEntries(member, replication, proposed, clock, (words, hash, kind) =>
      this.append(words, hash, OWN, kind, 0),
    );
    const { feeds } = forwarding;
    this.settling = new Settling(member, replication, feeds, parent, proposed);
    this.recoverable = new Recoverable(member, rows, replication, feeds, parent, proposed);
    const { settling, recoverable } = this;
    this.truncation = new Truncation(member, rows, replication, forwarding, settling, recoverable);
  }

  /**
   * Begin to lead (Algorithm 5). A quorum has installed our log, so every adopted entry is decided, and every counter
   * follows from the log. The next `finish` delivers from the first entry that this member has not delivered (H1).
   */
  lead(): void {
    const { member, replication } = this;
    this.recoverCounters();
    this.ownEntries.start();
    // From the log's base, whatever this member has delivered: the child says what it has (H4).
    this.forwarding.start();
    this.parent.rewind();
    this.settling.start();
    this.recoverable.start();
    // All kept replies are sent, now or when the gate has passed them, so earlier nudges are answered by that.
    for (const inbox of this.clients) inbox.takeNudge();
    this.pollAllClients();
    replication.decided = replication.endIndex;
    member.replies.holdFrom(this.gate);
    for (const { client } of this.clients) member.replies.sendAgain(client);
  }

  /**
   * Fold the log, entry by entry, into the counters of the delivered part. What was taken from a source under
   * an earlier ballot and is not in the log was never taken (H5, H6).
   */
  private recoverCounters(): void {
    const { member, replication, proposed } = this;
    proposed.copyFrom(member.delivered);
    let position = member.nextPosition;
    for (let index = member.nextToDeliver; index < replication.endIndex; index++) {
      proposed.note(replication.ring, position, member.layout.sizes.firstIndex);
      position = (position + replication.wordsAt(position)) | 0;
    }
  }

  /** Replies to entries below this index may be sent. */
  private get gate(): number {
    return Math.min(this.settling.gate, this.recoverable.gate);
  }

  /** In the next round, look into every client's inbox: a client may not know which member to notify. */
  pollAllClients(): void {
    for (const inbox of this.clients) inbox.mayHaveMessages = true;
  }

  /**
   * The first half of a round: find messages and write them into the logs. Returns how much was done.
   * @param isQuick  are the logs of a quorum enough, for now?
   */
  order(nowUs: number, isQuick: boolean): number {
    const { ownEntries } = this;
    // A tick is small and often due: after one, those that wait for room in the log come first.
    const { logEndsWithTick } = ownEntries;
    const hasTick = logEndsWithTick || ownEntries.proposeTick(nowUs);
    const hasEnds = ownEntries.proposeSessionEnds(nowUs);
    const hasMark = ownEntries.proposeMark(nowUs);
    this.logIsFull = !(hasTick && hasEnds && hasMark);
    const work = this.pollInboxes();
    if (logEndsWithTick && !this.logIsFull) this.logIsFull = !ownEntries.proposeTick(nowUs);
    return work + this.replicate(isQuick);
  }

  /** When a tick is to be proposed: infinite if there are none, or while this one must wait for something else. */
  get tickDueUs(): number {
    return this.logIsFull ? NEVER : this.ownEntries.tickDueUs;
  }

  /**
   * Find messages to order (2.2): parent first, then the clients in turn, starting with another client each
   * time (H18). A client that meets a full log before it has had its turn is the first one in the next round.
   */
  private pollInboxes(): number {
    const { pace, observer } = this.member.edges;
    let room = pace.batchEntries;
    const parentWaits = this.clientsFirst;
    this.clientsFirst = false;
    if (!parentWaits) room -= this.takeFromParent();
    const clients = this.clients.length;
    for (let i = 0; i < clients && room > 0; i++) {
      const client = (this.turn + i) % clients;
      const inbox = this.clients[client];
      if (!inbox.takeNotification()) continue;
      const taken = this.takeFromClient(inbox);
      room -= taken;
      if (this.logIsFull) {
        // While the log is full, the parent and the clients come first in turn.
        this.clientsFirst = !parentWaits;
        this.turn = taken > 0 ? (client + 1) % clients : client;
        observer.transition('log full');
        return pace.batchEntries - room;
      }
    }
    this.turn = (this.turn + 1) % clients;
    // The clients came first, and have left room. Nothing else would run this replica again for what its parent has sent.
    if (parentWaits && room > 0) room -= this.takeFromParent();
    return pace.batchEntries - room;
  }

  private takeFromParent(): number {
    const { parentEntries } = this.member.edges.pace;
    let taken = 0;
    while (taken < parentEntries) {
      const count = this.takeRun(parentEntries - taken);
      if (count === 0) break;
      taken += count;
    }
    return taken;
  }

  /**
   * Take a run of entries of the parent's log that lie side by side: copy all of them at once, then frame each as an
   * entry of this group. Until then they are no entries of ours, wherever we stop: their checks are salted for the
   * parent's log.
   */
  private takeRun(entriesMax: number): number {
    const { parent, replication } = this;
    const { endIndex, endPosition, ring } = replication;
    const first = parent.seek(this.proposed.nextFromParent);
    if (first === 0) return 0;
    if (!this.hasRoom(first)) {
      this.logIsFull = true;
      return 0;
    }
    const words = parent.runWords(first, entriesMax, replication.roomWords);
    copyWords(parent.window, parent.position, ring, endPosition, words);
    if (!parent.isCurrent()) {
      parent.switchFeed();
      return 0;
    }
    parent.advance(words);
    while (distance(replication.endPosition, endPosition) < words) this.makeOurs();
    assert(
      distance(replication.endPosition, endPosition) === words,
      'a run taken from the parent consists of whole entries',
    );
    return replication.endIndex - endIndex;
  }

  /** Frame the entry of the parent's log that was copied behind our log's end as our next entry. */
  private makeOurs(): void {
    const { parent, replication } = this;
    const { ring, endPosition } = replication;
    const words = word(ring, endPosition);
    const index = parent.indexOf(numberAt(ring, endPosition));
    const hash = word(ring, endPosition + sourceIn(words) + SOURCE.hash);
    const messageWords = words - FRAME_WORDS - SOURCE.words;
    this.append(messageWords, hash, PARENT, index, Math.floor(index / WIDE));
  }

  private takeFromClient(inbox: ClientInbox): number {
    const { proposed, member, replication } = this;
    const { pace } = member.edges;
    const { client, window } = inbox;
    let taken = 0;
    while (taken < pace.clientEntries) {
      inbox.openNewSession(proposed);
      const words = inbox.nextWords(proposed);
      if (words === 0) {
        inbox.mayHaveMessages = false;
        break;
      }
      const messageWords = words - FRAME_WORDS;
      if (!this.hasRoom(words + SOURCE.words)) {
        this.logIsFull = true;
        break;
      }
      const position = proposed.nextPosition[client];
      const number = proposed.nextNumber[client];
      const message = position + HEAD_WORDS;
      const { ring, nextBody } = replication;
      const hash = copyHashed(window, message, ring, nextBody, messageWords);
      // Still landing, or just being overwritten? What was copied must be what its writer sealed (H19).
      if (!isChecked(window, position, words, proposed.session[client], number, hash)) break;
      this.append(messageWords, hash, client, number, (position + words) | 0);
      taken++;
    }
    if (inbox.takeNudge()) member.replies.sendAgain(client, inbox.session);
    return taken;
  }

  private hasRoom(entryWords: number): boolean {
    return entryWords <= this.replication.roomWords;
  }

  /** Make the message that was copied behind the log's end, and has this hash, the log's next entry. */
  private append(
    messageWords: number,
    hash: number,
    source: number,
    number: number,
    nextPosition: number,
  ): void {
    const { replication } = this;
    const { words, at, mask } = replication.ring;
    const { nextBody } = replication;
    const sourceAt = nextBody + messageWords;
    const numberLow = number | 0;
    words[at + ((sourceAt + SOURCE.id) & mask)] = source;
    words[at + ((sourceAt + SOURCE.number) & mask)] = numberLow;
    words[at + ((sourceAt + SOURCE.nextPosition) & mask)] = nextPosition;
    words[at + ((sourceAt + SOURCE.hash) & mask)] = hash;
    // The words of `SOURCE`, in their order.
    const bodyHash = hashFour(hash, source, numberLow, nextPosition, hash);
    replication.append(messageWords + SOURCE.words, bodyHash);
    const client = words[at + ((nextBody + MESSAGE.client) & mask)];
    const session = words[at + ((nextBody + MESSAGE.session) & mask)];
    this.proposed.fold(source, numberLow, nextPosition, client, session, this.firstIndex);
  }

  /** Write the new entries into the members' logs (2.3): one write for each member, without waiting for any. */
  private replicate(isQuick: boolean): number {
    const { replication } = this;
    return isQuick ? replication.sendToQuorum() : replication.sendAll();
  }

  /** The second half: what follows from the writes that have completed. Returns how much was done. */
  finish(nowUs: number): number {
    const wasIdle = this.replication.decided === this.replication.endIndex;
    const work = this.advance(false) + this.publish(wasIdle);
    const { baseIndex } = this.replication;
    this.truncation.run(nowUs, this.logIsFull);
    this.hasMadeRoom = this.logIsFull && this.replication.baseIndex > baseIndex;
    return work;
  }

  /** The part of it that children and clients wait for. Nobody waits for the rest, which the next full step does. */
  advance(isQuick: boolean): number {
    let work = this.decide();
    work += this.forward(isQuick);
    work += this.deliver();
    this.acknowledge();
    this.replication.keepDecided();
    return work;
  }

  /** Can a step do without all but `order` and `advance`? */
  canBeQuick(): boolean {
    return !this.logIsFull && !this.isPressed();
  }

  /** Entries that f+1 members hold under our ballot are decided. */
  private decide(): number {
    const { replication } = this;
    if (replication.decided === replication.endIndex) return 0;
    const decided = replication.heldByQuorum();
    const advanced = Math.max(0, decided - replication.decided);
    if (advanced > 0) replication.decided = decided;
    assert(replication.decided <= replication.endIndex, 'only entries of the log are decided');
    return advanced;
  }

  /** Write decided messages into the memory of each child whose reach meets their destinations (2.5). */
  private forward(isQuick: boolean): number {
    const count = this.forwarding.forward(isQuick);
    this.settling.advance();
    this.recoverable.advance();
    this.forwarding.tell(this.settling.gate, this.recoverable.index, isQuick);
    return count;
  }

  /** Deliver what is decided, if this group is a destination, and reply as far as the gate permits (2.4). */
  private deliver(): number {
    const { member, replication } = this;
    const released = member.replies.release(this.gate);
    const count = this.delivering.deliver(
      replication.ring,
      replication.ballot,
      replication.decided,
      true,
    );
    assert(
      member.nextToDeliver === replication.decided || this.delivering.journaling?.isFull === true,
      'a leader delivers every decided entry, and no other',
    );
    return count + released;
  }

  /** Notify the clients whose replies `deliver` has written. */
  private acknowledge(): void {
    this.member.replies.notifyClients();
  }

  /** Tell the members how far the log is decided, even if no entry follows (H15). */
  private publish(wasIdle: boolean): number {
    const { replication } = this;
    const { observer } = this.member.edges;
    const told = replication.publishDecided();
    if (told > 0 && wasIdle) observer.transition('decided index published idle');
    return told;
  }

  /** Is the log filling up, or a feed full, so that the progress of members and children matters? */
  isPressed(): boolean {
    return this.replication.isPressed || this.forwarding.isFull;
  }

  /** Wake the member of the parent group whose feed we read: it may wait for room there. */
  wakeParent(): void {
    const { group, edges } = this.member;
    const parent = edges.overlay.parent(group);
    if (parent < 0) return;
    edges.memory.wake(edges.layout.replicaParticipant(parent, this.parent.writer), true);
  }

  onFeedWriteFailed(place: number, participant: number): void {
    this.forwarding.feeds[place].onWriteFailed(participant);
  }
}
