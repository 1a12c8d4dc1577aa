/**
 * Where a leader finds new messages (paper step 2.2): one window per client, and one per member of
 * the parent group. What has been taken already is known from the log alone, so the next leader goes
 * on exactly where this one stopped.
 */

import {
  distance,
  extend,
  framedWords,
  numberAt,
  ringAt,
  type Window,
} from '../../memory/record.js';
import { FEED_START, INBOX_CONTROL } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { SlotReader } from '../leadership/slots.js';
import type { Member } from '../member.js';
import type { Counters } from './counters.js';

/** The messages of one client whose entry group is this one. */
export class ClientInbox {
  readonly window: Window;
  private readonly control: number;
  private readonly bell: number;
  private seenBell = 0;
  private seenNudge = 0;
  /** May there be something in it? */
  isWaiting = true;

  constructor(
    private readonly member: Member,
    readonly client: number,
  ) {
    const { layout, memory } = member.edges;
    this.control = layout.inboxControl(client);
    this.bell = layout.bell(client);
    const { salt } = layout.sizes;
    this.window = ringAt(memory.own, layout.inboxRing(client), layout.inboxWords, salt);
  }

  get session(): number {
    return this.window.words[this.control + INBOX_CONTROL.session];
  }

  /** True if the client rang since we looked last, or something was left then. */
  hasRung(): boolean {
    const bell = this.window.words[this.bell];
    if (bell !== this.seenBell) {
      this.seenBell = bell;
      this.isWaiting = true;
      this.member.edges.memory.readFence();
    }
    return this.isWaiting;
  }

  /** Words of the client's next message if it is there, else 0. A newer session starts afresh. */
  next(proposed: Counters): number {
    const { session, client, member } = this;
    if (session === 0) return 0;
    if (session > proposed.session[client]) {
      if (proposed.session[client] !== 0) member.edges.observer.transition('session replaced');
      proposed.open(client, session, member.layout.sizes.origin);
    }
    // Only a record with both its ends is a message, and only if its check agrees once it was copied (H19).
    return framedWords(
      this.window,
      proposed.nextPosition[client],
      proposed.session[client],
      proposed.nextNumber[client],
      member.layout.inboxRecordWordsMax,
    );
  }

  /** True once whenever the client says that it has waited too long for replies. */
  isNudged(): boolean {
    const nudge = this.window.words[this.control + INBOX_CONTROL.nudge];
    if (nudge === this.seenNudge) return false;
    this.seenNudge = nudge;
    return true;
  }
}

/**
 * What one member of the parent group has forwarded while it led. All up to the end that we were told was posted
 * before, so it need not be checked; but what we have not taken may be dropped and overwritten when others have.
 */
class FeedReader {
  readonly window: Window;
  private readonly start: SlotReader;
  private readonly end: number;
  private epoch = NO_BALLOT;
  position: number;
  /** Where it ends, as we were told when we looked last. */
  private endPosition: number;
  /** An index not far from those in the feed. */
  private near = 0;

  constructor(
    private readonly member: Member,
    parentMember: number,
  ) {
    const { layout, memory, overlay } = member.edges;
    const { origin } = layout.sizes;
    const salt = layout.logSalt(overlay.parent(member.group));
    this.window = ringAt(memory.own, layout.feedRing(parentMember), layout.feedWords, salt);
    this.start = new SlotReader(memory.own, layout.feedStart(parentMember), FEED_START.words);
    this.end = layout.feedEnd(parentMember);
    this.position = origin | 0;
    this.endPosition = this.position;
  }

  /** Words of the first entry from this index of the parent's log on, if this feed has it, else 0. */
  find(next: number): number {
    const { observer, memory } = this.member.edges;
    if (this.start.poll()) {
      this.restart();
      // An end that was told before this start is none of its.
      memory.readFence();
    }
    if (this.epoch === NO_BALLOT) return 0;
    this.endPosition = this.window.words[this.end];
    memory.readFence();
    for (;;) {
      const words = this.wordsAt(this.position);
      if (words === 0) return 0;
      if (this.indexOf(numberAt(this.window, this.position)) >= next) return words;
      // Decided already, or taken from another member's feed.
      if (!this.stands()) return 0;
      observer.transition('stale feed skipped');
      this.advance(words);
    }
  }

  /** Words of the entries from the one that was found on: so many entries and words at most. */
  stretch(entriesMax: number, wordsMax: number): number {
    let words = 0;
    for (let count = 0; count < entriesMax; count++) {
      const next = this.wordsAt((this.position + words) | 0);
      if (next === 0 || words + next > wordsMax) break;
      words += next;
    }
    return words;
  }

  private wordsAt(position: number): number {
    if (distance(this.endPosition, position) <= 0) return 0;
    const { window, epoch, member } = this;
    const { entryWordsMax } = member.layout;
    return framedWords(window, position, epoch, numberAt(window, position), entryWordsMax);
  }

  /** The index in the parent's log of an entry with this number. */
  indexOf(number: number): number {
    return extend(this.near, number);
  }

  /** Is what was read just now what the feed holds? Its writer tells where it begins before it overwrites anything. */
  stands(): boolean {
    this.member.edges.memory.readFence();
    return this.start.isUnchanged();
  }

  /** Begin again from the oldest record: what was taken under an earlier ballot may have been lost. */
  rewind(): void {
    this.epoch = NO_BALLOT;
    this.start.forget();
  }

  advance(words: number): void {
    this.position = (this.position + words) | 0;
  }

  /** The writer names a new start: begin there unless we are past it. */
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
}

/** All that the parent's members have forwarded. */
export class ParentInbox {
  private readonly feeds: FeedReader[] = [];
  private current = 0;

  constructor(member: Member) {
    if (member.edges.overlay.parent(member.group) < 0) return;
    for (let other = 0; other < member.replicas; other++)
      this.feeds.push(new FeedReader(member, other));
  }

  rewind(): void {
    for (const feed of this.feeds) feed.rewind();
  }

  /** Words of the first entry from this index on, from whichever feed has it; `window` and `position` say where. */
  find(index: number): number {
    for (let turn = 0; turn < this.feeds.length; turn++) {
      const words = this.feeds[this.current].find(index);
      if (words > 0) return words;
      this.current = (this.current + 1) % this.feeds.length;
    }
    return 0;
  }

  /** Words of the entries from that one on: so many entries and words at most. */
  stretch(entriesMax: number, wordsMax: number): number {
    return this.feeds[this.current].stretch(entriesMax, wordsMax);
  }

  /** The member of the parent group whose feed we read. */
  get writer(): number {
    return this.current;
  }

  get window(): Window {
    return this.feeds[this.current].window;
  }

  get position(): number {
    return this.feeds[this.current].position;
  }

  /** The index in the parent's log of an entry with this number. */
  indexOf(number: number): number {
    return this.feeds[this.current].indexOf(number);
  }

  /** Is what was copied what it was? */
  stands(): boolean {
    return this.feeds[this.current].stands();
  }

  taken(words: number): void {
    this.feeds[this.current].advance(words);
  }

  /** It was not what it seemed, and may never be if its writer has died: look first at another feed next time. */
  turnAway(): void {
    this.current = (this.current + 1) % this.feeds.length;
  }
}
