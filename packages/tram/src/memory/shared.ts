/**
 * Memory that all processes have before them: threads over a SharedArrayBuffer, or operating-system
 * processes over a mapped file. What is posted takes effect at once, so completions are ready with
 * the next `poll`.
 *
 * Permission (promise 4) rests on order alone, without a lock: a writer stores its words and, when it polls,
 * looks at the permission, with one fence between for all that it has posted; an owner stores the permission
 * and then loads what was written. So a write that its writer saw permitted is there for the owner, and one
 * that is not there will not be seen permitted. A writer paused in between holds nobody up.
 *
 * Words are stored from right to left, so that the head of a record, or of a batch of records, comes
 * last and whoever reads from left to right meets whole ones.
 */
import { type Arena, type ArenaMap, HOST, HOST_STATE, hostStateOf, PROCESS } from './arena.js';
import {
  type Completion,
  type Memory,
  OPEN,
  type ProcessId,
  RETIRED,
  reportsSuccess,
} from './contract.js';
import { HEAD_WORDS } from './record.js';

/** A loop for a few words, the engine's own copy for many: it is free in its order, so the head stays for last. */
const LOOP_WORDS_MAX = 24;
/** Up to here a loop over pairs of words is faster than the engine's copy. */
const PAIRS_WORDS_MAX = 120;
/** Do processors show each other stores in their order, and load in it? Others have to be told. */
const KEEPS_ORDER = process.arch === 'x64' || process.arch === 'ia32';

