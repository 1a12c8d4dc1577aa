/**
 * Forwarding to all child groups (paper step 2.5): one walk over the decided entries, which offers each of them to the feeds
 * of the children that it goes to (feed.ts). So an entry costs as much as it has destinations below this group, however many
 * children there are. Of the feeds, a round touches only those that got something, unless rows were read.
 *
 * The leader calls `start` when it begins to lead, and in every round `forward` and `tell`. Truncation asks what children need, and
 * says what is dropped.
 *
 * Invariants: baseIndex ≤ index ≤ decided. Every feed has all entries before `index` that go to its child, or is full.
 */
import { assert } from '../assert.js';
import type { Rows } from '../leadership/rows.js';
import type { Member } from '../member.js';
import { destinationsHigh, destinationsLow } from './counters.js';
import { type Cursor, Feed } from './feed.js';
import type { Replication } from './replication.js';

/** The feeds have not seen any count of news yet. */
const UNKNOWN = -1;

export class Forwarding implements Cursor {
  /** One for each child. */
  readonly feeds: Feed[] = [];
  /** The next entry of the log to look at. */
  index = 0;
  position = 0;
  /** By group: the feed of the child that it lies in or below. */
  private readonly feedOf: (Feed | undefined)[] = [];
  /** All groups below this one. */
  private belowLow = 0;
  private belowHigh = 0;
  /** The feeds that have something to flush or to tell: the first `touchedCount` elements. */
  private readonly touched: Feed[] = [];
  private touchedCount = 0;
  /** Does a feed owe something to child members that do not lead? They get it in the next full step. */
  owes = false;
  /** Is any feed full? It stays so until rows are read. */
  isFull = false;
  /** `rows.news` when the feeds had seen them. */
  private seenNews = UNKNOWN;
  /** May a feed have something to tell although it was not touched? With gates, which move by themselves. */
  private readonly tellsAll: boolean;

  constructor(
    member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
  ) {
    const { overlay, order, journal } = member.edges;
    this.tellsAll = order === 'strict' || journal !== undefined;
    for (let group = 0; group < overlay.groups; group++) this.feedOf.push(undefined);
    for (const [place, child] of member.children.entries()) {
      const feed = new Feed(member, rows, replication, place, this);
      this.feeds.push(feed);
      this.touched.push(feed);
      this.belowLow |= overlay.reachLow[child];
      this.belowHigh |= overlay.reachHigh[child];
      for (let group = 0; group < overlay.groups; group++)
        if (overlay.pathTo(group).includes(child)) this.feedOf[group] = feed;
    }
  }

  /** Begin under a new ballot, with the first entry of the log. */
  start(): void {
    const { replication } = this;
    this.index = replication.baseIndex;
    this.position = replication.ring.base;
    this.seenNews = UNKNOWN;
    this.owes = false;
    for (const feed of this.feeds) feed.start(replication.ballot, this);
  }

  /**
   * Offer the decided entries to the feeds. Returns how many of them go to children.
   * @param isQuick  are the leaders of the children enough, for now?
   */
  forward(isQuick: boolean): number {
    const { replication, rows } = this;
    // Whatever is told is flushed before: if a write to the leader of a child was lost, what is owed goes to the others now.
    if (this.tellsAll || (this.owes && !isQuick)) this.touchAll();
    if (rows.news !== this.seenNews) {
      this.seenNews = rows.news;
      this.isFull = false;
      for (const feed of this.feeds) {
        feed.onNews();
        this.touch(feed);
      }
    }
    let count = 0;
    while (this.index < replication.decided) {
      const words = replication.wordsAt(this.position);
      if (this.offer(words)) count++;
      this.index++;
      this.position = (this.position + words) | 0;
    }
    for (let i = 0; i < this.touchedCount; i++) {
      const feed = this.touched[i];
      feed.flush(isQuick);
      if (feed.isFull) this.isFull = true;
    }
    return count;
  }

  /** Offer the entry at the cursor to the feeds of its destinations. False if it has none below this group. */
  private offer(words: number): boolean {
    const { ring } = this.replication;
    const low = destinationsLow(ring, this.position) & this.belowLow;
    const high = destinationsHigh(ring, this.position) & this.belowHigh;
    if ((low | high) === 0) return false;
    for (let left = low; left !== 0; left &= left - 1) this.offerTo(lowest(left), words);
    for (let left = high; left !== 0; left &= left - 1) this.offerTo(32 + lowest(left), words);
    return true;
  }

  private offerTo(group: number, words: number): void {
    const feed = this.feedFor(group);
    feed.take(words);
    this.touch(feed);
  }

  private feedFor(group: number): Feed {
    const feed = this.feedOf[group];
    assert(feed !== undefined, 'every group below lies in or below a child');
    return feed;
  }

  private touch(feed: Feed): void {
    if (feed.isTouched) return;
    feed.isTouched = true;
    this.touched[this.touchedCount++] = feed;
  }

  private touchAll(): void {
    for (const feed of this.feeds) this.touch(feed);
  }

  /** Tell the child members how far the feeds go, and our gates. */
  tell(gate: number, recoverable: number, isQuick: boolean): void {
    if (!isQuick) this.owes = false;
    for (let i = 0; i < this.touchedCount; i++) {
      const feed = this.touched[i];
      feed.isTouched = false;
      feed.tell(gate, recoverable, isQuick);
      if (feed.owesEnd) this.owes = true;
    }
    this.touchedCount = 0;
  }

  /** Does any child still need this entry of the log? */
  isNeeded(index: number, position: number): boolean {
    const { ring } = this.replication;
    const low = destinationsLow(ring, position) & this.belowLow;
    const high = destinationsHigh(ring, position) & this.belowHigh;
    for (let left = low; left !== 0; left &= left - 1)
      if (index >= this.feedFor(lowest(left)).decidedByChild) return true;
    for (let left = high; left !== 0; left &= left - 1)
      if (index >= this.feedFor(32 + lowest(left)).decidedByChild) return true;
    return false;
  }

  /** The entries before this one are about to be dropped from the log: no child needs them. */
  dropBelow(index: number, position: number): void {
    const { replication, feeds } = this;
    if (feeds.length === 0) return;
    let at = replication.ring.base;
    for (let dropped = replication.baseIndex; dropped < index; dropped++) {
      const words = replication.wordsAt(at);
      const low = destinationsLow(replication.ring, at) & this.belowLow;
      const high = destinationsHigh(replication.ring, at) & this.belowHigh;
      for (let left = low; left !== 0; left &= left - 1)
        this.feedFor(lowest(left)).drop(dropped, words);
      for (let left = high; left !== 0; left &= left - 1)
        this.feedFor(32 + lowest(left)).drop(dropped, words);
      at = (at + words) | 0;
    }
    for (const feed of feeds) feed.dropTo(index, position);
  }
}

/** The number of the lowest bit that is set. */
function lowest(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
