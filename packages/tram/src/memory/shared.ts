/**
 * Shared memory: threads over a SharedArrayBuffer, or processes over a mapped file. Posts take effect at once, so
 * their completions are ready with the next `poll`.
 *
 * Permission (promise 4) needs no lock, only order. A writer stores its words and loads the permission when it polls,
 * with one fence in between for all its posts. The owner stores the permission and then loads the words. So the owner
 * sees every write whose writer saw the permission, and a write that the owner does not see will not find the
 * permission. A writer that pauses in between blocks nobody.
 *
 * Words are stored from right to left. The head of a record, or of a batch of records, is stored last, so a reader
 * that reads from left to right finds whole records.
 */
import {
  type Arena,
  type ArenaMap,
  HOST,
  HOST_STATE,
  hostStateOf,
  PARKED,
  PARTICIPANT,
  type Parking,
} from './arena.js';
import {
  type Completion,
  type Memory,
  OPEN,
  type ParticipantId,
  RETIRED,
  reportsSuccess,
} from './contract.js';
import { copyPart, HEAD_WORDS } from './record.js';

/** Few words are copied by a loop, many by the engine, which may copy in any order: the head is stored last. */
const SMALL_WRITE_WORDS_MAX = 24;
/** Up to this many words a loop over pairs is faster than the engine's copy. */
const PAIRS_WORDS_MAX = 120;
/** Does the processor keep stores in order, and loads in order? Others need fences. */
const KEEPS_ORDER = process.arch === 'x64' || process.arch === 'ia32';
/** For fences, which need some word: only this thread accesses it. */
const barrier = new Int32Array(1);

/** Nothing moves over this: neither loads nor stores, neither by the compiler nor by the processor. */
function fence(): void {
  Atomics.store(barrier, 0, 0);
  Atomics.load(barrier, 0);
}

/** No load moves over this. A processor that keeps loads in order needs only something that binds the compiler. */
export function readFence(): void {
  if (KEEPS_ORDER) Atomics.load(barrier, 0);
  else fence();
}

