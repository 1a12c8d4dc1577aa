/**
 * A deterministic implementation of the memory contract, for the simulator.
 *
 * All participants run in one JavaScript thread. A posted operation travels on a link (one for each ordered pair of
 * participants), arrives after a drawn delay, lands whole or torn, and completes at once or late. Where the contract
 * leaves a choice, it is drawn: whether a refused write leaves its bytes behind, which part of a dead participant's
 * writes still lands, and whether writes land in the middle of a permission change or while a region is emptied.
 *
 * Invariants: time advances only in `runNext`, and where the world sets `nowUs`. All draws come from the injected
 * `Chance`, so a seed gives one history.
 */
import {
  type Completion,
  type Memory,
  NO_TAG,
  OPEN,
  type Outcome,
  type ParticipantId,
  RETIRED,
} from 'tram-multicast/internal/memory/contract.js';
import { Agenda, type Completed, Link, newOperation, type Operation } from './links.js';

/** A source of draws that is deterministic for a seed. */
export interface Chance {
  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number;
}

export interface Weather {
  /** The least time until an operation arrives. */
  delayUs: number;
  /** The most by which that time is exceeded. */
  jitterUs: number;
  /** The share of operations that are torn: they land in pieces. */
  tornPercent: number;
  /** The share of completions that come late. */
  lateCompletionPercent: number;
}

/** Copies of the words in flight, in large blocks. A block is collected once no operation refers to it. */
class Store {
  block = new Int32Array(0);
  private used = 0;

  /** Copy words into `block`. @returns their offset */
  copyIn(source: Int32Array, from: number, count: number): number {
    if (this.used + count > this.block.length) {
      this.block = new Int32Array(Math.max(STORE_BLOCK_WORDS, count));
      this.used = 0;
    }
    const at = this.used;
    this.used += count;
    copy(source, from, this.block, at, count);
    return at;
  }
}

/** Measured: for up to `LOOP_WORDS_MAX` words, a loop is faster than the built-in copy. */
function copy(from: Int32Array, fromAt: number, to: Int32Array, toAt: number, count: number): void {
  if (count > LOOP_WORDS_MAX) {
    to.set(from.subarray(fromAt, fromAt + count), toAt);
    return;
  }
  for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i];
}

/** Thrown in the middle of a step in order to kill the participant there. */
export class Killed extends Error {}

/** The memory of one incarnation of a participant. */
export class SimulatedMemory implements Memory {
  readonly completion: Completion = { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
  readonly completions: Completed[] = [];
  permission = 0;
  /** The participant stalls at the first operation for which this holds: it and all later ones wait until `resume`. */
  private stallsAt: ((to: ParticipantId, isRead: boolean) => boolean) | undefined;
  private readonly stalled: { to: ParticipantId; operation: Operation }[] = [];
  private diesAt: (() => boolean) | undefined;
  private next = 0;
  private readonly oneWord = new Int32Array(1);

  constructor(
    readonly self: ParticipantId,
    readonly own: Int32Array,
    private readonly fabric: SimulatedFabric,
  ) {}

  /** There is one thread, so nothing is reordered. */
  readFence(): void {}

  scratch(words: number): Int32Array {
    return new Int32Array(words);
  }

  permit(guard: number): void {
    this.dieIfDue();
    this.fabric.landSome(this.self);
    this.permission = guard;
    this.dieIfDue();
    // A write may land between this and the next read of the caller.
    this.fabric.landSome(this.self);
  }

  permitted(): number {
    return this.permission;
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
    const { store } = this.fabric;
    const at = store.copyIn(source, from, count);
    this.post(peer, newOperation(false, to, store.block, at, count, guard, tag));
  }

  /** Outcomes come later, as over a network. `shared-fabric.ts` runs the memory in which they do not. */
  writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean {
    this.write(peer, to, source, from, count, guard, tag);
    return false;
  }

  writeWord(peer: ParticipantId, to: number, value: number, guard: number, tag: number): void {
    this.oneWord[0] = value;
    this.write(peer, to, this.oneWord, 0, 1, guard, tag);
  }

  read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    this.post(peer, newOperation(true, at, into, intoAt, count, OPEN, tag));
  }

