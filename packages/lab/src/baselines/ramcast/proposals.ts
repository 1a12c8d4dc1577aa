/**
 * A leader's timestamps on their way out: for each group a stream that looks the same at all its replicas, and of
 * which the leader keeps a copy, `mirror`. New timestamps go out at once, one write to each replica for all
 * of them. When f+1 replicas of each destination hold one, it is *confirmed*: that is told with a count, and only
 * then does anybody read it.
 *
 * This is where we depart from published RamCast, in its favour. There, for a message to several groups, every
 * replica acknowledges to all others that it has the timestamps, since a completion tells the poster alone, and f+1
 * acknowledgements of each destination are waited for. Here the poster's completions are counted to f+1 instead, and the
 * count that confirms takes the place of the acknowledgements. It says the same: every timestamp of a delivered message
 * is at f+1 replicas of each destination, so whoever would lead next there finds it, and a clock that is as far. It takes
 * as many delays: the client's write, the timestamps, the count. And it costs less: a count from each leader where there
 * were acknowledgements from each replica, and no follower has to run before a message is delivered. For messages to one
 * group it is what RamCast itself does. With `acknowledges` it is done as published: timestamps to other groups
 * are told of at once, and acks.ts does the rest.
 *
 * Writes to the own group are guarded, as there: only the leader may make them.
 *
 * Invariant: a timestamp is not overwritten before all replicas of the group have taken it.
 */
import { OPEN, type ProcessId } from 'tram-multicast/internal/memory/contract.js';
import { postRange, ringAt, type Window } from 'tram-multicast/internal/memory/record.js';
import { contains } from 'tram-multicast/internal/protocol/overlay.js';
import { assert, type Edges, Todo } from './edges.js';
import { STAMP, TOLD } from './layout.js';
import type { Ordering } from './ordering.js';

/** What followers permit: their leader's writes. */
export const LEADERS_KEY = 1;

/** Flushes that may be under way at one time; a power of two. */
const FLUSHES = 16;
/** Nobody waits for it. */
const NO_TAG = 0;
/** A completion tells its flush, modulo this. */
const TAGS = 1 << 30;

/** The stream to one group. */
class Stream {
  /** How many of its timestamps are confirmed. */
  confirmed: number;
  /** By replica: the last flush that it has its share of. */
  readonly held: Float64Array;
  readonly followers: readonly ProcessId[];

  constructor(
    readonly mirror: Window,
    readonly peers: readonly ProcessId[],
    leader: ProcessId,
    readonly guard: number,
    origin: number,
  ) {
    this.followers = peers.filter((peer) => peer !== leader);
    this.confirmed = origin | 0;
    this.held = new Float64Array(peers.length);
  }
}

/** What was posted at one time, to all groups concerned. */
class Flush {
  readonly groups: Todo;
  /** By group: how long its stream was then. */
  readonly ends: Int32Array;

  constructor(groups: number) {
    this.groups = new Todo(groups);
    this.ends = new Int32Array(groups);
  }
}

