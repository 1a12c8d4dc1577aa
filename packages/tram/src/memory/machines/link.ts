/**
 * What the processes of this host post to those of one other host: one connection, over which everything goes in the
 * order of posting.
 *
 * Posts are gathered until `flush`. Then they go as few operations, and in one packet if they fit: writes that lie side
 * by side are one, several are one message, and one small read behind all of them confirms them. A read is served after
 * all that was posted before it has landed; this one reads the permissions of the processes that were written to. So a
 * write is `ok` if its guard was permitted after it had landed, which is what the contract asks (promise 4), and a
 * guarded write costs no more than any other. Nothing need be revoked at the network. What nobody waits for does not even
 * go with the next `flush`, but with what goes next, or a moment later.
 *
 * Everything that is under way has its place in two buffers of a fixed size, until a read behind it is done. A peer that
 * is so slow that they fill up is cut off.
 */
import { type ArenaMap, PROCESS } from '../arena.js';
import { NO_TAG, OPEN, type Outcome, type ProcessId, reportsSuccess } from '../contract.js';
import { type Connection, QUIET, TELL } from '../fabric/connection.js';
import type { Extents } from '../fabric/extents.js';
import type { Registration, RemoteRegion } from '../fabric/registration.js';
import { copyPart } from '../record.js';
import { RowQueue } from './queue.js';
import { Space } from './space.js';

/** Words of memory outside of the heap, registered for what is posted from here and read to here. */
export interface Buffer {
  readonly words: Int32Array;
  readonly registration: Registration;
}

export interface LinkBuffers {
  /** Begins with as many ones as a host has processes. */
  readonly out: Buffer;
  readonly ones: number;
  readonly in: Buffer;
  readonly extents: Extents;
}

/** What a link needs of its network. */
export interface LinkKeeper {
  /** Something was posted: it waits for `flush`. */
  onTouched(link: Link): void;
  /** The connection is of no more use. */
  onUseless(link: Link, why: string): void;
}

/** Who is told what became of a post. */
export interface Recipient {
  tell(peer: ProcessId, tag: number, guard: number, outcome: Outcome): void;
}

/** By process. */
export type Recipients = readonly (Recipient | undefined)[];

/** What was posted and has not been told of, in the order of posting. */
const POST = {
  process: 0,
  peer: 1,
  tag: 2,
  guard: 3,
  /** One of `PROGRESS`. */
  progress: 4,
  columns: 5,
} as const;
const PROGRESS = { underWay: 0, ok: 1, refused: 2 } as const;

/** What waits to be given to the network, and what it has been given. Places are in words. */
const STEP = {
  /** One of `KIND`. */
  kind: 0,
  local: 1,
  remote: 2,
  count: 3,
  /** A read: its post. A confirmation: the first post that it does not confirm. */
  post: 4,
  /** A read or confirmation: what is free of both spaces when it is done. */
  inMark: 5,
  outMark: 6,
  columns: 7,
} as const;
const KIND = { write: 0, read: 1, confirm: 2 } as const;

/** Posts of the host itself, which no process waits for. */
const NOBODY = -1;
const HOSTS_OWN = 1;

/** Is the outcome reported? Unguarded writes with NO_TAG are fire-and-forget. */
export function isTold(guard: number, tag: number): boolean {
  return guard !== OPEN || tag !== NO_TAG;
}

/** Where a read goes to when it is done. */
interface Target {
  readonly into: Int32Array;
  readonly intoAt: number;
}

export class Link {
  /** May be posted to. */
  isOpen = false;
  private connection!: Connection;
  private buffers!: LinkBuffers;
  private remote!: RemoteRegion;
  private outSpace!: Space;
  private inSpace!: Space;