  private post(to: ParticipantId, operation: Operation): void {
    if (this.mayPost(to, operation.isRead)) this.fabric.post(this.self, to, operation);
    else this.wait(to, operation);
  }

  /** May an operation be posted now? Otherwise it has to wait. The participant may be killed here. */
  protected mayPost(to: ParticipantId, isRead: boolean): boolean {
    this.dieIfDue();
    const { stallsAt } = this;
    return stallsAt === undefined || !(this.isStalled || stallsAt(to, isRead));
  }

  /** Post this operation when the participant resumes. */
  protected wait(to: ParticipantId, operation: Operation): void {
    this.stalled.push({ to, operation });
  }

  poll(): boolean {
    if (this.next === this.completions.length) {
      if (this.next > 0) {
        this.completions.length = 0;
        this.next = 0;
      }
      return false;
    }
    const { peer, tag, guard, outcome } = this.completions[this.next++];
    if (outcome === 'lost') this.fabric.lossPolled(this.self, peer);
    const { completion } = this;
    completion.peer = peer;
    completion.tag = tag;
    completion.guard = guard;
    completion.outcome = outcome;
    return true;
  }

  /** The participant may be killed here: between two posts or changes of permission, or where it was interrupted. */
  dieIfDue(): void {
    if (this.diesAt?.()) throw new Killed();
  }

  /** Kill it in its next step, after so many more posts and changes of permission, unless `mayDie` forbids it then. */
  dieAfter(actions: number, mayDie: () => boolean): void {
    let left = actions;
    this.diesAt = () => left-- <= 0 && mayDie();
  }

  /** Stall in the next step: `posts` more operations are posted, all others wait. */
  stallAfter(posts: number): void {
    let left = posts;
    this.stallsAt = () => left-- <= 0;
  }

  /** Stall before the next write to one of these participants. */
  stallBeforeWriteTo(participants: readonly ParticipantId[]): void {
    this.stallsAt = (to, isRead) => !isRead && participants.includes(to);
  }

  /** Stall after `count` more writes to this participant, before the next one. */
  stallAfterWritesTo(participant: ParticipantId, count: number): void {
    let seen = 0;
    this.stallsAt = (to, isRead) => to === participant && !isRead && seen++ >= count;
  }

  /** Does an operation wait to be posted? */
  get isStalled(): boolean {
    return this.stalled.length > 0;
  }

  /** No effect: delays are drawn. */
  markUrgent(_peer: ParticipantId): void {}

  /** No effect: the world schedules all steps. */
  wake(_peer: ParticipantId, _urgent: boolean): void {}

  hasEnded(peer: ParticipantId): boolean {
    return this.fabric.knowsEnded(peer);
  }

  resume(): void {
    this.diesAt = undefined;
    this.stallsAt = undefined;
    for (const { to, operation } of this.stalled) this.fabric.post(this.self, to, operation);
    this.stalled.length = 0;
  }
}

export class SimulatedFabric {
  nowUs = 0;
  readonly store = new Store();
  private readonly memories: (SimulatedMemory | undefined)[];
  private readonly links: (Link | undefined)[];
  private readonly agenda = new Agenda();
  /** Participants for which `hasEnded` returns true. */
  private readonly ended = new Set<ParticipantId>();
  /** Participants whose memory cannot be reached until they restart. */
  private readonly outOfReach = new Set<ParticipantId>();

  constructor(
    private readonly participants: number,
    readonly weather: Weather,
    protected readonly chance: Chance,
  ) {
    this.memories = new Array<SimulatedMemory | undefined>(participants).fill(undefined);
    this.links = new Array<Link | undefined>(participants * participants).fill(undefined);
  }

