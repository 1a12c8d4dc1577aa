/**
 * A leader's outgoing timestamps: for each group a stream with the same contents at all replicas of the group. The leader keeps
 * a copy of each stream, its `mirror`. New timestamps are posted at once, in one write to each replica. A timestamp is
 * *confirmed* when f+1 replicas of each destination hold it. The leader then publishes a count, and replicas read timestamps
 * only up to that count.
 *
 * Here we depart from published RamCast, in its favour. In the paper every replica acknowledges the timestamps of a message to
 * several groups to all other replicas, because a completion informs only the poster; a leader waits for f+1 acknowledgements
 * from each destination. Here the poster counts f+1 completions, and its confirmed count replaces the acknowledgements. The
 * guarantee is the same: every timestamp of a delivered message is at f+1 replicas of each destination, so a new leader finds it
 * and advances its clock accordingly. The number of delays is the same: the client's write, the timestamps, the count. The cost
 * is lower: one count from each leader instead of acknowledgements from each replica, and no follower has to run before a
 * message is delivered. For messages to one group RamCast itself does this. With `acknowledges` the published protocol runs:
 * the count for other groups is published at once, and `acks.ts` does the rest.
 *
 * Writes to the own group are guarded, as in the paper: only the leader may make them.
 *
 * Invariant: a timestamp is not overwritten before all replicas of the group have taken it.
 */