  private readonly posts = new RowQueue(POST.columns);
  private readonly steps = new RowQueue(STEP.columns);
  /** Reads and confirmations that the network has been given. */
  private readonly reading = new RowQueue(STEP.columns);
  private readonly targets: Target[] = [];
  /** Posts before this one have a confirmation behind them. */
  private confirmedTo = 0;
  /** Words to be written that have no read behind them. */
  private uncovered = 0;
  /** Of the processes to be woken: the range of their flags, urgent ones and others. */
  private readonly urgent = new FlagRange();
  private readonly later = new FlagRange();
  /** Since when we wait for the next read, and when the last one came. */
  private sinceUs = 0;
  private heardUs = 0;
  private isTouched = false;
  /** Since when something waits that can, or `NEVER`. */
  private waitsSinceUs = NEVER;
  private isUrgent = false;
  /** Did the network not take all that it was offered? */
  private isStuck = false;
  /** Does anybody want to know what became of what was posted since the last confirmation? */
  private isAsked = false;

  constructor(
    /** The other one. */
    readonly host: number,
    private readonly map: ArenaMap,
    private readonly recipients: Recipients,
    private readonly keeper: LinkKeeper,
  ) {}

  /** Both sides know each other's keys: from now on there is something to post to. */
  open(connection: Connection, remote: RemoteRegion, buffers: LinkBuffers, nowUs: number): void {
    this.connection = connection;
    this.remote = remote;
    this.buffers = buffers;
    const { out, ones } = buffers;
    this.outSpace = new Space(ones, out.words.length - ones);
    this.uncovered = 0;
    this.inSpace = new Space(0, buffers.in.words.length);
    this.sinceUs = nowUs;
    this.heardUs = nowUs;
    this.isOpen = true;
  }

  /** The connection has ended: what has not been told of is lost. */
  lose(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    const { posts } = this;
    while (!posts.isEmpty) this.tellFirst('lost');
    this.confirmedTo = posts.end;
    this.isAsked = false;
    this.isUrgent = false;
    this.isStuck = false;
    this.waitsSinceUs = NEVER;
    this.steps.clear();
    this.reading.clear();
    this.targets.length = 0;
    this.urgent.clear();
    this.later.clear();
  }

  // --- posting -------------------------------------------------------------------------------

  /** @param at  in the arena of the other host */
  write(
    process: ProcessId,
    peer: ProcessId,
    at: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    const local = this.outSpace.take(count);
    if (isTold(guard, tag)) this.addPost(process, peer, guard, tag);
    if (reportsSuccess(tag)) this.isAsked = true;
    if (local < 0) {
      this.keeper.onUseless(this, TOO_MUCH_OUT);
      return;
    }
    const { words } = this.buffers.out;
    copyPart(source, from, words, local, count);
    this.addWrite(local, at, count);
    this.uncovered += count;
    if (this.uncovered > Math.min(words.length / 4, UNCOVERED_WORDS_MAX)) this.addConfirmation();
  }

  read(
    process: ProcessId,
    peer: ProcessId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    const local = this.inSpace.take(count);
    const post = this.addPost(process, peer, OPEN, tag);
    // It is its own confirmation, but is told of after what was posted before it.
    if (this.confirmedTo === post) this.confirmedTo++;
    else this.isAsked = true;
    if (local < 0) {
      this.keeper.onUseless(this, TOO_MUCH_IN);
      return;
    }
    this.targets.push({ into, intoAt });
    this.addRead(KIND.read, local, at, count, post);
  }

  /** Something of the host itself: it has landed once the link `isSettled`. @param at  in the arena of the other host */
  writeWords(at: number, source: Int32Array): void {
    if (!this.isOpen) return;
    this.write(NOBODY, NOBODY, at, source, 0, source.length, OPEN, HOSTS_OWN);
    this.hurry();
  }

  /** The same of what stands there: it is in `into` once the link `isSettled`. */
  readWords(at: number, into: Int32Array, intoAt: number, count: number): void {
    if (!this.isOpen) return;
    this.read(NOBODY, NOBODY, at, count, into, intoAt, HOSTS_OWN);
  }

