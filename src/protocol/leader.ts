/**
 * The data path of a group's leader, top to bottom as in the paper's Algorithm 2: find messages in
 * the inboxes (2.2), order them by writing them into every member's log (2.3), deliver what a quorum
 * holds (2.4), and write it into the memory of the children on its way (2.5).
 *
 * Called by the replica's `doWork` while it leads. Every step does a bounded amount of work and none
 * waits. `lead` is tree recovery (Algorithm 5): it derives every counter from the log.
 *
 * Invariants: delivered ≤ decided ≤ end. Only decided entries are delivered or forwarded.
 */
import { ENTRY, PARENT } from '../memory/layout.js';
import { copyWords, FRAME_WORDS, HEAD_WORDS, type Window } from '../memory/window.js';
import { assert } from './assert.js';
import { type Counters, goesTo } from './counters.js';
import type { Delivering } from './delivery.js';
import { Feed } from './feed.js';
import { ClientInbox, ParentInbox } from './inbox.js';
import type { Member } from './member.js';
import type { Replication } from './replication.js';
import type { Rows } from './rows.js';

export class Leader {
  private readonly parent: ParentInbox;
  private readonly clients: ClientInbox[] = [];
  private readonly feeds: Feed[] = [];
  /** Counters over all entries in the log, decided or not. */
  private readonly proposed: Counters;
  /** Per child: the number its first message in the log has. */
  private readonly baseTo: Float64Array;
  private turn = 0;
  private clientsFirst = false;
  private logIsFull = false;
  private readonly deliveredBy: Float64Array;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
    private readonly delivering: Delivering,
  ) {
    const { sizes } = member.layout;
    this.parent = new ParentInbox(member);
    for (let c = 0; c < sizes.clients; c++) this.clients.push(new ClientInbox(member, c));
    for (let i = 0; i < member.children.length; i++) this.feeds.push(new Feed(member, rows, i));
    this.proposed = member.proposed;
    this.baseTo = new Float64Array(member.children.length);
    this.deliveredBy = new Float64Array(member.replicas);
  }

  /** Begin to lead: the marker stands at a quorum, so all that was adopted is decided. */
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
    replication.decided = replication.endIndex;
    rules.beforeFirstDelivery(member, replication);
    for (const { client } of this.clients) member.replies.sendAgain(client);
  }

  /** Fold the log, entry by entry, into the counters of the delivered part. */
  private recoverCounters(): void {
    const { member, replication, proposed, baseTo } = this;
    const { overlay, rules } = member.edges;
    rules.resumeSources(proposed, member.delivered, member);
    baseTo.set(member.delivered.nextTo);
    let position = replication.ring.base;
    for (let index = replication.baseIndex; index < replication.endIndex; index++) {
      if (index >= member.nextToDeliver) {
        proposed.note(replication.ring, position, member.layout.sizes.origin);
      } else {
        member.children.forEach((child, i) => {
          if (goesTo(replication.ring, position, overlay, child)) baseTo[i]!--;
        });
      }
      position = (position + replication.wordsAt(position)) | 0;
    }
    rules.sourcesRecovered(member);
  }

  private numberToChildAt(index: number, child: number): number {
    return index === this.replication.baseIndex
      ? this.baseTo[child]!
      : this.member.delivered.nextTo[child]!;
  }

  /** One round of the data path. Returns how much was done. */
  doWork(): number {
    let work = this.pollInboxes();
    work += this.replicate();
    work += this.decide();
    work += this.deliver();
    work += this.forward();
    this.acknowledge();
    this.truncate();
    return work;
  }

  /** Parent first, then the clients in turn; whoever met a full log is first the next time. */
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
      room -= this.takeFromClient(this.clients[client]!);
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
      const { position } = parent;
      if (words === 0 || !this.append(parent.window, position, words, PARENT, 0)) break;
      // Whoever thinks it decided may overwrite the message while we copy it.
      if (!parent.stillHolds(proposed.nextFromParent, position, words)) break;
      this.keep(words);
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
      if (words === 0) break;
      const position = proposed.nextPosition[client]!;
      if (!this.append(inbox.window, position, words, client, (position + words) | 0)) break;
      if (inbox.next(proposed) !== words) break;
      this.keep(words);
      taken++;
    }
    if (inbox.isNudged()) member.replies.sendAgain(client, inbox.session);
    return taken;
  }

  /** Copy one message behind the log's end; false if the log is full. It is an entry only once kept. */
  private append(
    from: Window,
    position: number,
    words: number,
    source: number,
    next: number,
  ): boolean {
    const { replication, proposed } = this;
    const messageWords = words - FRAME_WORDS;
    const bodyWords = messageWords + ENTRY.message;
    if (!replication.hasRoom(bodyWords)) {
      this.logIsFull = true;
      return false;
    }
    const { ring, nextBody: body } = replication;
    const number = source === PARENT ? proposed.nextFromParent : proposed.nextNumber[source]!;
    ring.words[ring.at + ((body + ENTRY.source) & ring.mask)] = source;
    ring.words[ring.at + ((body + ENTRY.number) & ring.mask)] = number | 0;
    ring.words[ring.at + ((body + ENTRY.nextPosition) & ring.mask)] = next;
    copyWords(from, position + HEAD_WORDS, ring, body + ENTRY.message, messageWords);
    return true;
  }

  /** The message that was copied last is whole: it is the log's next entry. */
  private keep(words: number): void {
    const { replication } = this;
    const { endPosition } = replication;
    replication.append(words - FRAME_WORDS + ENTRY.message);
    this.proposed.note(replication.ring, endPosition, this.member.layout.sizes.origin);
  }

  /** Write the new entries into every member's log: one write each, nobody is waited for. */
  private replicate(): number {
    return this.replication.sendAll();
  }

  /** What f+1 members hold under our ballot is decided. */
  private decide(): number {
    const { replication } = this;
    const { rules, observer } = this.member.edges;
    const decided = replication.heldByQuorum();
    const wasIdle = replication.decided === replication.endIndex;
    const advanced = Math.max(0, decided - replication.decided);
    if (advanced > 0) replication.decided = decided;
    assert(replication.decided <= replication.endIndex, 'only entries of the log are decided');
    if (!rules.publishesWhenIdle() && replication.decided === replication.endIndex) return advanced;
    const told = replication.publishDecided();
    if (told > 0 && wasIdle) observer.transition('decided index published idle');
    return advanced + told;
  }

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

  /** Write decided messages into the memory of each child whose reach meets their destinations. */
  private forward(): number {
    let count = 0;
    for (const feed of this.feeds) count += feed.forward(this.replication);
    return count;
  }

  /** The replies were written as they came; tell the clients where to look. */
  private acknowledge(): void {
    this.member.replies.ringDoorbells();
  }

  /** Is the log filling up, so that news of how far others are is urgent? */
  isPressed(): boolean {
    return this.replication.usedWords * 2 > this.member.layout.logWords;
  }

  /**
   * Drop entries that nobody needs: every live member has delivered them, f+1 members have whatever
   * the detector says (H25), and every child concerned has decided them.
   */
  private truncate(): void {
    if (!this.isPressed()) return;
    const { replication, baseTo } = this;
    const { overlay, observer } = this.member.edges;
    // The last decided entry stays: every log that can be adopted has it, so none is ever empty again.
    const limit = Math.min(this.truncationLimit(), replication.decided - 1);
    let index = replication.baseIndex;
    let position = replication.ring.base;
    while (index < limit && this.isDecidedBelow(position)) {
      this.feeds.forEach((feed, i) => {
        if (goesTo(replication.ring, position, overlay, feed.child)) baseTo[i]!++;
      });
      position = (position + replication.wordsAt(position)) | 0;
      index++;
    }
    if (index === replication.baseIndex) return;
    replication.truncate(index, position);
    observer.transition('log truncated');
  }

  private isDecidedBelow(position: number): boolean {
    const { overlay } = this.member.edges;
    for (let i = 0; i < this.feeds.length; i++) {
      const feed = this.feeds[i]!;
      if (this.baseTo[i]! < feed.decidedByChild) continue;
      if (goesTo(this.replication.ring, position, overlay, feed.child)) return false;
    }
    return true;
  }

  private truncationLimit(): number {
    const { member, rows, deliveredBy, replication } = this;
    let liveMinimum = keptFrom(member.nextToDeliver, member.holdAt);
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) {
        deliveredBy[other] = member.nextToDeliver;
        continue;
      }
      const peer = rows.peer(other);
      // What an earlier life delivered is forgotten.
      const isOldNews = replication.lifeOf(other) > peer.incarnation;
      deliveredBy[other] = isOldNews ? member.layout.sizes.origin : peer.delivered;
      if (!rows.isLive(other)) continue;
      // Whoever fetches a snapshot will need the log from there; who is left behind needs none.
      const needs = keptFrom(deliveredBy[other]!, peer.holdAt);
      if (needs >= replication.baseIndex) liveMinimum = Math.min(liveMinimum, needs);
    }
    deliveredBy.sort();
    const deliveredByQuorum = deliveredBy[member.replicas - member.quorum]!;
    return member.edges.rules.truncationLimit(liveMinimum, deliveredByQuorum);
  }

  onFeedWriteFailed(place: number, process: number): void {
    const feed = this.feeds[place]!;
    feed.onWriteFailed(process - this.member.layout.replicaProcess(feed.child, 0));
  }
}

/** From where a member needs the log: what it has delivered, or an older snapshot that it is serving. */
function keptFrom(delivered: number, holdAt: number): number {
  return holdAt === 0 ? delivered : Math.min(delivered, holdAt);
}
