/**
 * Where a leader finds new messages (paper step 2.2): one window for each client, and one for each member of the
 * parent group. Called by leader.ts, in every round.
 *
 * Which messages have been taken follows from the log alone (counters.ts), so the next leader continues exactly where
 * this one stopped. What an inbox remembers itself are hints, and a place from which it can search again.
 */

import {
  distance,
  extend,
  framedWords,
  numberAt,
  ringAt,
  type Window,
} from '../../memory/record.js';
import { FEED_GATES, FEED_START, INBOX_CONTROL } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { SlotReader } from '../leadership/slots.js';
import type { Member } from '../member.js';
import type { Counters } from './counters.js';

/** The messages of one client whose entry group is this one. */
export class ClientInbox {
  readonly window: Window;
  private readonly control: number;
  private readonly notification: number;
  private seenNotification = 0;
  private seenNudge = 0;
  /** False only if the client has not notified us since we found the inbox empty. */
  mayHaveMessages = true;

  constructor(
    private readonly member: Member,
    readonly client: number,
  ) {
    const { layout, memory } = member.edges;
    this.control = layout.inboxControl(client);
    this.notification = layout.clientNotification(client);
    const { salt } = layout.sizes;
    this.window = ringAt(memory.own, layout.inboxRing(client), layout.inboxWords, salt);
  }

  get session(): number {
    return this.window.words[this.control + INBOX_CONTROL.session];
  }

  /** Take the client's notification, if there is a new one. True if the inbox, read after this, may have messages. */
  takeNotification(): boolean {
    const { words } = this.window;
    if (words[this.notification] !== this.seenNotification) {
      this.seenNotification = Atomics.load(words, this.notification);
      this.mayHaveMessages = true;
    }
    return this.mayHaveMessages;
  }

  /** If a newer session has taken over the client slot, its messages are counted from the beginning. */
  openNewSession(proposed: Counters): void {
    const { session, client, member } = this;
    if (session <= proposed.session[client]) return;
    if (proposed.session[client] !== 0) member.edges.observer.transition('session replaced');
    proposed.open(client, session, member.layout.sizes.firstIndex);
  }

  /** Words of the client's next message if both its ends have landed, else 0. */
  nextWords(proposed: Counters): number {
    const { session, client, member } = this;
    if (session === 0) return 0;
    // Only a record with both its ends is a message, and only if its check agrees once it was copied (H19).
    return framedWords(
      this.window,
      proposed.nextPosition[client],
      proposed.session[client],
      proposed.nextNumber[client],
      member.layout.inboxRecordWordsMax,
    );
  }

  /** Take the client's nudge: true once each time the client has waited too long for replies. */
  takeNudge(): boolean {
    const nudge = this.window.words[this.control + INBOX_CONTROL.nudge];
    if (nudge === this.seenNudge) return false;
    this.seenNudge = nudge;
    return true;
  }
}

/**
 * The entries that one member of the parent group has forwarded while it led. Each member has a feed of its own, so the
 * late write of a deposed leader changes no other feed (H14).
 *
 * All entries before the announced end were posted before the end was, so they need no check. But entries that we have
 * not taken may be dropped and overwritten once another member has: after a copy, `isCurrent` must hold.
 */
class FeedReader {
  readonly window: Window;
  private readonly start: SlotReader;
  private readonly end: number;
  private readonly gates: SlotReader;
  /** The ballot under which the entries were forwarded; NO_BALLOT until we know a start that is meant for us. */
  private epoch = NO_BALLOT;
  /** The next entry to look at. It lies at or after the feed's start, unless the start has moved meanwhile. */
  position: number;
  /** The end of the feed when we looked last. */
  private endPosition: number;
  /** An index within 2³¹ of those in the feed, to which `extend` completes their low words. */
  private near = 0;

  constructor(
    private readonly member: Member,
    parentMember: number,
  ) {
    const { layout, memory, overlay } = member.edges;
    const { firstIndex } = layout.sizes;
    const salt = layout.logSalt(overlay.parent(member.group));
    this.window = ringAt(memory.own, layout.feedRing(parentMember), layout.feedWords, salt);
    this.start = new SlotReader(memory.own, layout.feedStart(parentMember), FEED_START.words);
    this.end = layout.feedEnd(parentMember);
    this.gates = new SlotReader(memory.own, layout.feedGates(parentMember), FEED_GATES.words);
    this.position = firstIndex | 0;
    this.endPosition = this.position;
  }

  /** Go to the first entry from index `next` of the parent's log on. Returns its words, or 0 if the feed lacks it. */
  seek(next: number): number {
    if (!this.hasNews()) return 0;
    const { observer, memory } = this.member.edges;
    if (this.start.poll()) {
      this.restart();
      // An end that was written before this start does not belong to it.
      memory.readFence();
    }
    if (this.epoch === NO_BALLOT) return 0;
    this.endPosition = Atomics.load(this.window.words, this.end);
    for (;;) {
      const words = this.wordsAt(this.position);
      if (words === 0) return 0;
      if (this.indexOf(numberAt(this.window, this.position)) >= next) return words;
      // Decided already, or taken from another member's feed.
      if (!this.isCurrent()) return 0;
      observer.transition('stale feed skipped');
      this.advance(words);
    }
  }

