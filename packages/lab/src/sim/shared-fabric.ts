/**
 * The memory of threads and processes (`tram/memory/shared.ts`) in the simulated world: production code over one arena.
 * There are no links. Posts take effect at once, word by word, and interruptions (`interruptions.ts`) let other
 * participants run between the words, and between a write and the check of its permission. Called by `world.ts`.
 */
import {
  type Arena,
  ArenaMap,
  HOST,
  HOST_STATE,
  withHostState,
} from 'tram-multicast/internal/memory/arena.js';
import {
  type Completion,
  OPEN,
  type ParticipantId,
} from 'tram-multicast/internal/memory/contract.js';
import { beginIncarnation, SharedMemory } from 'tram-multicast/internal/memory/shared.js';
import type { Layout } from 'tram-multicast/internal/protocol/layout.js';
import { newOperation, type Operation } from './links.js';
import { type Chance, SimulatedFabric, SimulatedMemory } from './simulated-memory.js';

const CALM = { delayUs: 0, jitterUs: 0, tornPercent: 0, lateCompletionPercent: 0 };

/** Adds to production's memory that a participant may die, or stall, between two posts. */
class ArenaMemory extends SimulatedMemory {
  override readonly completion: Completion;

  constructor(
    readonly shared: SharedMemory,
    fabric: SharedFabric,
  ) {
    super(shared.self, shared.own, fabric);
    this.completion = shared.completion;
  }

  override readFence(): void {
    this.shared.readFence();
  }

  override scratch(words: number): Int32Array {
    return this.shared.scratch(words);
  }

  override permit(guard: number): void {
    this.dieIfDue();
    this.shared.permit(guard);
    this.dieIfDue();
  }

  override permitted(): number {
    return this.shared.permitted();
  }

  override write(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    if (this.mayPost(peer, false)) this.shared.write(peer, to, source, from, count, guard, tag);
    else
      this.wait(
        peer,
        newOperation(false, to, source.slice(from, from + count), 0, count, guard, tag),
      );
  }

  override writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean {
    if (this.mayPost(peer, false))
      return this.shared.writeAtOnce(peer, to, source, from, count, guard, tag);
    const copied = source.slice(from, from + count);
    this.wait(peer, newOperation(false, to, copied, 0, count, guard, tag));
    return false;
  }

  override writeWord(
    peer: ParticipantId,
    to: number,
    value: number,
    guard: number,
    tag: number,
  ): void {
    if (this.mayPost(peer, false)) this.shared.writeWord(peer, to, value, guard, tag);
    else this.wait(peer, newOperation(false, to, Int32Array.of(value), 0, 1, guard, tag));
  }

  override read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    if (this.mayPost(peer, true)) this.shared.read(peer, at, count, into, intoAt, tag);
    else this.wait(peer, newOperation(true, at, into, intoAt, count, OPEN, tag));
  }

  override poll(): boolean {
    return this.shared.poll();
  }

  override wake(peer: ParticipantId, urgent: boolean): void {
    this.shared.wake(peer, urgent);
  }

  override hasEnded(peer: ParticipantId): boolean {
    return this.shared.hasEnded(peer);
  }
}

export class SharedFabric extends SimulatedFabric {
  private readonly arena: Arena;
  private readonly map: ArenaMap;
  private readonly running: ArenaMemory[] = [];

  constructor(layout: Layout, chance: Chance) {
    const { groups, replicas, clients } = layout.sizes;
    const hosts = groups * replicas;
    super(hosts + clients, { ...CALM }, chance);
    this.map = new ArenaMap(layout, hosts, 0, 0, [...Array(hosts).keys()]);
    this.arena = {
      // There is one thread, and pages that are opened from disk may not share memory.
      words: new Int32Array(this.map.words),
      // Nobody parks: the world schedules all steps.
      parking: { wait: () => undefined, wake: () => undefined },
      close: () => undefined,
    };
  }

  override start(participant: ParticipantId): SimulatedMemory {
    return this.enter(participant, false);
  }

  override restart(participant: ParticipantId): SimulatedMemory {
    return this.enter(participant, false);
  }

  override resume(participant: ParticipantId): SimulatedMemory {
    return this.enter(participant, true);
  }

  private enter(participant: ParticipantId, resumes: boolean): SimulatedMemory {
    beginIncarnation(this.arena, this.map, participant, resumes);
    this.tellEnded(participant, false);
    const shared = new SharedMemory(participant, this.arena, this.map);
    this.running[participant] = new ArenaMemory(shared, this);
    return this.running[participant];
  }

  override kill(participant: ParticipantId): void {
    if (this.chance.below(2) === 0) this.tellEnded(participant, true);
  }

  /** Threads and processes of one machine leave their memory. */
  override crash(participant: ParticipantId): void {
    this.kill(participant);
  }

  override tellEnded(participant: ParticipantId, hasEnded: boolean): void {
    const { words } = this.arena;
    const at = this.map.host(this.map.hostOf(participant)) + HOST.state;
    words[at] = withHostState(words[at], hasEnded ? HOST_STATE.ended : HOST_STATE.running);
  }

  /** Carry out an operation that waited while its poster was stalled. */
  override post(from: ParticipantId, to: ParticipantId, operation: Operation): void {
    const { shared } = this.running[from];
    const { isRead, at, data, dataAt, count, guard, tag } = operation;
    if (isRead) shared.read(to, at, count, data, dataAt, tag);
    else shared.write(to, at, data, dataAt, count, guard, tag);
  }
}