export class SharedMemory implements Memory {
  readonly own: Int32Array;
  readonly completion: Completion = { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
  private readonly words: Int32Array;
  /** Per process: where its region starts and how many words it has; its permission, its ready flag, its host. */
  protected readonly regions: Int32Array;
  private readonly regionWords: Int32Array;
  private readonly permissions: Int32Array;
  private readonly readyFlags: Int32Array;
  private readonly readyLaterFlags: Int32Array;
  private readonly hostLines: Int32Array;
  /** The same words two at a time. */
  private readonly pairs: BigInt64Array;
  /** Arrays of ours that lie in the arena, and where. */
  private readonly places = new Map<Int32Array, number>();

  /** Nobody looks at it: see `fence`. */
  private readonly barrier = new Int32Array(1);
  private readonly posted = new Posted();
  private scratchAt: number;

  constructor(
    readonly self: ProcessId,
    private readonly arena: Arena,
    private readonly map: ArenaMap,
  ) {
    this.words = arena.words;
    this.scratchAt = map.scratch(self);
    const each = (value: (process: ProcessId) => number): Int32Array =>
      Int32Array.from({ length: map.processes }, (_, process) => value(process));
    this.regions = each((process) => map.region(process));
    this.regionWords = each((process) => map.regionWords(process));
    this.permissions = each((process) => map.process(process) + PROCESS.permission);
    this.readyFlags = each((process) => map.ready(process));
    this.readyLaterFlags = each((process) => map.readyLater(process));
    this.hostLines = each((process) => map.host(map.hostOf(process)));
    const start = this.regions[self]!;
    this.own = this.words.subarray(start, start + this.regionWords[self]!);
    this.pairs = new BigInt64Array(this.words.buffer, this.words.byteOffset, map.words >> 1);
    this.places.set(this.own, start);
  }

  scratch(words: number): Int32Array {
    const start = this.scratchAt;
    this.scratchAt += words;
    if (this.scratchAt > this.map.scratchEnd(this.self)) {
      throw new RangeError(`process ${this.self} has no ${words} words of scratch left`);
    }
    const scratch = this.words.subarray(start, this.scratchAt).fill(0);
    this.places.set(scratch, start);
    return scratch;
  }

  readFence(): void {
    if (!KEEPS_ORDER) this.fence();
  }

  permit(guard: number): void {
    const at = this.permissions[this.self]!;
    Atomics.store(this.words, at, guard);
    // On machines that let plain loads overtake a store, not past this load.
    Atomics.load(this.words, at);
  }

  permitted(): number {
    return Atomics.load(this.words, this.permissions[this.self]!);
  }

  write(
    peer: ProcessId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    this.check(peer, to, count);
    const { words } = this;
    const at = this.regions[peer]! + to;
    let left = count;
    if (count > LOOP_WORDS_MAX) {
      left = HEAD_WORDS + ((at + HEAD_WORDS) & 1);
      this.copyIn(source, from + left, at + left, count - left);
    }
    for (let i = left - 1; i > 0; i--) words[at + i] = source[from + i]!;
    this.publish(peer, at, source[from]!, guard, tag);
  }

  writeWord(peer: ProcessId, to: number, value: number, guard: number, tag: number): void {
    this.check(peer, to, 1);
    this.publish(peer, this.regions[peer]! + to, value, guard, tag);
  }

  /** Store the last word of a write: whoever sees it sees all that was written before. */
  private publish(peer: ProcessId, at: number, value: number, guard: number, tag: number): void {
    if (KEEPS_ORDER) {
      this.words[at] = value;
    } else {
      Atomics.store(this.words, at, value);
      // What is stored later must not be seen earlier.
      Atomics.load(this.words, at);
    }
    if (guard !== OPEN || reportsSuccess(tag)) this.posted.add(peer, tag, guard);
  }

  /** @param at  even */
  private copyIn(source: Int32Array, from: number, at: number, count: number): void {
    const { words } = this;
    const place = this.places.get(source);
    if (place === undefined) {
      words.set(source.subarray(from, from + count), at);
      return;
    }
    const start = place + from;
    if (count > PAIRS_WORDS_MAX || (start & 1) === 1) {
      words.copyWithin(at, start, start + count);
      return;
    }
    if (count & 1) words[at + count - 1] = words[start + count - 1]!;
    copyPairs(this.pairs, start >> 1, at >> 1, count >> 1);
  }

  read(
    peer: ProcessId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    this.check(peer, at, count);
    const { words } = this;
    const start = this.regions[peer]! + at;
    // What was written before, there or here, is there before this looks.
    this.fence();
    // What follows from a later store must not be read before it.
    into[intoAt] = Atomics.load(words, start);
    if (count <= LOOP_WORDS_MAX) {
      for (let i = 1; i < count; i++) into[intoAt + i] = words[start + i]!;
    } else {
      into.set(words.subarray(start + 1, start + count), intoAt + 1);
    }
    this.posted.add(peer, tag, OPEN);
  }

  /**
   * Processors let loads overtake stores. Not past these two, whatever word they are on: a store and a
   * load that are both sequentially consistent.
   */
  private fence(): void {
    Atomics.store(this.barrier, 0, 0);
    Atomics.load(this.barrier, 0);
  }

  protected check(peer: ProcessId, at: number, count: number): void {
    if (at < 0 || count <= 0 || at + count > this.regionWords[peer]!) {
      throw new RangeError(`words ${at} to ${at + count} are not in the region of process ${peer}`);
    }
  }

  poll(): boolean {
    const { posted } = this;
    if (posted.isEmpty) return false;
    if (posted.hasUnchecked) {
      // All of it is to be seen by others before any permission is looked at.
      this.fence();
      posted.check(this.words, this.permissions);
    }
    return posted.next(this.completion);
  }

  hurry(_peer: ProcessId): void {}

  wake(peer: ProcessId, urgent: boolean): void {
    const { words } = this;
    if (!urgent) {
      words[this.readyLaterFlags[peer]!] = 1;
      return;
    }
    Atomics.store(words, this.readyFlags[peer]!, 1);
    const parked = this.hostLines[peer]! + HOST.parked;
    const isParked = (KEEPS_ORDER ? words[parked] : Atomics.load(words, parked)) === 1;
    if (isParked && Atomics.exchange(words, parked, 0) === 1) {
      this.arena.parking.wake(parked);
    }
  }

  hasEnded(peer: ProcessId): boolean {
    return hostStateOf(this.words[this.hostLines[peer]! + HOST.state]!) === HOST_STATE.ended;
  }
}

/** From right to left, four at a time. */
function copyPairs(pairs: BigInt64Array, from: number, to: number, count: number): void {
  let i = count - 4;
  for (; i >= 0; i -= 4) {
    pairs[to + i + 3] = pairs[from + i + 3]!;
    pairs[to + i + 2] = pairs[from + i + 2]!;
    pairs[to + i + 1] = pairs[from + i + 1]!;
    pairs[to + i] = pairs[from + i]!;
  }
  for (i += 3; i >= 0; i--) pairs[to + i] = pairs[from + i]!;
}

/** What was posted and not yet polled: a queue that is allocated once and grows if it must. */
class Posted {
  private tags = new Int32Array(256);
  private guards = new Int32Array(256);
  private peers = new Int32Array(256);
  private oks = new Uint8Array(256);
  private first = 0;
  private checked = 0;
  private end = 0;