  /** Start a participant with empty memory. No earlier post of it, or to it, lands any more. */
  start(participant: ParticipantId, words: number): SimulatedMemory {
    for (let peer = 0; peer < this.participants; peer++) this.clear(peer, participant);
    return this.begin(participant, new Int32Array(words));
  }

  private begin(participant: ParticipantId, own: Int32Array): SimulatedMemory {
    this.ended.delete(participant);
    this.outOfReach.delete(participant);
    for (let peer = 0; peer < this.participants; peer++) this.clear(participant, peer);
    const memory = new SimulatedMemory(participant, own, this);
    this.memories[participant] = memory;
    return memory;
  }

  /** Kill a participant. Its memory stays. A part of its posts in flight may still land. */
  kill(participant: ParticipantId): void {
    if (this.chance.below(2) === 0) this.ended.add(participant);
    for (let peer = 0; peer < this.participants; peer++) {
      const outgoing = this.links[participant * this.participants + peer];
      if (outgoing !== undefined) this.cutShort(outgoing);
    }
  }

  /** Like `kill`, on a machine of its own: posts to it are lost if they are in flight, or posted before it restarts. */
  killOnOwnMachine(participant: ParticipantId): void {
    this.kill(participant);
    this.outOfReach.add(participant);
    for (let peer = 0; peer < this.participants; peer++) this.breakLink(peer, participant);
  }

  /** Restart a killed participant with the memory that it left. */
  resume(participant: ParticipantId): SimulatedMemory {
    const { own, permission } = this.memories[participant]!;
    const memory = this.begin(participant, own);
    memory.permission = permission;
    return memory;
  }

  /** Restart a killed participant and empty its memory, from left to right, while writes of others may still land. */
  restart(participant: ParticipantId): SimulatedMemory {
    const memory = this.resume(participant);
    memory.permission = RETIRED;
    for (let at = 0; at < memory.own.length; ) {
      this.landSome(participant);
      const end = at + 1 + this.chance.below(memory.own.length - at);
      memory.own.fill(0, at, end);
      at = end;
    }
    return memory;
  }

  /** Crash a participant. Its memory is lost. A part of its posts in flight may still land. */
  crash(participant: ParticipantId): void {
    this.kill(participant);
    this.memories[participant] = undefined;
    for (let peer = 0; peer < this.participants; peer++) {
      // Some posters get completions (lost), others never do.
      if (this.chance.below(2) === 0) this.breakLink(peer, participant);
      else this.clear(peer, participant);
    }
  }

  /** Set what `hasEnded` returns for a participant. It may be wrong. */
  tellEnded(participant: ParticipantId, hasEnded: boolean): void {
    if (hasEnded) this.ended.add(participant);
    else this.ended.delete(participant);
  }

  knowsEnded(participant: ParticipantId): boolean {
    return this.ended.has(participant);
  }

  /**
   * Lose all operations in flight from one participant to another. Their completions say so.
   * @param landsFirst  so many of them take effect nevertheless, and only their completions are lost
   */
  breakLink(from: ParticipantId, to: ParticipantId, landsFirst = 0): void {
    const link = this.links[from * this.participants + to];
    if (link === undefined) return;
    link.operations.splice(0).forEach((operation, i) => {
      const { landsAtMost, landed, count } = operation;
      if (i < landsFirst && landed < landsAtMost) this.land(link, operation, landsAtMost - landed);
      if (landsAtMost === count) this.complete(link, operation, 'lost');
    });
    this.agenda.update(link);
  }

  /** Break a link as a network does: operations in flight that have taken effect may be reported as lost too. */
  breakAnywhere(from: ParticipantId, to: ParticipantId): void {
    const { operations } = this.link(from, to);
    this.breakLink(from, to, this.memories[to] ? this.chance.below(operations.length + 1) : 0);
  }

