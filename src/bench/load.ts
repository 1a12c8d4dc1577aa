/**
 * Clients that keep a number of messages under way, as agents of one thread: the real client of the
 * protocol, without promises. `load-worker.ts` runs them.
 */
import type { Commons } from '../hosting/commons.js';
import { type ClientSlot, takeSlot } from '../hosting/slot.js';
import { latencyOf } from '../hosting/statistics.js';
import { ARENA } from '../memory/arena.js';
import { type Call, type CallListener, Client } from '../protocol/client.js';
import { NO_OBSERVER } from '../protocol/edges.js';
import type { Agent } from '../runtime/duty.js';
import type { Histogram } from '../runtime/histogram.js';
import type { DestinationSet } from './destinations.js';

export interface LoadOptions {
  readonly clients: number;
  /** Messages that each client keeps under way. */
  readonly outstanding: number;
  /** Where messages go, in turn. */
  readonly sets: readonly DestinationSet[];
  readonly payloadBytes: number;
}

export class Load implements Agent, CallListener {
  /** Messages that all destinations have replied to. */
  count = 0;
  /** Nanoseconds from the offer to the last reply. */
  readonly latency: Histogram;
  private readonly client: Client;
  private readonly sentMs: Float64Array;
  private readonly payload: Uint8Array;
  private readonly slot: ClientSlot;
  private turn: number;
  private nowMs = 0;
  private isStopped = false;

  constructor(
    commons: Commons,
    private readonly options: LoadOptions,
    ordinal: number,
    /** Is told how long each message took. */
    private readonly onAnswered?: (sentMs: number, answeredMs: number) => void,
  ) {
    const { arena, map, layout } = commons;
    this.slot = takeSlot(commons);
    const session = Atomics.add(arena.words, ARENA.sessions, 1) + 1;
    const edges = commons.edges(commons.memory(this.slot.process), NO_OBSERVER);
    this.client = new Client(edges, this.slot.slot, session, this, 0);
    this.latency = latencyOf(arena.words, map, this.slot.process);
    this.latency.reset();
    this.sentMs = new Float64Array(layout.sizes.callsMax);
    this.payload = Uint8Array.from({ length: options.payloadBytes }, (_, i) => i & 0xff);
    this.turn = ordinal % options.sets.length;
  }

  get process(): number {
    return this.slot.process;
  }

  get outstanding(): number {
    return this.client.outstanding;
  }

  /** Send nothing new. */
  stop(): void {
    this.isStopped = true;
  }

  release(): void {
    this.slot.release();
  }

  doWork(nowUs: number): number {
    this.nowMs = performance.now();
    const work = this.client.doWork(nowUs);
    const offered = this.isStopped ? 0 : this.offerAll();
    if (offered > 0) this.client.flush();
    return work + offered;
  }

  private offerAll(): number {
    const { client } = this;
    const { sets, outstanding } = this.options;
    let offered = 0;
    while (client.outstanding < outstanding) {
      const { low, high } = sets[this.turn]!;
      if (client.offer(low, high, this.payload) !== 'accepted') break;
      this.turn = this.turn + 1 < sets.length ? this.turn + 1 : 0;
      this.sentMs[client.lastCall.slot] = this.nowMs;
      offered++;
    }
    return offered;
  }

  replied(): void {}

  answered(call: Call): void {
    this.count++;
    const sentMs = this.sentMs[call.slot]!;
    this.latency.record((this.nowMs - sentMs) * 1e6);
    this.onAnswered?.(sentMs, this.nowMs);
  }
}
