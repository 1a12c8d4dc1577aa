/**
 * A leader's timestamps on their way out: for each group a stream that looks the same at all its replicas, and of
 * which the leader keeps a copy, `mirror`. New timestamps go out at once, one write to each replica for all
 * of them. When f+1 replicas of each destination hold one, it is *confirmed*: that is told with a count, and only
 * then does anybody read it.
 *
 * Published RamCast lets each replica acknowledge to all others that it has a message's timestamps, since there
 * nobody else knows: a completion tells the poster alone. Acknowledgements are what it counts to f+1 in every
 * destination. Here the poster's completions are counted to f+1 instead, and the count that confirms takes the place
 * of the acknowledgements. It says the same (every timestamp of a delivered message is at f+1 replicas of each
 * destination, so whoever would lead next there finds it, and a clock that is as far), it takes as many delays
 * (client's write, timestamps, word), and it costs RamCast less: k counts for a message to k groups where there
 * were k²n² acknowledgements, and no follower has to run before a message is delivered. Within the group this is
 * what RamCast does for messages to one group. Writes to the own group are guarded, as there: only the leader
 * may make them.
 *
 * Invariant: a timestamp is not overwritten before all replicas of the group have taken it.
 */
import { OPEN, type ProcessId } from '../../memory/contract.js';
import { postRange, ringAt, type Window } from '../../memory/window.js';
import { contains } from '../../protocol/overlay.js';
import { assert, type Edges } from './edges.js';
import { STAMP, TOLD } from './layout.js';
import type { Ordering } from './ordering.js';

/** What followers permit: their leader's writes. */
export const LEADERS_KEY = 1;

const STAMP_BITS = 2;
const WIDE = 4294967296;
/** A completion tells how many proposals were written (modulo 2³⁰: more are never under way). */
const TAG_MASK = (1 << 30) - 1;
/** Nobody waits for it. */
const NO_TAG = 0;

/** The stream to one group. */
class Stream {
  readonly mirror: Window;
  /** How many timestamps are in it, were posted, and are confirmed. */
  end: number;
  sent: number;
  confirmed: number;
  isListed = false;
  /** Which of all proposals each one is, by its place. */
  readonly ordinals: Int32Array;
  /** How many of all proposals were made when the last were posted, and of how many each replica has its share. */
  sentProposals: number;
  readonly held: Float64Array;
  underWay = 0;

  constructor(
    { memory, layout }: Edges,
    readonly peers: readonly ProcessId[],
    readonly guard: number,
  ) {
    const { origin } = layout.sizes;
    const words = layout.streamWords;
    this.mirror = ringAt(memory.scratch(words), 0, words, 0);
    this.end = this.sent = this.confirmed = origin | 0;
    this.ordinals = new Int32Array(words / STAMP.words);
    this.sentProposals = origin;
    this.held = new Float64Array(peers.length).fill(origin);
  }
}

