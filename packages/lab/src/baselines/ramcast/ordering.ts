/**
 * Skeen's rule at one replica: which message is delivered next. Callers: the leader and the followers of a group, which add
 * timestamps in any order as they learn them.
 *
 * A message is *proposed* once its own group has given it a timestamp, and *final* once all its destinations have. Its final
 * timestamp is the highest of them. A final message is next if its timestamp is below those of all other final messages, and
 * below the own group's proposals for all messages that are not final: their timestamps can only rise.
 *
 * A message is identified by its slot, which its client chooses, and its sequence number. A client reuses a slot once all
 * leaders have delivered. So at a leader a slot has one message, whose number here is that of the slot. At a follower that lags
 * behind, a slot may have more messages: the others get other numbers and are linked to the first. All messages are in inboxes,
 * so their number is bounded. The bound is rarely reached, so the tables grow on demand.
 *
 * Invariant: own proposals come in the order of their timestamps.
 */
import { assert } from './edges.js';
import { STAMP } from './layout.js';

/** Memory with timestamps: its words, and the same memory as 64-bit numbers. */
export interface Stamped {
  readonly words: Int32Array;
  readonly timestamps: Float64Array;
}

/** The words of a message, half a cache line. The first two are its highest timestamp so far. */
const NODE = {
  sequence: 2,
  /** The number of unknown timestamps; negative until the number of destinations is known. */
  missing: 3,
  slot: 4,
  /** The next message of the same slot, or the next number that is free. */
  next: 5,
  /** Its position and ordinal in its client's inbox. */
  position: 6,
  ordinal: 7,
  words: 8,
} as const;

const NONE = -1;
/** Values of `missing`: there is no message with this number; the message is final. */
const FREE = -(1 << 30);
const FINAL = FREE + 1;

export class Ordering {
  private words: Int32Array;
  private timestamps: Float64Array;
  /** The first free number beyond the slots. */
  private firstFree = NONE;
  /** Proposals in their order, from the first that is not final. */
  private proposed: Int32Array;
  private proposedAt: Float64Array;
  private firstProposed = 0;
  private proposals = 0;
  /** Final messages in the order of their timestamps. Most become final in that order. */
  private final: Int32Array;
  private finalAt: Float64Array;
  private firstFinal = 0;
  private finals = 0;
  private mask: number;

  constructor(slots: number) {
    let capacity = 1;
    while (capacity < slots) capacity *= 2;
    this.mask = capacity - 1;
    this.words = new Int32Array(capacity * NODE.words);
    this.timestamps = new Float64Array(this.words.buffer);
    this.proposed = new Int32Array(capacity);
    this.proposedAt = new Float64Array(capacity);
    this.final = new Int32Array(capacity);
    this.finalAt = new Float64Array(capacity);
    for (let slot = 0; slot < slots; slot++) {
      const at = slot * NODE.words;
      this.words[at + NODE.missing] = FREE;
      this.words[at + NODE.slot] = slot;
      this.words[at + NODE.next] = NONE;
    }
    this.free(slots, capacity);
  }

  slotOf(message: number): number {
    return this.words[message * NODE.words + NODE.slot];
  }

  sequenceOf(message: number): number {
    return this.words[message * NODE.words + NODE.sequence];
  }

  positionOf(message: number): number {
    return this.words[message * NODE.words + NODE.position];
  }

  ordinalOf(message: number): number {
    return this.words[message * NODE.words + NODE.ordinal];
  }

  /** The own group has given a message its timestamp. `know` follows once it is confirmed. @returns the message */
  propose(
    slot: number,
    sequence: number,
    destinations: number,
    timestamp: number,
    position: number,
    ordinal: number,
  ): number {
    const message = this.find(slot, sequence);
    const at = message * NODE.words;
    const { words, timestamps } = this;
    const missing = words[at + NODE.missing] + destinations;
    assert(missing > 0 && missing <= destinations, 'a message is proposed once by its own group');
    words[at + NODE.missing] = missing;
    words[at + NODE.position] = position;
    words[at + NODE.ordinal] = ordinal;
    if (timestamp > timestamps[at >> 1]) timestamps[at >> 1] = timestamp;
    const place = (this.firstProposed + this.proposals++) & this.mask;
    this.proposed[place] = message;
    this.proposedAt[place] = timestamp;
    return message;
  }

  /** Another group has given timestamps: those in its stream, from one count to another. */
  stamp(stream: Stamped, at: number, mask: number, from: number, until: number): void {
    const { words: stamps, timestamps: given } = stream;
    for (let i = from; i !== until; i = (i + 1) | 0) {
      const place = at + ((i * STAMP.words) & mask);
      const message = this.find(stamps[place + STAMP.slot], stamps[place + STAMP.sequence]);
      const timestamp = given[(place + STAMP.timestamp) >> 1];
      const { words, timestamps } = this;
      const node = message * NODE.words;
      if (timestamp > timestamps[node >> 1]) timestamps[node >> 1] = timestamp;
      if (--words[node + NODE.missing] === 0) this.complete(message);
    }
  }

