/**
 * A memory in which every write is under control: deterministic, for proof.
 *
 * All participants live in one JavaScript thread. A posted operation travels on a link (one per ordered
 * pair of participants), arrives after a drawn delay, lands whole or in pieces, and completes at once or
 * late. What the contract leaves open is drawn: whether a refused write leaves its bytes behind,
 * which part of a dead participant's writes still lands, whether writes land in the middle of a permission
 * change, or while a region is emptied.
 *
 * Time stands still except in `runNext`. All draws come from the injected `Chance`, so that one seed
 * gives one history.
 */
import {
  type Completion,
  type Memory,
  OPEN,
  type Outcome,
  type ParticipantId,
  RETIRED,
} from 'tram-multicast/internal/memory/contract.js';
import { Agenda, type Completed, Link, newOperation, type Operation } from './links.js';

/** Draws; deterministic for a seed. */
export interface Chance {
  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number;
}

export interface Weather {
  /** Every operation takes at least this long to arrive, and at most so much more. */
  delayUs: number;
  jitterUs: number;
  /** In a hundred: how many operations land in pieces, and how many completions come late. */
  tornPercent: number;
  lateCompletionPercent: number;
}

/** Words on their way: copied into large blocks, which are gone once nothing on the way is in them. */
class Store {
  block = new Int32Array(0);
  private used = 0;

  /** Copy into `block`; returns where. */
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

/** A loop for a few words, the engine's own copy for many: measured, the loop wins below this. */
function copy(from: Int32Array, fromAt: number, to: Int32Array, toAt: number, count: number): void {
  if (count > LOOP_WORDS_MAX) {
    to.set(from.subarray(fromAt, fromAt + count), toAt);
    return;
  }
  for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i];
}

/** Thrown in the middle of a step, to end the participant there. */
export class Killed extends Error {}