  /** Break a link. Until it `comesBack`, all that is posted on it is lost. */
  goesDown(from: ParticipantId, to: ParticipantId): void {
    this.link(from, to).isDown = true;
    this.breakAnywhere(from, to);
  }

  comesBack(from: ParticipantId, to: ParticipantId): void {
    this.link(from, to).isDown = false;
  }

  /** The poster has polled one of its losses. After the last one it has a new connection. */
  lossPolled(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    // There may be none left: a restart of the peer clears them.
    link.losses = Math.max(0, link.losses - 1);
  }

  slowDown(from: ParticipantId, to: ParticipantId, slownessUs: number): void {
    this.link(from, to).slownessUs = slownessUs;
  }

  /** Hold back all operations from one participant to another until `release`. */
  hold(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    link.slownessUs = Number.POSITIVE_INFINITY;
    for (const operation of link.operations) operation.arrivesUs = Number.POSITIVE_INFINITY;
    this.agenda.update(link);
  }

  /** Let the operations that were held back arrive now, in order. */
  release(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    const arrivesUs = this.nowUs + this.weather.delayUs;
    link.slownessUs = 0;
    link.lastArrivalUs = arrivesUs;
    for (const operation of link.operations) operation.arrivesUs = arrivesUs;
    this.agenda.update(link);
  }

  /** The link from one participant to another. A caller that changes arrival times calls `reschedule`. */
  link(from: ParticipantId, to: ParticipantId): Link {
    const place = from * this.participants + to;
    let link = this.links[place];
    if (link === undefined) {
      link = new Link(from, to);
      this.links[place] = link;
    }
    return link;
  }

  /** Those that have been used. */
  get usedLinks(): Link[] {
    return this.links.filter((link) => link !== undefined);
  }

  /** To be called after arrival times of this link have changed. */
  reschedule(link: Link): void {
    this.agenda.update(link);
  }

  private clear(from: ParticipantId, to: ParticipantId): void {
    const link = this.links[from * this.participants + to];
    if (link === undefined) return;
    link.operations.length = 0;
    link.completions.length = 0;
    link.losses = 0;
    this.agenda.update(link);
  }

  private cutShort(link: Link): void {
    link.completions.length = 0;
    const { operations } = link;
    operations.length = this.chance.below(operations.length + 1);
    operations.forEach((operation, i) => {
      const isLast = i === operations.length - 1;
      const whole = operation.count;
      operation.landsAtMost = isLast
        ? Math.max(operation.landed, this.chance.below(whole + 1))
        : whole;
      operation.tag = NEVER_COMPLETES;
    });
    this.agenda.update(link);
  }

  post(from: ParticipantId, to: ParticipantId, operation: Operation): void {
    const target = this.memories[to];
    if (target === undefined) return;
    const { at, count } = operation;
    if (at < 0 || count <= 0 || at + count > target.own.length) {
      throw new RangeError(
        `words ${at} to ${at + count} are not in the region of participant ${to}`,
      );
    }
    const link = this.link(from, to);
    if (link.losses > 0 || link.isDown || this.outOfReach.has(to)) {
      this.complete(link, operation, 'lost');
      this.agenda.update(link);
      return;
    }
    const { delayUs, jitterUs } = this.weather;
    const delay = delayUs + link.slownessUs + (jitterUs > 0 ? this.chance.below(jitterUs + 1) : 0);
    operation.arrivesUs = Math.max(this.nowUs + delay, link.lastArrivalUs);
    link.lastArrivalUs = operation.arrivesUs;
    link.operations.push(operation);
    if (link.operations.length === 1) this.agenda.update(link);
  }

  /** The time of the next event in memory. */
  nextUs(): number {
    return this.agenda.first?.nextUs ?? Number.POSITIVE_INFINITY;
  }

  /** Advance to the next event and run it. */
  runNext(): void {
    const link = this.agenda.first!;
    this.nowUs = link.nextUs;
    if (link.operations.length > 0 && link.operations[0].arrivesUs <= this.nowUs) this.arrive(link);
    this.handOver(link);
    this.agenda.update(link);
  }