  /** One more timestamp of this message is confirmed. */
  know(message: number): void {
    const at = message * NODE.words;
    if (--this.words[at + NODE.missing] === 0) this.complete(message);
  }

  /** All its timestamps are known. */
  protected complete(message: number): void {
    this.finish(message);
  }

  /** Makes a message final. */
  protected finish(message: number): void {
    const at = message * NODE.words;
    this.words[at + NODE.missing] = FINAL;
    this.insert(message, this.timestamps[at >> 1]);
  }

  /** The message with this slot and sequence number; a new one if there is none. */
  find(slot: number, sequence: number): number {
    const { words } = this;
    const at = slot * NODE.words;
    const isThere = words[at + NODE.sequence] === sequence && words[at + NODE.missing] !== FREE;
    return isThere ? slot : this.findBeyond(slot, sequence);
  }

  private findBeyond(slot: number, sequence: number): number {
    const { words } = this;
    const first = slot * NODE.words;
    for (let message = words[first + NODE.next]; message !== NONE; ) {
      const at = message * NODE.words;
      if (words[at + NODE.sequence] === sequence) return message;
      message = words[at + NODE.next];
    }
    if (words[first + NODE.missing] !== FREE) return this.openBeyond(slot, sequence);
    this.open(first, sequence);
    return slot;
  }

  private open(at: number, sequence: number): void {
    this.words[at + NODE.sequence] = sequence;
    this.words[at + NODE.missing] = 0;
    this.timestamps[at >> 1] = 0;
  }

  private openBeyond(slot: number, sequence: number): number {
    if (this.firstFree === NONE) this.grow();
    const { words } = this;
    const message = this.firstFree;
    const at = message * NODE.words;
    this.firstFree = words[at + NODE.next];
    this.open(at, sequence);
    words[at + NODE.slot] = slot;
    words[at + NODE.next] = words[slot * NODE.words + NODE.next];
    words[slot * NODE.words + NODE.next] = message;
    return message;
  }

  private insert(message: number, timestamp: number): void {
    const { final, finalAt, mask, firstFinal } = this;
    let i = this.finals++;
    for (; i > 0; i--) {
      const before = (firstFinal + i - 1) & mask;
      if (finalAt[before] < timestamp) break;
      const here = (firstFinal + i) & mask;
      final[here] = final[before];
      finalAt[here] = finalAt[before];
    }
    const here = (firstFinal + i) & mask;
    final[here] = message;
    finalAt[here] = timestamp;
  }

  /**
   * Takes the message to deliver next, or -1. The caller delivers and releases it.
   * @param bound  no message that is not proposed yet gets a timestamp below this
   */
  next(bound: number): number {
    if (this.finals === 0) return NONE;
    const { words, proposed, mask } = this;
    while (
      this.proposals > 0 &&
      words[proposed[this.firstProposed] * NODE.words + NODE.missing] === FINAL
    ) {
      this.firstProposed = (this.firstProposed + 1) & mask;
      this.proposals--;
    }
    const first = this.firstFinal;
    if (this.finalAt[first] > bound) return NONE;
    if (this.proposals > 0 && this.proposedAt[this.firstProposed] < this.finalAt[first])
      return NONE;
    this.firstFinal = (first + 1) & mask;
    this.finals--;
    return this.final[first];
  }

  /** The message was delivered. */
  release(message: number): void {
    const { words } = this;
    const at = message * NODE.words;
    const slot = words[at + NODE.slot];
    words[at + NODE.missing] = FREE;
    if (message !== slot) this.unlink(message, slot);
  }

  private unlink(message: number, slot: number): void {
    const { words } = this;
    const at = message * NODE.words;
    let before = slot * NODE.words;
    while (words[before + NODE.next] !== message) before = words[before + NODE.next] * NODE.words;
    words[before + NODE.next] = words[at + NODE.next];
    words[at + NODE.next] = this.firstFree;
    this.firstFree = message;
  }

  private grow(): void {
    const before = this.mask + 1;
    const { words, proposed, proposedAt, final, finalAt, firstProposed, firstFinal } = this;
    this.words = new Int32Array(2 * words.length);
    this.words.set(words);
    this.timestamps = new Float64Array(this.words.buffer);
    this.proposed = unrolled(proposed, new Int32Array(2 * before), firstProposed);
    this.proposedAt = unrolled(proposedAt, new Float64Array(2 * before), firstProposed);
    this.final = unrolled(final, new Int32Array(2 * before), firstFinal);
    this.finalAt = unrolled(finalAt, new Float64Array(2 * before), firstFinal);
    this.firstProposed = 0;
    this.firstFinal = 0;
    this.mask = 2 * before - 1;
    this.free(before, 2 * before);
  }

  private free(from: number, until: number): void {
    for (let message = until - 1; message >= from; message--) {
      this.words[message * NODE.words + NODE.next] = this.firstFree;
      this.firstFree = message;
    }
  }
}

/** Copies the contents of a ring, from its first element on, to the start of a larger one. */
function unrolled<T extends Int32Array | Float64Array>(ring: T, larger: T, first: number): T {
  larger.set(ring.subarray(first));
  larger.set(ring.subarray(0, first), ring.length - first);
  return larger;
}