export class Proposals {
  private readonly streams: Stream[] = [];
  /** Streams with something that is not confirmed. */
  private readonly listed: number[] = [];
  private count: number;
  private sentCount: number;
  private underWay = 0;
  private readonly capacity: number;
  private readonly quorum: number;
  /** At least so much room in every stream. */
  private room = 0;
  private readonly word = new Int32Array(1);
  private toldDelivered: number;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
  ) {
    const { layout, memory } = edges;
    const { groups, replicas, origin } = layout.sizes;
    this.count = this.sentCount = origin;
    this.toldDelivered = origin | 0;
    this.capacity = layout.streamWords / STAMP.words;
    this.quorum = (replicas >> 1) + 1;
    for (let other = 0; other < groups; other++) {
      const peers = Array.from({ length: replicas }, (_, i) => layout.replicaProcess(other, i));
      const isOwn = other === group;
      this.streams.push(
        new Stream(
          edges,
          isOwn ? peers.filter((peer) => peer !== memory.self) : peers,
          isOwn ? LEADERS_KEY : OPEN,
        ),
      );
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
      if (room === 0 && contains(low, high, group)) isBlocked = this.hurry(group);
    }
    return !isBlocked;
  }

  private roomIn(group: number): number {
    const { layout, memory } = this.edges;
    const { end, confirmed, peers } = this.streams[group]!;
    // A leader without followers has no readers, but still looks at its own.
    let room = this.capacity - ((end - confirmed) | 0);
    for (const peer of peers) {
      const unread = (end - memory.own[layout.read(peer)]!) | 0;
      room = Math.min(room, this.capacity - unread);
    }
    return room;
  }

  /** Followers read when they have the time; now somebody waits for them. */
  private hurry(group: number): boolean {
    for (const peer of this.streams[group]!.peers) this.edges.memory.wake(peer, true);
    return true;
  }

  /** This group's timestamp for a message, to all its destinations. */
  propose(slot: number, sequence: number, timestamp: number, low: number, high: number): void {
    const stampLow = timestamp | 0;
    const stampHigh = Math.floor(timestamp / WIDE);
    for (let rest = low; rest !== 0; rest &= rest - 1) {
      this.append(31 - Math.clz32(rest & -rest), slot, sequence, stampLow, stampHigh);
    }
    for (let rest = high; rest !== 0; rest &= rest - 1) {
      this.append(63 - Math.clz32(rest & -rest), slot, sequence, stampLow, stampHigh);
    }
    this.count++;
    if (this.room > 0) this.room--;
  }

  private append(
    group: number,
    slot: number,
    sequence: number,
    stampLow: number,
    stampHigh: number,
  ): void {
    const stream = this.streams[group]!;
    const { words, mask } = stream.mirror;
    const place = (stream.end * STAMP.words) & mask;
    words[place + STAMP.slot] = slot;
    words[place + STAMP.sequence] = sequence;
    words[place + STAMP.low] = stampLow;
    words[place + STAMP.high] = stampHigh;
    stream.ordinals[place >> STAMP_BITS] = this.count | 0;
    stream.end = (stream.end + 1) | 0;
    if (stream.isListed) return;
    stream.isListed = true;
    this.listed.push(group);
  }

  /** Post what is new to all replicas of each group; nobody is waited for. */
  send(): void {
    if (this.sentCount === this.count) return;
    this.sentCount = this.count;
    const { memory, layout } = this.edges;
    const to = layout.stream(this.group);
    const tag = 1 + (this.count & TAG_MASK);
    for (const group of this.listed) {
      const stream = this.streams[group]!;
      if (stream.sent === stream.end) continue;
      const { peers, mirror, guard } = stream;
      const from = (stream.sent * STAMP.words) | 0;
      const end = (stream.end * STAMP.words) | 0;
      for (const peer of peers) postRange(memory, peer, to, mirror, from, end, guard, NO_TAG, tag);
      stream.sent = stream.end;
      stream.sentProposals = this.count;
      stream.underWay += peers.length;
      this.underWay += peers.length;
    }
  }

  /** A write has completed. */
  onWritten(peer: ProcessId, tag: number, ok: boolean): void {
    assert(ok, 'a write to a replica that lives succeeds');
    const { replicas } = this.edges.layout.sizes;
    const group = Math.floor(peer / replicas);
    const stream = this.streams[group]!;
    const place = stream.peers.indexOf(peer);
    const behind = (stream.sentProposals - (tag - 1)) & TAG_MASK;
    stream.held[place] = stream.sentProposals - behind;
    stream.underWay--;
    this.underWay--;
  }

  /**
   * What f+1 replicas of each destination hold is confirmed, in the order of the proposals. Other groups are told at
   * once, and their leaders woken.
   */
  confirm(ordering: Ordering): void {
    const { listed } = this;
    if (listed.length === 0) return;
    const all = this.underWay === 0;
    const level = all ? this.sentCount : this.confirmedProposals();
    let left = 0;
    for (const group of listed) {
      const stream = this.streams[group]!;
      const before = stream.confirmed;
      stream.confirmed = all ? stream.sent : confirmedBelow(stream, level);
      if (group === this.group) {
        const { words, mask } = stream.mirror;
        for (let i = before; i !== stream.confirmed; i = (i + 1) | 0) {
          const place = (i * STAMP.words) & mask;
          ordering.settle(words[place + STAMP.slot]!, words[place + STAMP.sequence]!);
        }
      }
      if (stream.confirmed !== before) this.tell(group, stream);
      if (stream.confirmed === stream.end) stream.isListed = false;
      else listed[left++] = group;
    }
    listed.length = left;
  }

  private confirmedProposals(): number {
    let level = this.sentCount;
    for (const group of this.listed) {
      const stream = this.streams[group]!;
      if (stream.underWay > 0) level = Math.min(level, this.heldByQuorum(group, stream));
    }
    return level;
  }

  /** Of how many proposals do f+1 replicas have the share of their group? */
  private heldByQuorum(group: number, stream: Stream): number {
    const { held, sentProposals } = stream;
    let highest = 0;
    for (let i = -1; i < held.length; i++) {
      // A replica that has everything that was sent lacks nothing of what was not; the leader has it all.
      const level = i < 0 || held[i] === sentProposals ? this.sentCount : held[i]!;
      let holders = group === this.group ? 1 : 0;
      for (const other of held) if (other >= level || other === sentProposals) holders++;
      if (holders >= this.quorum && level > highest) highest = level;
    }
    return highest;
  }

  private tell(group: number, stream: Stream): void {
    const { memory, layout } = this.edges;
    const { peers, guard } = stream;
    this.word[0] = stream.confirmed;
    const to = layout.told(this.group) + TOLD.confirmed;
    for (const peer of peers) memory.write(peer, to, this.word, 0, 1, guard, NO_TAG);
    if (group !== this.group) memory.wake(layout.leaderProcess(group), true);
  }

  /** Tell the followers how much was delivered; nobody waits for them, unless room gets scarce. */
  publish(delivered: number): void {
    if (this.toldDelivered === delivered) return;
    this.toldDelivered = delivered;
    const { memory, layout } = this.edges;
    const { peers, guard, end } = this.streams[this.group]!;
    this.word[0] = delivered;
    // Not together with the other word, which must be there first.
    const to = layout.told(this.group) + TOLD.delivered;
    for (const peer of peers) {
      memory.write(peer, to, this.word, 0, 1, guard, NO_TAG);
      const unread = (end - memory.own[layout.read(peer)]!) | 0;
      memory.wake(peer, unread * 2 > this.capacity);
    }
  }
}

/** How many timestamps of the stream are among the first `level` proposals. */
function confirmedBelow(stream: Stream, level: number): number {
  const { ordinals, sent } = stream;
  let i = stream.confirmed;
  while (i !== sent && ((ordinals[i & (ordinals.length - 1)]! - level) | 0) < 0) i = (i + 1) | 0;
  return i;
}