  /** Has all that was posted been told of? */
  get isSettled(): boolean {
    return this.posts.isEmpty && this.reading.isEmpty && this.steps.isEmpty;
  }

  /** Somebody waits for what was posted. */
  hurry(): void {
    if (!this.isOpen) return;
    this.touch();
    this.isUrgent = true;
  }

  wake(peer: ProcessId, urgent: boolean): void {
    if (!this.isOpen) return;
    this.touch();
    if (urgent) {
      this.urgent.add(this.map.ready(peer));
      this.isUrgent = true;
    } else {
      this.later.add(this.map.readyLater(peer));
    }
  }

  /** Does somebody wait for an answer to what was posted? */
  get isAwaited(): boolean {
    return this.isUrgent && this.isAsked;
  }

  /**
   * Give to the network what was posted, if it is time.
   *
   * @param companyUs  for how long what nobody waits for may wait for company
   * @returns whether something stays behind, for the next time
   */
  flush(nowUs: number, companyUs: number): boolean {
    if (this.isOpen && this.isDue(nowUs, companyUs)) this.send(nowUs);
    this.isTouched = this.isOpen && !this.hasNothing;
    return this.isTouched;
  }

  private isDue(nowUs: number, companyUs: number): boolean {
    if (this.isUrgent) return true;
    if (this.hasNothing) return false;
    if (this.waitsSinceUs === NEVER) this.waitsSinceUs = nowUs;
    return nowUs - this.waitsSinceUs >= companyUs;
  }

  private get hasNothing(): boolean {
    return this.steps.isEmpty && this.urgent.isEmpty && this.later.isEmpty;
  }

  private send(nowUs: number): void {
    if (!this.isAwaiting) this.sinceUs = nowUs;
    this.addFlags(this.urgent);
    this.addFlags(this.later);
    if (this.isAsked) this.addConfirmation();
    if (!this.isOpen) return;
    this.pump();
    this.isStuck = !this.steps.isEmpty;
    this.isUrgent = this.isStuck;
    this.waitsSinceUs = NEVER;
  }

  /**
   * Confirm what nobody asked for: of that only failures are told, and those can wait. And if nothing was read for a
   * while, read something: whether the peer is there shows in nothing else.
   */
  probe(nowUs: number): void {
    if (!this.isOpen) return;
    const isQuiet = !this.isAwaiting && nowUs - this.heardUs > PROBE_US;
    if (isQuiet || this.confirmedTo < this.posts.end) this.addConfirmation();
  }

  private touch(): void {
    if (this.isTouched) return;
    this.isTouched = true;
    this.keeper.onTouched(this);
  }

  private addPost(process: ProcessId, peer: ProcessId, guard: number, tag: number): number {
    const { posts } = this;
    const post = posts.add();
    posts.set(post, POST.process, process);
    posts.set(post, POST.peer, peer);
    posts.set(post, POST.tag, tag);
    posts.set(post, POST.guard, guard);
    posts.set(post, POST.progress, PROGRESS.underWay);
    return post;
  }

  private addWrite(local: number, remote: number, count: number): void {
    const { steps } = this;
    const last = steps.end - 1;
    if (
      !steps.isEmpty &&
      steps.get(last, STEP.kind) === KIND.write &&
      steps.get(last, STEP.local) + steps.get(last, STEP.count) === local &&
      steps.get(last, STEP.remote) + steps.get(last, STEP.count) === remote
    ) {
      steps.set(last, STEP.count, steps.get(last, STEP.count) + count);
      return;
    }
    this.addStep(KIND.write, local, remote, count);
  }

  private addStep(kind: number, local: number, remote: number, count: number): number {
    this.touch();
    const { steps } = this;
    const step = steps.add();
    steps.set(step, STEP.kind, kind);
    steps.set(step, STEP.local, local);
    steps.set(step, STEP.remote, remote);
    steps.set(step, STEP.count, count);
    return step;
  }