  get isEmpty(): boolean {
    return this.first === this.end;
  }

  get hasUnchecked(): boolean {
    return this.checked < this.end;
  }

  add(peer: ProcessId, tag: number, guard: number): void {
    if (this.end === this.tags.length) this.grow();
    const place = this.end++;
    this.tags[place] = tag;
    this.guards[place] = guard;
    this.peers[place] = peer;
  }

  /** Was it permitted, and is it still? */
  check(words: Int32Array, permissions: Int32Array): void {
    const { guards, peers, oks, end } = this;
    for (let place = this.checked; place < end; place++) {
      const guard = guards[place]!;
      oks[place] = guard === OPEN || words[permissions[peers[place]!]!] === guard ? 1 : 0;
    }
    this.checked = end;
  }

  next(into: Completion): boolean {
    while (this.first < this.checked) {
      const place = this.first++;
      const isOk = this.oks[place] === 1;
      if (isOk && !reportsSuccess(this.tags[place]!)) continue;
      into.tag = this.tags[place]!;
      into.guard = this.guards[place]!;
      into.peer = this.peers[place]!;
      into.outcome = isOk ? 'ok' : 'refused';
      if (this.first === this.end) this.empty();
      return true;
    }
    this.empty();
    return false;
  }

  private empty(): void {
    this.first = 0;
    this.checked = 0;
    this.end = 0;
  }

  private grow(): void {
    const size = this.tags.length * 2;
    const larger = <T extends Int32Array | Uint8Array>(from: T, to: T): T => {
      to.set(from);
      return to;
    };
    this.tags = larger(this.tags, new Int32Array(size));
    this.guards = larger(this.guards, new Int32Array(size));
    this.peers = larger(this.peers, new Int32Array(size));
    this.oks = larger(this.oks, new Uint8Array(size));
  }
}

/**
 * A process begins a life; returns its incarnation. Unless it resumes with the region as it is, nobody may
 * write to it before all of it is empty. Whoever calls this makes sure that the earlier life has ended.
 */
export function beginLife(
  arena: Arena,
  map: ArenaMap,
  process: ProcessId,
  resumes: boolean,
  /** Of a process whose earlier lives may have left no trace: higher than theirs. */
  leastIncarnation = 1,
): number {
  const { words } = arena;
  const line = map.process(process);
  const hadLife = Atomics.load(words, line + PROCESS.incarnation) > 0;
  if (!resumes && hadLife) {
    Atomics.store(words, line + PROCESS.permission, RETIRED);
    const start = map.region(process);
    // The row is the first to go: who finds it whole has read the rest of the region as it was.
    Atomics.store(words, start + map.layout.row, 0);
    words.fill(0, start, start + map.regionWords(process));
  }
  const next = words[line + PROCESS.incarnation]! + 1;
  return Atomics.store(words, line + PROCESS.incarnation, Math.max(next, leastIncarnation));
}