import { NO_TAG, OPEN, type ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { NO_SALT, postRange, ringAt, type Window } from 'tram-multicast/internal/memory/record.js';
import { contains } from 'tram-multicast/internal/protocol/overlay.js';
import { assert, type Edges, Todo } from './edges.js';
import { STAMP, TOLD } from './layout.js';
import type { Ordering } from './ordering.js';

/** The guard under which followers permit their leader's writes. */
export const LEADERS_KEY = 1;

/** The most flushes in flight; a power of two. */
const FLUSHES = 16;
/** The tag of a completion is the number of its flush, modulo this. */
const TAGS = 1 << 29;

/** The stream to one group. */
class Stream {
  /** The number of confirmed timestamps. */
  confirmed: number;
  /** By replica: the last flush that it holds. */
  readonly held: Float64Array;
  readonly followers: readonly ParticipantId[];

  constructor(
    readonly mirror: Window,
    readonly peers: readonly ParticipantId[],
    leader: ParticipantId,
    readonly guard: number,
    firstIndex: number,
  ) {
    this.followers = peers.filter((peer) => peer !== leader);
    this.confirmed = firstIndex | 0;
    this.held = new Float64Array(peers.length);
  }
}

/** The timestamps that were posted together, to all their groups. */
class Flush {
  readonly groups: Todo;
  /** By group: the end of its stream at that time. */
  readonly ends: Int32Array;

  constructor(groups: number) {
    this.groups = new Todo(groups);
    this.ends = new Int32Array(groups);
  }
}

export class Proposals {
  private readonly streams: Stream[] = [];
  private readonly mirrors: Int32Array;
  /** By group: the number of timestamps in its stream, and of those posted. */
  private readonly ends: Int32Array;
  private readonly sent: Int32Array;
  /** Groups with unsent timestamps, and groups whose followers do not know the latest confirmed count. */
  private readonly news: Todo;
  private readonly untold: Todo;
  private readonly flushes: Flush[] = [];
  /** Flushes are numbered from 1. */
  private firstFlush = 1;
  private nextFlush = 1;
  private inFlight = 0;
  private readonly streamWords: number;
  private readonly capacity: number;
  private readonly quorum: number;
  /** A lower bound for the free room in every stream. */
  private room = 0;
  private readonly word = new Int32Array(1);
  private readonly timestamp = new Float64Array(1);
  private readonly timestampWords = new Int32Array(this.timestamp.buffer);
  private toldDelivered: number;
  private readonly acknowledges: boolean;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
  ) {
    const { layout, memory } = edges;
    const { groups, replicas, firstIndex } = layout.sizes;
    this.toldDelivered = firstIndex | 0;
    this.acknowledges = layout.sizes.acknowledges;
    this.streamWords = layout.streamWords;
    this.capacity = layout.streamWords / STAMP.words;
    this.quorum = (replicas >> 1) + 1;
    this.mirrors = memory.scratch(groups * layout.streamWords);
    this.ends = new Int32Array(groups).fill(firstIndex);
    this.sent = new Int32Array(groups).fill(firstIndex);
    this.news = new Todo(groups);
    this.untold = new Todo(groups);
    for (let i = 0; i < FLUSHES; i++) this.flushes.push(new Flush(groups));
    for (let other = 0; other < groups; other++) {
      const members = Array.from({ length: replicas }, (_, i) =>
        layout.replicaParticipant(other, i),
      );
      const peers = members.filter((peer) => peer !== memory.self);
      const at = other * layout.streamWords;
      const mirror = ringAt(this.mirrors, at, layout.streamWords, NO_SALT);
      const guard = other === group ? LEADERS_KEY : OPEN;
      this.streams.push(
        new Stream(mirror, peers, layout.leaderParticipant(other), guard, firstIndex),
      );
    }
  }

  /** Is there room for a timestamp in every stream? */
  get hasRoom(): boolean {
    return this.room > 0;
  }

  /** Is there room in the streams to these groups? Updates the lower bound. */
  hasRoomFor(low: number, high: number): boolean {
    this.room = this.capacity;
    let isBlocked = false;
    for (let group = 0; group < this.streams.length; group++) {
      const room = this.roomIn(group);
      if (room < this.room) this.room = room;
      if (room > 0 || !contains(low, high, group)) continue;
      isBlocked = true;
      // Followers read at their own pace, and up to the count that they know. Now the leader waits for them.
      this.tellFollowers(group);
      this.wakeAll(group);
    }
    return !isBlocked;
  }

  private roomIn(group: number): number {
    const { layout, memory } = this.edges;
    const { confirmed, peers } = this.streams[group];
    const end = this.ends[group];
    // A leader without followers has no readers, but still reads its own timestamps.
    let room = this.capacity - ((end - confirmed) | 0);
    for (const peer of peers) {
      const unread = (end - memory.own[layout.read(peer)]) | 0;
      room = Math.min(room, this.capacity - unread);
    }
    return room;
  }

  private wakeAll(group: number): void {
    for (const peer of this.streams[group].peers) this.edges.memory.wake(peer, true);
  }

  /** Adds this group's timestamp for a message to the streams of all its destinations. */
  propose(slot: number, sequence: number, timestamp: number, low: number, high: number): void {
    this.timestamp[0] = timestamp;
    for (let rest = low; rest !== 0; rest &= rest - 1) {
      this.append(31 - Math.clz32(rest & -rest), slot, sequence);
    }
    for (let rest = high; rest !== 0; rest &= rest - 1) {
      this.append(63 - Math.clz32(rest & -rest), slot, sequence);
    }
    if (this.room > 0) this.room--;
  }

  private append(group: number, slot: number, sequence: number): void {
    const { mirrors, streamWords, timestampWords } = this;
    const end = this.ends[group];
    const place = group * streamWords + ((end * STAMP.words) & (streamWords - 1));
    mirrors[place + STAMP.slot] = slot;
    mirrors[place + STAMP.sequence] = sequence;
    mirrors[place + STAMP.timestamp] = timestampWords[0];
    mirrors[place + STAMP.timestamp + 1] = timestampWords[1];
    this.ends[group] = end + 1;
    this.news.add(group);
  }

  /** Posts new timestamps to all replicas of each group, without waiting. */
  send(): void {
    const { news } = this;
    if (news.count === 0 || this.nextFlush - this.firstFlush === FLUSHES) return;
    const { memory, layout } = this.edges;
    const to = layout.stream(this.group);
    const number = this.nextFlush++;
    const tag = 1 + (number % TAGS);
    const flush = this.flushes[number % FLUSHES];
    for (let i = 0; i < news.count; i++) {
      const group = news.at(i);
      const { peers, mirror, guard } = this.streams[group];
      const from = this.sent[group] * STAMP.words;
      const end = this.ends[group] * STAMP.words;
      const isAwaited = !this.acknowledges || group === this.group;
      for (const peer of peers) {
        postRange(memory, peer, to, mirror, from, end, guard, NO_TAG, isAwaited ? tag : NO_TAG);
      }
      this.sent[group] = this.ends[group];
      if (isAwaited) {
        flush.ends[group] = this.ends[group];
        flush.groups.add(group);
        this.inFlight += peers.length;
      } else this.tell(group, this.ends[group]);
    }
    news.clear();
  }

  /** A write has completed. */
  onWritten(peer: ParticipantId, tag: number, ok: boolean): void {
    assert(ok, 'every write succeeds without failures');
    this.inFlight--;
    const last = this.nextFlush - 1;
    // In shared memory all writes of a flush complete at once, so the holders need not be counted.
    if (this.inFlight === 0) return;
    const { peers, held } = this.streams[Math.floor(peer / this.edges.layout.sizes.replicas)];
    held[peers.indexOf(peer)] = last - ((last - (tag - 1)) & (TAGS - 1));
  }

  /**
   * Confirms, flush by flush, the timestamps that f+1 replicas of each destination hold. The leaders of other groups are
   * notified at once.
   */
  confirm(ordering: Ordering): void {
    for (; this.firstFlush < this.nextFlush; this.firstFlush++) {
      const number = this.firstFlush;
      const flush = this.flushes[number % FLUSHES];
      if (this.inFlight > 0 && !this.isHeld(flush, number)) return;
      for (let i = 0; i < flush.groups.count; i++) {
        const group = flush.groups.at(i);
        const end = flush.ends[group];
        if (group === this.group) this.settle(ordering, end);
        this.tell(group, end);
      }
      flush.groups.clear();
    }
  }

  /** Do f+1 replicas of each of its groups hold the flush? */
  private isHeld({ groups }: Flush, number: number): boolean {
    for (let i = 0; i < groups.count; i++) {
      const group = groups.at(i);
      let holders = group === this.group ? 1 : 0;
      for (const last of this.streams[group].held) if (last >= number) holders++;
      if (holders < this.quorum) return false;
    }
    return true;
  }

  private settle(ordering: Ordering, end: number): void {
    const { mirrors, streamWords, group } = this;
    const at = group * streamWords;
    for (let i = this.streams[group].confirmed; i !== end; i = (i + 1) | 0) {
      const place = at + ((i * STAMP.words) & (streamWords - 1));
      const message = ordering.find(mirrors[place + STAMP.slot], mirrors[place + STAMP.sequence]);
      ordering.know(message);
    }
  }

  /** Publishes the confirmed count to the leader of a group. Followers, unless they acknowledge, get it with `publish`. */
  private tell(group: number, confirmed: number): void {
    const { memory, layout } = this.edges;
    this.streams[group].confirmed = confirmed;
    if (this.acknowledges) {
      this.tellFollowers(group);
      this.wakeAll(group);
    } else this.untold.add(group);
    if (group === this.group) return;
    const leader = layout.leaderParticipant(group);
    this.word[0] = confirmed;
    memory.write(leader, layout.told(this.group) + TOLD.confirmed, this.word, 0, 1, OPEN, NO_TAG);
    memory.wake(leader, true);
  }

  private tellFollowers(group: number): void {
    const { memory, layout } = this.edges;
    const { followers, guard, confirmed } = this.streams[group];
    const to = layout.told(this.group) + TOLD.confirmed;
    this.word[0] = confirmed;
    for (const peer of followers) memory.write(peer, to, this.word, 0, 1, guard, NO_TAG);
  }

  /**
   * Publishes the confirmed counts to followers, and the delivered count to the own ones. Followers are woken urgently only if
   * room gets scarce. They deliver nothing before the leader has, so they lose nothing by waiting.
   */
  publish(delivered: number): void {
    if (this.toldDelivered === delivered) return;
    this.toldDelivered = delivered;
    for (let i = 0; i < this.untold.count; i++) this.tellFollowers(this.untold.at(i));
    this.untold.clear();
    const { memory, layout } = this.edges;
    const { followers, guard } = this.streams[this.group];
    const end = this.ends[this.group];
    this.word[0] = delivered;
    // A separate write: the confirmed count must arrive first.
    const to = layout.told(this.group) + TOLD.delivered;
    for (const peer of followers) {
      memory.write(peer, to, this.word, 0, 1, guard, NO_TAG);
      const unread = (end - memory.own[layout.read(peer)]) | 0;
      memory.wake(peer, unread * 2 > this.capacity);
    }
  }
}