  private addRead(kind: number, local: number, remote: number, count: number, post: number): void {
    const { steps } = this;
    const step = this.addStep(kind, local, remote, count);
    steps.set(step, STEP.post, post);
    steps.set(step, STEP.inMark, this.inSpace.mark);
    steps.set(step, STEP.outMark, this.outSpace.mark);
    this.uncovered = 0;
    this.isUrgent = true;
  }

  /** Flags are hints, so those between two others may be set as well. */
  private addFlags(range: FlagRange): void {
    if (range.isEmpty) return;
    this.addStep(KIND.write, 0, range.first, range.count);
    range.clear();
  }

  /** Read the permissions of all who have guarded writes on their way, behind everything else. */
  private addConfirmation(): void {
    const { posts, map } = this;
    let first = Number.POSITIVE_INFINITY;
    let last = 0;
    for (let post = this.confirmedTo; post < posts.end; post++) {
      if (posts.get(post, POST.guard) === OPEN) continue;
      const at = this.permissionAt(posts.get(post, POST.peer));
      first = Math.min(first, at);
      last = Math.max(last, at);
    }
    // Without guards any word will do: that it comes back is what counts.
    if (last === 0) first = last = map.host(this.host);
    const count = last - first + 1;
    const local = this.inSpace.take(count);
    if (local < 0) {
      this.keeper.onUseless(this, TOO_MUCH_IN);
      return;
    }
    this.confirmedTo = posts.end;
    this.isAsked = false;
    this.addRead(KIND.confirm, local, first, count, posts.end);
  }

  private permissionAt(peer: ProcessId): number {
    return this.map.process(peer) + PROCESS.permission;
  }

  // --- the network -----------------------------------------------------------------------------

  /** As much as it takes. */
  private pump(): void {
    const { steps, connection } = this;
    if (steps.isEmpty) return;
    const isSeveral = this.isSeveral;
    if (isSeveral) connection.hold();
    while (!steps.isEmpty) {
      if (!(this.isWriteAt(steps.first) ? this.giveWrites() : this.giveReads())) break;
    }
    if (isSeveral) connection.release();
  }

  /** Will it take more than one operation? */
  private get isSeveral(): boolean {
    const { steps } = this;
    if (steps.end - steps.first > this.buffers.extents.countMax) return true;
    for (let step = steps.first + 1; step < steps.end; step++) {
      if (this.isWriteAt(step) !== this.isWriteAt(steps.first)) return true;
    }
    return false;
  }

  private isWriteAt(step: number): boolean {
    return this.steps.get(step, STEP.kind) === KIND.write;
  }

  private giveWrites(): boolean {
    const { steps } = this;
    const { extents, out } = this.buffers;
    extents.clear();
    let step = steps.first;
    while (step < steps.end && extents.count < extents.countMax) {
      if (!this.isWriteAt(step)) break;
      this.addExtent(extents, out, step);
      step++;
    }
    if (!this.connection.write(extents, QUIET, 0)) return false;
    while (steps.first < step) steps.shift();
    return true;
  }

  private giveReads(): boolean {
    const { steps } = this;
    const { extents } = this.buffers;
    extents.clear();
    let step = steps.first;
    while (step < steps.end && extents.count < extents.countMax) {
      if (this.isWriteAt(step)) break;
      this.addExtent(extents, this.buffers.in, step);
      step++;
    }
    if (!this.connection.read(extents, TELL, extents.count)) return false;
    while (steps.first < step) this.awaitFirst();
    return true;
  }

  /** The network has been given the first step, a read. */
  private awaitFirst(): void {
    const { steps, reading } = this;
    const row = reading.add();
    for (let column = 0; column < STEP.columns; column++) {
      reading.set(row, column, steps.get(steps.first, column));
    }
    steps.shift();
  }

  private addExtent(extents: Extents, { registration }: Buffer, step: number): void {
    const { steps } = this;
    const local = steps.get(step, STEP.local) * 4;
    const remote = steps.get(step, STEP.remote) * 4;
    extents.add(registration, local, this.remote, remote, steps.get(step, STEP.count) * 4);
  }

