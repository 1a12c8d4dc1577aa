/**
 * Where a leader finds new messages (paper step 2.2): one window per client, and one per member of
 * the parent group. What has been taken already is known from the log alone, so the next leader goes
 * on exactly where this one stopped.
 */
import { INBOX_CONTROL, OLDEST } from '../memory/layout.js';
import { distance, extend, ringAt, type Window, wordsOf } from '../memory/window.js';
import type { Counters } from './counters.js';
import type { Member } from './member.js';
import { SlotReader } from './slots.js';

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
    return this.window.words[this.control + INBOX_CONTROL.session]!;
  }

  /** True if the client rang since we looked last, or something was left then. */
  hasRung(): boolean {
    const bell = this.window.words[this.bell]!;
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
    if (session > proposed.session[client]!) {
      if (proposed.session[client] !== 0) member.edges.observer.transition('session replaced');
      proposed.open(client, session, member.layout.sizes.origin);
    }
    return member.edges.rules.recordWords(
      this.window,
      proposed.nextPosition[client]!,
      proposed.session[client]!,
      proposed.nextNumber[client]!,
      member.layout.inboxRecordWordsMax,
    );
  }

  /** True once whenever the client says that it has waited too long for replies. */
  isNudged(): boolean {
    const nudge = this.window.words[this.control + INBOX_CONTROL.nudge]!;
    if (nudge === this.seenNudge) return false;
    this.seenNudge = nudge;
    return true;
  }
}

/** What one member of the parent group has forwarded while it led. */
class FeedReader {
  readonly window: Window;
  private readonly oldest: SlotReader;
  epoch = 0;
  number: number;
  position: number;

  constructor(
    private readonly member: Member,
    parentMember: number,
  ) {
    const { layout, memory } = member.edges;
    const { salt } = layout.sizes;
    this.window = ringAt(memory.own, layout.feedRing(parentMember), layout.feedWords, salt);
    this.oldest = new SlotReader(memory.own, layout.feedOldest(parentMember), OLDEST.words);
    this.number = layout.sizes.origin;
    this.position = layout.sizes.origin | 0;
  }

  /** Words of the parent's message `number` if this feed has it, else 0. */
  find(number: number): number {
    const { rules, observer } = this.member.edges;
    const wordsMax = this.member.layout.inboxRecordWordsMax;
    if (this.oldest.poll()) this.restart(number);
    while (this.epoch !== 0) {
      const words = rules.recordWords(
        this.window,
        this.position,
        this.epoch,
        this.number,
        wordsMax,
      );
      if (words === 0 || this.number > number) return 0;
      if (this.number === number) return words;
      // Decided already, or taken from another member's feed.
      if (wordsOf(this.window, this.position, this.epoch, this.number, wordsMax) === 0) return 0;
      observer.transition('stale feed skipped');
      this.advance(words);
    }
    return 0;
  }

  /** Begin again from the oldest record: what was taken under an earlier ballot may have been lost. */
  rewind(): void {
    this.epoch = 0;
    this.oldest.forget();
  }

  advance(words: number): void {
    this.number++;
    this.position = (this.position + words) | 0;
  }

  /** The writer names a new oldest record: begin there unless we are past it. */
  private restart(near: number): void {
    const epoch = this.oldest.body(OLDEST.epoch);
    const position = this.oldest.body(OLDEST.position);
    if (epoch === this.epoch && distance(position, this.position) < 0) return;
    this.epoch = epoch;
    this.position = position;
    this.number = extend(near, this.oldest.body(OLDEST.number));
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

  /** Words of the parent's message `number`, from whichever feed has it; `window` and `position` say where. */
  next(number: number): number {
    for (let turn = 0; turn < this.feeds.length; turn++) {
      const words = this.feeds[this.current]!.find(number);
      if (words > 0) return words;
      this.current = (this.current + 1) % this.feeds.length;
    }
    return 0;
  }

  /** The member of the parent group whose feed we read. */
  get writer(): number {
    return this.current;
  }

  get window(): Window {
    return this.feeds[this.current]!.window;
  }

  get position(): number {
    return this.feeds[this.current]!.position;
  }

  get epoch(): number {
    return this.feeds[this.current]!.epoch;
  }

  taken(words: number): void {
    this.feeds[this.current]!.advance(words);
  }

  /** It was not whole, and may never be if its writer has died: look first at another feed next time. */
  turnAway(): void {
    this.current = (this.current + 1) % this.feeds.length;
  }
}