  /** Operations in flight to `participant` may land right now, whole or in part. */
  landSome(participant: ParticipantId): void {
    if (this.weather.tornPercent === 0) return;
    for (let from = 0; from < this.participants; from++) {
      const link = this.links[from * this.participants + participant];
      if (link === undefined || link.operations.length === 0 || this.chance.below(4) > 0) continue;
      if (link.slownessUs === Number.POSITIVE_INFINITY) continue;
      this.arrive(link);
      this.agenda.update(link);
    }
  }

  private arrive(link: Link): void {
    const operation = link.operations[0];
    const remaining = operation.landsAtMost - operation.landed;
    const isTorn = remaining > 1 && this.chance.below(100) < this.weather.tornPercent;
    if (isTorn && operation.landed === 0) operation.isBackward = this.chance.below(2) === 0;
    const count = isTorn ? 1 + this.chance.below(remaining - 1) : remaining;
    this.land(link, operation, count);
    if (operation.landed < operation.landsAtMost) {
      operation.arrivesUs = this.nowUs + 1 + this.chance.below(PIECE_APART_US);
      link.lastArrivalUs = Math.max(link.lastArrivalUs, operation.arrivesUs);
      return;
    }
    link.operations.shift();
    const next = link.operations[0];
    if (next !== undefined) next.arrivesUs = Math.max(next.arrivesUs, operation.arrivesUs);
    if (operation.tag === NEVER_COMPLETES) return;
    const permitted = this.memories[link.to]!.permission;
    this.complete(link, operation, isPermitted(operation.guard, permitted) ? 'ok' : 'refused');
  }

  private land(link: Link, operation: Operation, count: number): void {
    const target = this.memories[link.to]!;
    const { data, dataAt, at, landed } = operation;
    const skip = operation.isBackward ? operation.count - landed - count : landed;
    operation.landed += count;
    if (operation.isRead) {
      copy(target.own, at + skip, data, dataAt + skip, count);
      return;
    }
    // Refused writes may leave their bytes behind, as in shared memory, until one of them is stopped, as by a network.
    // Then all later writes with that guard are stopped too.
    if (!isPermitted(operation.guard, target.permission)) {
      if (link.stoppedGuard !== operation.guard && this.chance.below(2) === 0) {
        link.stoppedGuard = operation.guard;
      }
      if (link.stoppedGuard === operation.guard) return;
    }
    copy(data, dataAt + skip, target.own, at + skip, count);
  }

  private complete(link: Link, operation: Operation, outcome: Outcome): void {
    const { tag, guard, isRead } = operation;
    if (outcome === 'lost') {
      if (!isRead && guard === OPEN && tag === NO_TAG) return;
      link.losses++;
    }
    const isLate = this.chance.below(100) < this.weather.lateCompletionPercent;
    const afterUs = isLate ? this.chance.below(LATE_COMPLETION_US) : 0;
    const last = link.completions[link.completions.length - 1];
    const availableUs = Math.max(this.nowUs + afterUs, last?.availableUs ?? 0);
    link.completions.push({ peer: link.to, tag, guard, outcome, availableUs });
    if (afterUs === 0) this.handOver(link);
  }

  private handOver(link: Link): void {
    const poster = this.memories[link.from];
    while (link.completions.length > 0 && link.completions[0].availableUs <= this.nowUs) {
      const completion = link.completions.shift()!;
      poster?.completions.push(completion);
    }
  }
}

const STORE_BLOCK_WORDS = 1 << 14;
const LOOP_WORDS_MAX = 128;
const PIECE_APART_US = 20;
const LATE_COMPLETION_US = 300;
const NEVER_COMPLETES = -1;

function isPermitted(guard: number, permission: number): boolean {
  return guard === OPEN || guard === permission;
}
