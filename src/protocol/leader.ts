/**
 * The data path of a group's leader, top to bottom as in the paper's Algorithm 2: find messages in
 * the inboxes (2.2), order them by writing them into every member's log (2.3), deliver what a quorum
 * holds (2.4), and write it into the memory of the children on its way (2.5).
 *
 * Called by the replica's `doWork` while it leads. Every step does a bounded amount of work and none
 * waits. How a member comes to lead is told in takeover.ts; what happens first when it does, in `lead`
 * at the end.
 *
 * Invariants: delivered ≤ decided ≤ end. Only decided entries are delivered or forwarded.
 */
import { ORIGIN, PARENT } from '../memory/layout.js';
import { copyHashed, FRAME_WORDS, HEAD_WORDS, hashWords, type Window } from '../memory/window.js';
import { assert } from './assert.js';
import type { Counters } from './counters.js';
import type { Delivering } from './delivery.js';
import { Feed } from './feed.js';
import { ClientInbox, ParentInbox } from './inbox.js';
import type { Member } from './member.js';
import type { Replication } from './replication.js';
import type { Rows } from './rows.js';
import { Truncation } from './truncation.js';

export class Leader {
  private readonly parent: ParentInbox;
  private readonly clients: ClientInbox[] = [];
  private readonly feeds: Feed[] = [];
  /** Counters over all entries in the log, decided or not. */
  private readonly proposed: Counters;
  private readonly truncation: Truncation;
  private turn = 0;
  private clientsFirst = false;
  private logIsFull = false;

  constructor(
    private readonly member: Member,
    rows: Rows,
    private readonly replication: Replication,
    private readonly delivering: Delivering,
  ) {
    const { sizes } = member.layout;
    this.parent = new ParentInbox(member);
    for (let c = 0; c < sizes.clients; c++) this.clients.push(new ClientInbox(member, c));
    for (let i = 0; i < member.children.length; i++) this.feeds.push(new Feed(member, rows, i));
    this.proposed = member.proposed;
    this.truncation = new Truncation(member, rows, replication, this.feeds);
  }

  /** Is there no room, so that it matters how far members and children are? */
  isPressed(): boolean {
    if (this.replication.isPressed) return true;
    for (const feed of this.feeds) if (feed.isFull) return true;
    return false;
  }

  /** Look into every inbox once: not every client knows whose bell to ring. */
  lookEverywhere(): void {
    for (const inbox of this.clients) inbox.isWaiting = true;
  }

  /** The first half of a round: find messages and write them into the logs. Returns how much was done. */
  order(): number {
    const work = this.pollInboxes();
    return work + this.replicate();
  }

  /** The second half: what follows from the writes that have completed. */
  finish(): number {
    const wasIdle = this.replication.decided === this.replication.endIndex;
    let work = this.decide();
    // Others wait for what goes down the tree and back to clients, and nobody for the rest.
    work += this.forward();
    work += this.deliver();
    this.acknowledge();
    work += this.publish(wasIdle);
    this.truncation.run();
    return work;
  }

  /**
   * Find messages to order (2.2): parent first, then the clients in turn; whoever met a full log is
   * first the next time.
   */
  private pollInboxes(): number {
    const { pace, rules, observer } = this.member.edges;
    let room = pace.batchEntries;
    this.logIsFull = false;
    const parentWaits = this.clientsFirst;
    this.clientsFirst = false;
    if (!parentWaits) room -= this.takeFromParent();
    const clients = this.clients.length;
    for (let i = 0; i < clients && room > 0; i++) {
      const client = (this.turn + i) % clients;
      const inbox = this.clients[client]!;
      if (!inbox.hasRung()) continue;
      room -= this.takeFromClient(inbox);
      if (this.logIsFull) {
        // The clients had their turn before the parent: now it is the parent's again.
        this.clientsFirst = !parentWaits;
        this.turn = rules.nextTurn(client - 1, clients);
        observer.transition('log full');
        return pace.batchEntries - room;
      }
    }
    this.turn = rules.nextTurn(this.turn, clients);
    return pace.batchEntries - room;
  }

  private takeFromParent(): number {
    const { proposed, parent } = this;
    let taken = 0;
    while (taken < this.member.edges.pace.parentEntries) {
      const words = parent.next(proposed.nextFromParent);
      if (words === 0) break;
      const number = proposed.nextFromParent;
      const { window, position, epoch } = parent;
      if (!this.append(window, position, words, epoch, PARENT, number, 0)) {
        if (!this.logIsFull) parent.turnAway();
        break;
      }
      parent.taken(words);
      taken++;
    }
    return taken;
  }

  private takeFromClient(inbox: ClientInbox): number {
    const { proposed, member } = this;
    const { client } = inbox;
    let taken = 0;
    while (taken < member.edges.pace.clientEntries) {
      const words = inbox.next(proposed);
      if (words === 0) {
        inbox.isWaiting = false;
        break;
      }
      const position = proposed.nextPosition[client]!;
      const number = proposed.nextNumber[client]!;
      const next = (position + words) | 0;
      const session = proposed.session[client]!;
      if (!this.append(inbox.window, position, words, session, client, number, next)) break;
      taken++;
    }
    if (inbox.isNudged()) member.replies.sendAgain(client, inbox.session);
    return taken;
  }

