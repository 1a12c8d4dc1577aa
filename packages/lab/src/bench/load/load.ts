/**
 * A client that keeps a number of messages in flight, as an agent of a thread: the real client of the protocol under test,
 * without promises. Run by `worker.ts` and `changes-worker.ts`.
 */
import type { Agent } from 'tram-multicast/internal/hosting/duty.js';
import type { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import type { DestinationSet } from './destinations.js';
import type { LoadClient, LoadTarget, Seat } from './target.js';

export interface LoadOptions {
  readonly clients: number;
  /** Messages that each client keeps in flight. */
  readonly outstanding: number;
  /** The destinations of messages; clients cycle through them. */
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
    /** Called for each answered message. */
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
    return this.seat.participant;
  }

  get outstanding(): number {
    return this.client.outstanding;
  }

  /** Stops offering new messages. */
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