export class SharedMemory implements Memory {
  readonly own: Int32Array;
  readonly completion: Completion = { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
  private readonly words: Int32Array;
  private readonly parking: Parking;
  /** By participant: start and size of its region, its permission, its ready flags, its host. */
  protected readonly regions: Int32Array;
  private readonly regionWords: Int32Array;
  private readonly permissions: Int32Array;
  private readonly readyFlags: Int32Array;
  private readonly readyLaterFlags: Int32Array;
  private readonly hostLines: Int32Array;
  /** The same words, two at a time. */
  private readonly pairs: BigInt64Array;
  /** Views of the arena that may be a source of writes, and where each starts. */
  private readonly places = new Map<Int32Array, number>();
  private readonly ownPlace: number;

  private readonly posted = new Posted();
  private scratchAt: number;

  constructor(
    readonly self: ParticipantId,
    arena: Arena,
    private readonly map: ArenaMap,
  ) {
    this.words = arena.words;
    this.parking = arena.parking;
    this.scratchAt = map.scratch(self);
    const each = (value: (participant: ParticipantId) => number): Int32Array =>
      Int32Array.from({ length: map.participants }, (_, participant) => value(participant));
    this.regions = each((participant) => map.region(participant));
    this.regionWords = each((participant) => map.regionWords(participant));
    this.permissions = each((participant) => map.participant(participant) + PARTICIPANT.permission);
    this.readyFlags = each((participant) => map.ready(participant));
    this.readyLaterFlags = each((participant) => map.readyLater(participant));
    this.hostLines = each((participant) => map.host(map.hostOf(participant)));
    const start = this.regions[self];
    this.own = this.words.subarray(start, start + this.regionWords[self]);
    this.pairs = new BigInt64Array(this.words.buffer, this.words.byteOffset, map.words >> 1);
    this.ownPlace = start;
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
    readFence();
  }

  permit(guard: number): void {
    const at = this.permissions[this.self];
    Atomics.store(this.words, at, guard);
    // On weakly ordered processors, later plain loads must not move before the store.
    Atomics.load(this.words, at);
  }

  permitted(): number {
    return Atomics.load(this.words, this.permissions[this.self]);
  }

  write(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    this.store(peer, to, source, from, count);
    this.add(peer, guard, tag);
  }

  /**
   * Its words become visible before the permission is read, as those of other posts do in `poll`. No guard is permitted again
   * after it was revoked. So if it is permitted now, earlier posts to this peer are `ok` as well; and if it is not, `poll`
   * will find the same.
   */
  writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean {
    this.store(peer, to, source, from, count);
    fence();
    if (this.words[this.permissions[peer]] === guard) return true;
    this.add(peer, guard, tag);
    return false;
  }

  /** Stores the words of a write, the first one last. */
  private store(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
  ): void {
    this.check(peer, to, count);
    const { words } = this;
    const at = this.regions[peer] + to;
    let left = count;
    if (count > SMALL_WRITE_WORDS_MAX) {
      left = HEAD_WORDS + ((at + HEAD_WORDS) & 1);
      this.copyIn(source, from + left, at + left, count - left);
    }
    copyFew(source, from + 1, words, at + 1, left - 1);
    this.publish(at, source[from]);
  }

  writeWord(peer: ParticipantId, to: number, value: number, guard: number, tag: number): void {
    this.check(peer, to, 1);
    this.publish(this.regions[peer] + to, value);
    this.add(peer, guard, tag);
  }

  /** Stores the last word of a write. A reader that sees it sees all earlier words. */
  private publish(at: number, value: number): void {
    if (KEEPS_ORDER) {
      // A compiler might move an earlier store behind this one. V8 does not, and tests look at its code.
      this.words[at] = value;
    } else {
      Atomics.store(this.words, at, value);
      // Later stores must not become visible before this one.
      Atomics.load(this.words, at);
    }
  }

  /** A write was posted: note it, if its outcome matters. */
  private add(peer: ParticipantId, guard: number, tag: number): void {
    if (guard !== OPEN || reportsSuccess(tag)) this.posted.add(peer, tag, guard);
  }

  /** @param at  even */
  private copyIn(source: Int32Array, from: number, at: number, count: number): void {
    const { words } = this;
    // Nearly all writes are from the own region, and a lookup would cost as much as a short copy.
    const place = source === this.own ? this.ownPlace : this.places.get(source);
    if (place === undefined) {
      copyPart(source, from, words, at, count);
      return;
    }
    const start = place + from;
    if (count > PAIRS_WORDS_MAX || (start & 1) === 1) {
      copyPart(words, start, words, at, count);
      return;
    }
    if (count & 1) words[at + count - 1] = words[start + count - 1];
    copyPairs(this.pairs, start >> 1, at >> 1, count >> 1);
  }

  read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    this.check(peer, at, count);
    const { words } = this;
    const start = this.regions[peer] + at;
    // Earlier stores of this participant become visible before the read.
    fence();
    // The first word is read first: later words are at least as new.
    const first = Atomics.load(words, start);
    copyPart(words, start, into, intoAt, count);
    into[intoAt] = first;
    this.posted.add(peer, tag, OPEN);
  }

  protected check(peer: ParticipantId, at: number, count: number): void {
    if (at < 0 || count <= 0 || at + count > this.regionWords[peer]) {
      throw new RangeError(`words ${at} to ${at + count} are not in the region of process ${peer}`);
    }
  }

  poll(): boolean {
    const { posted } = this;
    if (posted.isEmpty) return false;
    if (posted.hasUnchecked) {
      // All posted words become visible before any permission is read.
      fence();
      posted.check(this.words, this.permissions);
    }
    return posted.next(this.completion);
  }

  markUrgent(_peer: ParticipantId): void {}

  wake(peer: ParticipantId, urgent: boolean): void {
    const { words } = this;
    if (!urgent) {
      words[this.readyLaterFlags[peer]] = 1;
      return;
    }
    Atomics.store(words, this.readyFlags[peer], 1);
    const parked = this.hostLines[peer] + HOST.parked;
    const seen = KEEPS_ORDER ? words[parked] : Atomics.load(words, parked);
    if (seen === PARKED.parked) wakeParked(words, this.parking, parked);
  }