  /**
   * Copy one message behind the log's end and, if what was copied is whole, make it the next entry.
   * False if the log is full, or the message still landing or just being overwritten.
   */
  private append(
    from: Window,
    position: number,
    words: number,
    epoch: number,
    source: number,
    number: number,
    nextPosition: number,
  ): boolean {
    const { replication } = this;
    const { rules, layout } = this.member.edges;
    const messageWords = words - FRAME_WORDS;
    const bodyWords = messageWords + ORIGIN.words;
    if (!replication.hasRoom(bodyWords)) {
      this.logIsFull = true;
      return false;
    }
    const { ring, nextBody: body, endPosition } = replication;
    const hash = copyHashed(from, position + HEAD_WORDS, ring, body, messageWords);
    if (!rules.isWhole(from, position, words, epoch, number, hash)) return false;
    const origin = body + messageWords;
    const { words: log, at, mask } = ring;
    log[at + ((origin + ORIGIN.source) & mask)] = source;
    log[at + ((origin + ORIGIN.number) & mask)] = number | 0;
    log[at + ((origin + ORIGIN.nextPosition) & mask)] = nextPosition;
    log[at + ((origin + ORIGIN.hash) & mask)] = hash;
    replication.append(bodyWords, hashWords(ring, origin, ORIGIN.words, hash));
    this.proposed.note(ring, endPosition, layout.sizes.origin);
    return true;
  }

  /** Write the new entries into every member's log (2.3): one write each, nobody is waited for. */
  private replicate(): number {
    return this.replication.sendAll();
  }

  /** What f+1 members hold under our ballot is decided. */
  private decide(): number {
    const { replication } = this;
    if (replication.decided === replication.endIndex) return 0;
    const decided = replication.heldByQuorum();
    const advanced = Math.max(0, decided - replication.decided);
    if (advanced > 0) replication.decided = decided;
    assert(replication.decided <= replication.endIndex, 'only entries of the log are decided');
    return advanced;
  }

  /** Tell the members how far the log is decided. */
  private publish(wasIdle: boolean): number {
    const { replication } = this;
    const { rules, observer } = this.member.edges;
    if (!rules.publishesWhenIdle() && replication.decided === replication.endIndex) return 0;
    const told = replication.publishDecided();
    if (told > 0 && wasIdle) observer.transition('decided index published idle');
    return told;
  }

  /** Deliver what is decided, if this group is a destination, and reply (2.4). */
  private deliver(): number {
    const { member, replication } = this;
    const count = this.delivering.deliver(
      replication.ring,
      replication.ballot,
      replication.decided,
      true,
    );
    assert(
      member.nextToDeliver === replication.decided,
      'a leader delivers everything that is decided, and nothing else',
    );
    return count;
  }

  /** Write decided messages into the memory of each child whose reach meets their destinations (2.5). */
  private forward(): number {
    let count = 0;
    for (const feed of this.feeds) count += feed.forward(this.replication);
    return count;
  }

  /** The replies were written as they came; tell the clients where to look. */
  private acknowledge(): void {
    this.member.replies.ringDoorbells();
  }

  /**
   * Begin to lead (Algorithm 5): the marker stands at a quorum, so all that was adopted is decided, and
   * every counter follows from the log.
   */
  lead(): void {
    const { member, replication } = this;
    const { rules } = member.edges;
    this.recoverCounters();
    const from = rules.forwardFrom(replication, member);
    this.feeds.forEach((feed, i) => {
      feed.start(
        replication.ballot,
        from.index,
        from.position,
        this.numberToChildAt(from.index, i),
      );
    });
    this.parent.rewind();
    for (const inbox of this.clients) inbox.isNudged();
    this.lookEverywhere();
    replication.decided = replication.endIndex;
    rules.beforeFirstDelivery(member, replication);
    for (const { client } of this.clients) member.replies.sendAgain(client);
  }

  /** Fold the log, entry by entry, into the counters of the delivered part. */
  private recoverCounters(): void {
    const { member, replication, proposed } = this;
    const { rules } = member.edges;
    const { baseTo } = this.truncation;
    rules.resumeSources(proposed, member.delivered, member);
    baseTo.set(member.delivered.nextTo);
    let position = replication.ring.base;
    for (let index = replication.baseIndex; index < replication.endIndex; index++) {
      if (index >= member.nextToDeliver) {
        proposed.note(replication.ring, position, member.layout.sizes.origin);
      } else {
        this.truncation.count(position, -1);
      }
      position = (position + replication.wordsAt(position)) | 0;
    }
    rules.sourcesRecovered(member);
  }

  private numberToChildAt(index: number, child: number): number {
    return index === this.replication.baseIndex
      ? this.truncation.baseTo[child]!
      : this.member.delivered.nextTo[child]!;
  }

  /** Whoever feeds us may be waiting for room. */
  wakeParent(): void {
    const { group, edges } = this.member;
    const parent = edges.overlay.parent(group);
    if (parent < 0) return;
    edges.memory.wake(edges.layout.replicaProcess(parent, this.parent.writer), true);
  }

  onFeedWriteFailed(place: number, process: number): void {
    const feed = this.feeds[place]!;
    feed.onWriteFailed(process - this.member.layout.replicaProcess(feed.child, 0));
  }
}