  /** As many reads as were posted together are done. They are done in their order. */
  onCompleted(reads: number, nowUs: number): void {
    this.sinceUs = nowUs;
    this.heardUs = nowUs;
    for (let count = reads; count > 0; count--) this.onRead();
    this.tellDone();
  }

  private onRead(): void {
    const { reading } = this;
    const read = reading.first;
    const post = reading.get(read, STEP.post);
    if (reading.get(read, STEP.kind) === KIND.confirm) this.confirm(read, post);
    else this.fill(read, post);
    this.inSpace.free(reading.get(read, STEP.inMark));
    this.outSpace.free(reading.get(read, STEP.outMark));
    reading.shift();
  }

  /** All writes up to the post `end` have landed; what was read tells whether they were permitted then. */
  private confirm(read: number, end: number): void {
    const { posts, reading } = this;
    const { words } = this.buffers.in;
    const local = reading.get(read, STEP.local) - reading.get(read, STEP.remote);
    for (let post = posts.first; post < end; post++) {
      if (posts.get(post, POST.progress) !== PROGRESS.underWay) continue;
      const guard = posts.get(post, POST.guard);
      const permission = this.permissionAt(posts.get(post, POST.peer));
      const isOk = guard === OPEN || words[local + permission] === guard;
      posts.set(post, POST.progress, isOk ? PROGRESS.ok : PROGRESS.refused);
    }
  }

  private fill(read: number, post: number): void {
    const { reading } = this;
    const { words } = this.buffers.in;
    const { into, intoAt } = this.targets.shift()!;
    const local = reading.get(read, STEP.local);
    into.set(words.subarray(local, local + reading.get(read, STEP.count)), intoAt);
    this.posts.set(post, POST.progress, PROGRESS.ok);
  }

  private tellDone(): void {
    const { posts } = this;
    while (!posts.isEmpty) {
      const progress = posts.get(posts.first, POST.progress);
      if (progress === PROGRESS.underWay) return;
      this.tellFirst(progress === PROGRESS.ok ? 'ok' : 'refused');
    }
  }

  private tellFirst(outcome: Outcome): void {
    const { posts } = this;
    const post = posts.first;
    const tag = posts.get(post, POST.tag);
    const memory = this.recipients[posts.get(post, POST.process)];
    // Success is not worth telling to who did not ask for it.
    if (outcome !== 'ok' || reportsSuccess(tag)) {
      memory?.tell(posts.get(post, POST.peer), tag, posts.get(post, POST.guard), outcome);
    }
    posts.shift();
  }

  /** For how long the peer has not answered, although something is awaited. */
  silentUs(nowUs: number): number {
    return this.isOpen && this.isAwaiting ? nowUs - this.sinceUs : 0;
  }

  /** Is it the peer's turn? What is held back for company awaits nothing. */
  private get isAwaiting(): boolean {
    return this.isStuck || !this.reading.isEmpty;
  }
}

const TOO_MUCH_OUT = 'it is too slow: what is on its way to it has filled the buffer';
const TOO_MUCH_IN = 'it is too slow: what is read from it has filled the buffer';
const PROBE_US = 100_000;
/** A read behind so much at least: it frees the space, and tells that something arrives. */
const UNCOVERED_WORDS_MAX = 2 ** 14;
const NEVER = Number.POSITIVE_INFINITY;

/** Flags that lie near each other. */
class FlagRange {
  first = Number.POSITIVE_INFINITY;
  private last = 0;

  get isEmpty(): boolean {
    return this.last === 0;
  }

  get count(): number {
    return this.last - this.first + 1;
  }

  add(flag: number): void {
    this.first = Math.min(this.first, flag);
    this.last = Math.max(this.last, flag);
  }

  clear(): void {
    this.first = Number.POSITIVE_INFINITY;
    this.last = 0;
  }
}
