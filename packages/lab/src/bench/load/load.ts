/**
 * Clients that keep a number of messages under way, as agents of one thread: the real client of the
 * protocol, whichever it is, without promises. `load-worker.ts` runs them.
 */
import type { Agent } from 'tram-multicast/internal/hosting/duty.js';
import type { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import type { DestinationSet } from './destinations.js';
import type { LoadClient, LoadTarget, Seat } from './target.js';

export interface LoadOptions {
  readonly clients: number;
  /** Messages that each client keeps under way. */
  readonly outstanding: number;
  /** Where messages go, in turn. */
  readonly sets: readonly DestinationSet[];
  readonly payloadBytes: number;
}

export class Load implements Agent {
  /** Messages that all destinations have replied to. */
  count = 0;
  /** Nanoseconds from the offer to the last reply. */
  readonly latency: Histogram;
  private readonly client: LoadClient;
  private readonly sentMs: Float64Array;
  private readonly payload: Uint8Array;
  private readonly seat: Seat;
  private turn: number;
  private nowMs = 0;
  private isStopped = false;

  constructor(
    target: LoadTarget,
    private readonly options: LoadOptions,
    ordinal: number,
    /** Is told how long each message took. */
    private readonly onAnswered?: (sentMs: number, answeredMs: number) => void,
  ) {
    this.seat = target.takeSeat(this);
    this.client = this.seat.client;
    this.latency = this.seat.latency;
    this.latency.reset();
    this.sentMs = new Float64Array(target.callsMax);
    this.payload = Uint8Array.from({ length: options.payloadBytes }, (_, i) => i & 0xff);
    this.turn = ordinal % options.sets.length;
  }

  get process(): number {
    return this.seat.process;
  }

  get outstanding(): number {
    return this.client.outstanding;
  }

  /** Send nothing new. */
  stop(): void {
    this.isStopped = true;
  }

  release(): void {
    this.seat.release();
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
      const { low, high } = sets[this.turn];
      if (client.offer(low, high, this.payload) !== 'accepted') break;
      this.turn = this.turn + 1 < sets.length ? this.turn + 1 : 0;
      this.sentMs[client.lastCall.slot] = this.nowMs;
      offered++;
    }
    return offered;
  }

  replied(): void {}

  answered(call: { readonly slot: number }): void {
    this.count++;
    const sentMs = this.sentMs[call.slot];
    this.latency.record((this.nowMs - sentMs) * 1e6);
    this.onAnswered?.(sentMs, this.nowMs);
  }
}