  hasEnded(peer: ParticipantId): boolean {
    return hostStateOf(this.words[this.hostLines[peer] + HOST.state]) === HOST_STATE.ended;
  }
}

/** Wakes the host with this word, if it is parked or about to park. */
export function wakeParked(words: Int32Array, parking: Parking, parked: number): void {
  if (endPark(words, parked)) parking.wake(parked);
}

/** Must this host, which was parked or about to park, be woken by the caller? */
export function endPark(words: Int32Array, parked: number): boolean {
  const { parked: isParked, awake } = PARKED;
  return Atomics.compareExchange(words, parked, isParked, awake) === isParked;
}

/** Copies from right to left, four words at a time. */
function copyFew(
  source: Int32Array,
  from: number,
  words: Int32Array,
  to: number,
  count: number,
): void {
  let i = count - 4;
  for (; i >= 0; i -= 4) {
    words[to + i + 3] = source[from + i + 3];
    words[to + i + 2] = source[from + i + 2];
    words[to + i + 1] = source[from + i + 1];
    words[to + i] = source[from + i];
  }
  for (i += 3; i >= 0; i--) words[to + i] = source[from + i];
}

/** Copies from right to left, four pairs at a time. */
function copyPairs(pairs: BigInt64Array, from: number, to: number, count: number): void {
  let i = count - 4;
  for (; i >= 0; i -= 4) {
    pairs[to + i + 3] = pairs[from + i + 3];
    pairs[to + i + 2] = pairs[from + i + 2];
    pairs[to + i + 1] = pairs[from + i + 1];
    pairs[to + i] = pairs[from + i];
  }
  for (i += 3; i >= 0; i--) pairs[to + i] = pairs[from + i];
}

/** Posts whose completion has not been polled. Invariant: first ≤ checked ≤ end. Grows if it must. */
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

  add(peer: ParticipantId, tag: number, guard: number): void {
    if (this.end === this.tags.length) this.grow();
    const place = this.end++;
    this.tags[place] = tag;
    this.guards[place] = guard;
    this.peers[place] = peer;
  }

  /** Reads the permission for each guarded post. */
  check(words: Int32Array, permissions: Int32Array): void {
    const { guards, peers, oks, end } = this;
    for (let place = this.checked; place < end; place++) {
      const guard = guards[place];
      oks[place] = guard === OPEN || words[permissions[peers[place]]] === guard ? 1 : 0;
    }
    this.checked = end;
  }

  next(into: Completion): boolean {
    while (this.first < this.checked) {
      const place = this.first++;
      const isOk = this.oks[place] === 1;
      if (isOk && !reportsSuccess(this.tags[place])) continue;
      into.tag = this.tags[place];
      into.guard = this.guards[place];
      into.peer = this.peers[place];
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
 * Begins an incarnation of a participant and returns its number. Unless it resumes with its region as it is, nobody may
 * write to the region before it is empty. The caller makes sure that the earlier incarnation has ended.
 */
export function beginIncarnation(
  arena: Arena,
  map: ArenaMap,
  participant: ParticipantId,
  resumes: boolean,
  /** For a participant whose earlier incarnations may have left no trace: higher than theirs. */
  leastIncarnation = 1,
): number {
  const { words } = arena;
  const line = map.participant(participant);
  const permitted = Atomics.load(words, line + PARTICIPANT.permission);
  if (permitted !== OPEN && permitted !== RETIRED) {
    Atomics.store(words, line + PARTICIPANT.lastKey, permitted);
  }
  const hasRunBefore = Atomics.load(words, line + PARTICIPANT.incarnation) > 0;
  if (!resumes && hasRunBefore) {
    Atomics.store(words, line + PARTICIPANT.permission, RETIRED);
    const start = map.region(participant);
    // The row is cleared first: a reader that finds it whole has read the rest of the region as it was.
    Atomics.store(words, start + map.layout.row, 0);
    fence();
    words.fill(0, start, start + map.regionWords(participant));
  }
  const next = words[line + PARTICIPANT.incarnation] + 1;
  return Atomics.store(words, line + PARTICIPANT.incarnation, Math.max(next, leastIncarnation));
}