/** One incarnation of one participant, as the memory contract shows it. */
export class SimulatedMemory implements Memory {
  readonly completion: Completion = { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
  readonly completions: Completed[] = [];
  permission = 0;
  /** At the first operation that this names the participant stalls: it and all later ones wait until `resume`. */
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

  /** One thread reads in its order. */
  readFence(): void {}

  scratch(words: number): Int32Array {
    return new Int32Array(words);
  }

  permit(guard: number): void {
    this.live();
    this.fabric.landSome(this.self);
    this.permission = guard;
    this.live();
    // A write may land between this and whatever the caller reads next.
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
    this.live();
    const { stallsAt } = this;
    if (stallsAt !== undefined && (this.isStalled || stallsAt(to, operation.isRead))) {
      this.stalled.push({ to, operation });
    } else {
      this.fabric.post(this.self, to, operation);
    }
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

  /** Here it may die: between two of the things it does, so that nothing that follows is done. */
  private live(): void {
    if (this.diesAt?.()) throw new Killed();
  }

  /** Die in the middle of whatever it does next, after so many more posts and changes of permission, if it may. */
  dieAfter(deeds: number, mayDie: () => boolean): void {
    let left = deeds;
    this.diesAt = () => left-- <= 0 && mayDie();
  }

  /** Stall in the middle of whatever it does next: `posts` operations go out, the others wait. */
  stallAfter(posts: number): void {
    let left = posts;
    this.stallsAt = () => left-- <= 0;
  }

  /** Stall in the middle of the step that posts the next write to one of these participants, before that write. */
  stallBeforeWriteTo(participants: readonly ParticipantId[]): void {
    this.stallsAt = (to, isRead) => !isRead && participants.includes(to);
  }

  /** Stall in the middle of the step that posts one more write to this participant than `count`, before that write. */
  stallAfterWritesTo(participant: ParticipantId, count: number): void {
    let seen = 0;
    this.stallsAt = (to, isRead) => to === participant && !isRead && seen++ >= count;
  }

  /** Is there something that it would have posted? */
  get isStalled(): boolean {
    return this.stalled.length > 0;
  }

  /** What is posted takes as long as it is made to. */
  markUrgent(_peer: ParticipantId): void {}

  /** Time is all that wakes anybody here. */
  wake(): void {}

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
  /** Processes of which everybody knows that they have ended. */
  private readonly ended = new Set<ParticipantId>();
  /** Those whose memory nobody reaches until they are back. */
  private readonly outOfReach = new Set<ParticipantId>();

  constructor(
    private readonly participants: number,
    readonly weather: Weather,
    private readonly chance: Chance,
  ) {
    this.memories = new Array<SimulatedMemory | undefined>(participants).fill(undefined);
    this.links = new Array<Link | undefined>(participants * participants).fill(undefined);
  }

  /** A participant starts, with memory that nobody has written to. Nothing that an earlier incarnation posted lands any more. */
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

  /** A participant dies, and its memory lives on. Of what it had posted some part still lands. */
  kill(participant: ParticipantId): void {
    if (this.chance.below(2) === 0) this.ended.add(participant);
    for (let peer = 0; peer < this.participants; peer++) {
      const outgoing = this.links[participant * this.participants + peer];
      if (outgoing !== undefined) this.cutShort(outgoing);
    }
  }

  /** The same of one on a host of its own: what is under way to it, or posted before it is back, is lost. */
  killApart(participant: ParticipantId): void {
    this.kill(participant);
    this.outOfReach.add(participant);
    for (let peer = 0; peer < this.participants; peer++) this.breakLink(peer, participant);
  }

  /** It comes back to the memory that it left. */
  resume(participant: ParticipantId): SimulatedMemory {
    const { own, permission } = this.memories[participant]!;
    const memory = this.begin(participant, own);
    memory.permission = permission;
    return memory;
  }

  /** It comes back and empties that memory, from left to right, while others may still be writing to it. */
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

  /** A participant dies with its memory. Of what it had posted some part still lands. */
  crash(participant: ParticipantId): void {
    this.kill(participant);
    this.memories[participant] = undefined;
    for (let peer = 0; peer < this.participants; peer++) {
      // Some posters learn that the participant is gone, others never hear.
      if (this.chance.below(2) === 0) this.breakLink(peer, participant);
      else this.clear(peer, participant);
    }
  }

  /** Everybody is told that a participant has ended, or that it has not, be it true or not. */
  tellEnded(participant: ParticipantId, hasEnded: boolean): void {
    if (hasEnded) this.ended.add(participant);
    else this.ended.delete(participant);
  }

  knowsEnded(participant: ParticipantId): boolean {
    return this.ended.has(participant);
  }

  /** All that is under way from one participant to another is lost, and its poster is told so. */
  breakLink(from: ParticipantId, to: ParticipantId): void {
    const link = this.links[from * this.participants + to];
    if (link === undefined) return;
    for (const operation of link.operations.splice(0)) {
      if (operation.landsAtMost === operation.count) this.complete(link, operation, 'lost');
    }
    this.agenda.update(link);
  }

  /** The poster has noticed one of its losses; after the last one it has a new connection. */
  lossPolled(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    // A restart of the peer has made good for all of them.
    link.losses = Math.max(0, link.losses - 1);
  }

  slowDown(from: ParticipantId, to: ParticipantId, slownessUs: number): void {
    this.link(from, to).slownessUs = slownessUs;
  }

  /** Nothing from one participant arrives at another until `release`. */
  hold(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    link.slownessUs = Number.POSITIVE_INFINITY;
    for (const operation of link.operations) operation.arrivesUs = Number.POSITIVE_INFINITY;
    this.agenda.update(link);
  }

  /** What was held back arrives now, in order. */
  release(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    const arrivesUs = this.nowUs + this.weather.delayUs;
    link.slownessUs = 0;
    link.lastArrivalUs = arrivesUs;
    for (const operation of link.operations) operation.arrivesUs = arrivesUs;
    this.agenda.update(link);
  }

  /** What is under way from one participant to another. Whoever changes it calls `reschedule`. */
  link(from: ParticipantId, to: ParticipantId): Link {
    const place = from * this.participants + to;
    let link = this.links[place];
    if (link === undefined) {
      link = new Link(from, to);
      this.links[place] = link;
    }
    return link;
  }

  /** The times at which operations of this link arrive have changed. */
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
      throw new RangeError(`words ${at} to ${at + count} are not in the region of process ${to}`);
    }
    const link = this.link(from, to);
    if (link.losses > 0 || this.outOfReach.has(to)) {
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

  /** When something happens in memory next. */
  nextUs(): number {
    return this.agenda.first?.nextUs ?? Number.POSITIVE_INFINITY;
  }

  /** Let that happen. */
  runNext(): void {
    const link = this.agenda.first!;
    this.nowUs = link.nextUs;
    if (link.operations.length > 0 && link.operations[0].arrivesUs <= this.nowUs) this.arrive(link);
    this.handOver(link);
    this.agenda.update(link);
  }

  /** With some chance, part of what is on its way to `participant` lands right now. */
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
    // Revoked writes may leave their bytes behind, as in shared memory, until one of them is stopped, as by
    // a network; then all that follow under that guard are.
    if (!isPermitted(operation.guard, target.permission)) {
      if (link.stoppedGuard !== operation.guard && this.chance.below(2) === 0) {
        link.stoppedGuard = operation.guard;
      }
      if (link.stoppedGuard === operation.guard) return;
    }
    copy(data, dataAt + skip, target.own, at + skip, count);
  }

  private complete(link: Link, operation: Operation, outcome: Outcome): void {
    const { tag, guard } = operation;
    if (outcome === 'lost') link.losses++;
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