  /**
   * Is there an entry that was not looked at, or may there be one by now? The writer tells a new end after it has posted an
   * entry. It tells a new start, with another number, before it posts other entries where we have been. So if we have read
   * everything before the end, and neither of them has changed since, there is nothing new. An old value that a plain load
   * returns only delays us.
   */
  private hasNews(): boolean {
    const { endPosition } = this;
    if (endPosition !== this.position || this.window.words[this.end] !== endPosition) return true;
    return !this.start.isUnchanged();
  }

  /** The writer announces a new start: continue there unless we are past it. */
  private restart(): void {
    const { start } = this;
    const isOurs = start.body(FEED_START.incarnation) === this.member.incarnation;
    const epoch = isOurs ? start.body(FEED_START.epoch) : NO_BALLOT;
    const position = start.body(FEED_START.position);
    this.near = start.wide(FEED_START.index);
    if (epoch === this.epoch && distance(position, this.position) < 0) return;
    this.epoch = epoch;
    this.position = position;
  }

  private wordsAt(position: number): number {
    if (distance(this.endPosition, position) <= 0) return 0;
    const { window, epoch, member } = this;
    const { entryWordsMax } = member.layout;
    return framedWords(window, position, epoch, numberAt(window, position), entryWordsMax);
  }

  /** Words of the run that begins with this entry at `position`, of at most so many entries and words. */
  runWords(first: number, entriesMax: number, wordsMax: number): number {
    let words = first;
    for (let count = 1; count < entriesMax; count++) {
      const next = this.wordsAt((this.position + words) | 0);
      if (next === 0 || words + next > wordsMax) break;
      words += next;
    }
    return words;
  }

  /** The index in the parent's log of an entry with this number. */
  indexOf(number: number): number {
    return extend(this.near, number);
  }

  /** Is what was read just now still in the feed? The writer announces a new start before it overwrites anything. */
  isCurrent(): boolean {
    this.member.edges.memory.readFence();
    return this.start.isUnchanged();
  }

  advance(words: number): void {
    this.position = (this.position + words) | 0;
  }

  /**
   * Take the parent's gates. False if its writer has not told them anew. They count only if they were told after a start
   * that is meant for us: a member that still ran in an earlier era may have written before this one began.
   */
  takeGates(): boolean {
    return this.epoch !== NO_BALLOT && this.gates.poll();
  }

  /** One of `FEED_GATES`, as taken last. */
  gateOf(which: number): number {
    return this.gates.wide(which);
  }

  /** Read again from the feed's start: what was taken under an earlier ballot may have been lost. */
  rewind(): void {
    this.epoch = NO_BALLOT;
    this.start.forget();
  }
}

/**
 * The feeds of all members of the parent group, read as one. `seek` finds the feed that has the next entry; `window`
 * and `position` then say where the entry lies. (They are two getters because this path must not allocate.)
 */
export class ParentInbox {
  /** Empty in the root group. */
  private readonly feeds: FeedReader[] = [];
  private current = 0;
  /** The greatest that were told: the parent's gates never go back. The root has no parent to wait for. */
  private gate: number;
  private recoverable: number;

  constructor(member: Member) {
    this.gate = Number.POSITIVE_INFINITY;
    this.recoverable = Number.POSITIVE_INFINITY;
    if (member.edges.overlay.parent(member.group) < 0) return;
    this.gate = member.layout.sizes.firstIndex;
    this.recoverable = member.layout.sizes.firstIndex;
    for (let other = 0; other < member.replicas; other++)
      this.feeds.push(new FeedReader(member, other));
  }

  /** Go to the first entry from this index on, in whichever feed has it. Returns its words, or 0 if none has. */
  seek(index: number): number {
    for (let turn = 0; turn < this.feeds.length; turn++) {
      const words = this.feeds[this.current].seek(index);
      if (words > 0) return words;
      this.switchFeed();
    }
    return 0;
  }

  /**
   * Look at another feed first, next time. The entry just copied was no longer current, and may never be again if the
   * feed's writer has died.
   */
  switchFeed(): void {
    this.current = (this.current + 1) % this.feeds.length;
  }

  get window(): Window {
    return this.feeds[this.current].window;
  }

  get position(): number {
    return this.feeds[this.current].position;
  }

  /** Words of the run that begins with this entry at `position`, of at most so many entries and words. */
  runWords(first: number, entriesMax: number, wordsMax: number): number {
    return this.feeds[this.current].runWords(first, entriesMax, wordsMax);
  }

  /** The index in the parent's log of an entry with this number. */
  indexOf(number: number): number {
    return this.feeds[this.current].indexOf(number);
  }

  /** Is what was copied still in the feed? */
  isCurrent(): boolean {
    return this.feeds[this.current].isCurrent();
  }

  advance(words: number): void {
    this.feeds[this.current].advance(words);
  }

  /** The parent's gate, as far as we know. We look for a newer one only if the known one is below `wanted`. */
  gateFor(wanted: number): number {
    if (this.gate < wanted) this.takeGates();
    return this.gate;
  }

  /** The same for the parent's recoverable index. */
  recoverableFor(wanted: number): number {
    if (this.recoverable < wanted) this.takeGates();
    return this.recoverable;
  }

  private takeGates(): void {
    for (const feed of this.feeds) {
      if (!feed.takeGates()) continue;
      this.gate = Math.max(this.gate, feed.gateOf(FEED_GATES.strict));
      this.recoverable = Math.max(this.recoverable, feed.gateOf(FEED_GATES.recoverable));
    }
  }

  /** The member of the parent group whose feed we read. */
  get writer(): number {
    return this.current;
  }

  rewind(): void {
    for (const feed of this.feeds) feed.rewind();
  }
}