export class Proposals {
  private readonly streams: Stream[] = [];
  private readonly mirrors: Int32Array;
  /** By group: how many timestamps are in its stream, and were posted. */
  private readonly ends: Int32Array;
  private readonly sent: Int32Array;
  /** Groups with something to send, and groups whose followers were not told what is confirmed. */
  private readonly news: Todo;
  private readonly untold: Todo;
  private readonly flushes: Flush[] = [];
  /** Flushes are numbered from 1. */
  private firstFlush = 1;
  private nextFlush = 1;
  private underWay = 0;
  private readonly streamWords: number;
  private readonly capacity: number;
  private readonly quorum: number;
  /** At least so much room in every stream. */
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
    const { groups, replicas, origin } = layout.sizes;
    this.toldDelivered = origin | 0;
    this.acknowledges = layout.sizes.acknowledges;
    this.streamWords = layout.streamWords;
    this.capacity = layout.streamWords / STAMP.words;
    this.quorum = (replicas >> 1) + 1;
    this.mirrors = memory.scratch(groups * layout.streamWords);
    this.ends = new Int32Array(groups).fill(origin);
    this.sent = new Int32Array(groups).fill(origin);
    this.news = new Todo(groups);
    this.untold = new Todo(groups);
    for (let i = 0; i < FLUSHES; i++) this.flushes.push(new Flush(groups));
    for (let other = 0; other < groups; other++) {
      const members = Array.from({ length: replicas }, (_, i) => layout.replicaProcess(other, i));
      const peers = members.filter((peer) => peer !== memory.self);
      const at = other * layout.streamWords;
      const mirror = ringAt(this.mirrors, at, layout.streamWords, 0);
      const guard = other === group ? LEADERS_KEY : OPEN;
      this.streams.push(new Stream(mirror, peers, layout.leaderProcess(other), guard, origin));
    }
  }

  /** Is there room for a timestamp in every stream? */
  get hasRoom(): boolean {
    return this.room > 0;
  }

  /** Look again: is there room in the streams to these groups? */
  hasRoomFor(low: number, high: number): boolean {
    this.room = this.capacity;
    let isBlocked = false;
    for (let group = 0; group < this.streams.length; group++) {
      const room = this.roomIn(group);
      if (room < this.room) this.room = room;
      if (room > 0 || !contains(low, high, group)) continue;
      isBlocked = true;
      // Followers read when they have the time, and as far as they were told; now somebody waits for them.
      this.tellFollowers(group);
      this.hurry(group);
    }
    return !isBlocked;
  }

  private roomIn(group: number): number {
    const { layout, memory } = this.edges;
    const { confirmed, peers } = this.streams[group];
    const end = this.ends[group];
    // A leader without followers has no readers, but still looks at its own.
    let room = this.capacity - ((end - confirmed) | 0);
    for (const peer of peers) {
      const unread = (end - memory.own[layout.read(peer)]) | 0;
      room = Math.min(room, this.capacity - unread);
    }
    return room;
  }

  private hurry(group: number): void {
    for (const peer of this.streams[group].peers) this.edges.memory.wake(peer, true);
  }

  /** This group's timestamp for a message, to all its destinations. */
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

  /** Post what is new to all replicas of each group; nobody is waited for. */
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
        this.underWay += peers.length;
      } else this.tell(group, this.ends[group]);
    }
    news.clear();
  }

  /** A write has completed. */
  onWritten(peer: ProcessId, tag: number, ok: boolean): void {
    assert(ok, 'a write to a replica that lives succeeds');
    this.underWay--;
    const last = this.nextFlush - 1;
    // Where memory is shared there is one at a time, and nobody has to know who was first.
    if (this.underWay === 0) return;
    const { peers, held } = this.streams[Math.floor(peer / this.edges.layout.sizes.replicas)];
    held[peers.indexOf(peer)] = last - ((last - (tag - 1)) & (TAGS - 1));
  }

  /**
   * What f+1 replicas of each destination hold is confirmed, flush by flush. Other groups are told at once, and their
   * leaders woken.
   */
  confirm(ordering: Ordering): void {
    for (; this.firstFlush < this.nextFlush; this.firstFlush++) {
      const number = this.firstFlush;
      const flush = this.flushes[number % FLUSHES];
      if (this.underWay > 0 && !this.isHeld(flush, number)) return;
      for (let i = 0; i < flush.groups.count; i++) {
        const group = flush.groups.at(i);
        const end = flush.ends[group];
        if (group === this.group) this.settle(ordering, end);
        this.tell(group, end);
      }
      flush.groups.clear();
    }
  }

  /** Is it at f+1 replicas of each group that it went to? */
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

  /** A leader waits for it; followers, unless they have to acknowledge, hear of it with `publish`. */
  private tell(group: number, confirmed: number): void {
    const { memory, layout } = this.edges;
    this.streams[group].confirmed = confirmed;
    if (this.acknowledges) {
      this.tellFollowers(group);
      this.hurry(group);
    } else this.untold.add(group);
    if (group === this.group) return;
    const leader = layout.leaderProcess(group);
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
   * Tell followers what is confirmed, and the own ones how much was delivered. Nobody waits for them, unless room gets
   * scarce. Nor do they wait for this: a message that is not delivered here can't be delivered by them.
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
    // Not together with the other word, which must be there first.
    const to = layout.told(this.group) + TOLD.delivered;
    for (const peer of followers) {
      memory.write(peer, to, this.word, 0, 1, guard, NO_TAG);
      const unread = (end - memory.own[layout.read(peer)]) | 0;
      memory.wake(peer, unread * 2 > this.capacity);
    }
  }
}
