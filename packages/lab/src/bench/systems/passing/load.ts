/**
 * The clients of a message-passing system, all in one process. Each keeps a number of messages in flight and cycles through the
 * destination sets, as `load/load.ts` does for TRAM. Run by `client.ts`.
 */

import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import type { CallListener, Client } from '../../../baselines/passing/client.js';
import { type Message, wordsFor } from '../../../baselines/passing/message.js';
import type { Network, Participant, Sizes } from '../../../baselines/passing/network.js';
import type { Protocol } from '../../../baselines/passing/protocol.js';
import { type Load, latenciesIn, type Measurement } from '../system.js';

const DRAIN_MS = 5000;
const SLICE_MS = 10;

export class PassingLoad implements CallListener, Participant {
  private readonly clients: Client[];
  private readonly sentMs: Float64Array;
  /** The next destination set of each client. */
  private readonly turns: Int32Array;
  private load: Load | undefined;
  private payload = new Int32Array(0);
  private latency = Histogram.empty();
  private count = 0;

  /** @param record  called for every message */
  constructor(
    protocol: Protocol,
    private readonly sizes: Sizes,
    network: Network,
    private readonly record?: (client: number, number: number, low: number, high: number) => void,
  ) {
    this.clients = Array.from({ length: sizes.clients }, (_, client) =>
      protocol.client(client, network, this),
    );
    this.sentMs = new Float64Array(sizes.clients * sizes.slots);
    this.turns = new Int32Array(sizes.clients);
  }

  /** Messages in flight. */
  get outstanding(): number {
    return this.clients.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  /** @param cpuSeconds  the CPU time of all processes so far */
  async measure(load: Load, cpuSeconds: () => number): Promise<Measurement> {
    this.begin(load);
    await pause(load.warmUpSeconds * 1000);
    this.latency = Histogram.empty();
    this.count = 0;
    const cpuBefore = cpuSeconds();
    const startedMs = performance.now();
    await pause(load.seconds * 1000);
    const seconds = (performance.now() - startedMs) / 1000;
    const messages = this.count;
    const coresUsed = (cpuSeconds() - cpuBefore) / seconds;
    const latency = this.latency.snapshot();
    await this.drain();
    return {
      messages,
      seconds,
      ...latenciesIn(latency),
      unanswered: this.outstanding,
      coresUsed,
    };
  }

  receive(from: number, message: Message): void {
    this.clients[message.client].receive(from, message);
  }

  answered(client: number, slot: number): void {
    const nowMs = performance.now();
    this.count++;
    this.latency.record((nowMs - this.sentMs[client * this.sizes.slots + slot]) * 1e6);
    if (this.load !== undefined) this.multicast(client, this.load, nowMs);
  }

  private begin(load: Load): void {
    this.load = load;
    const bytes = Uint8Array.from({ length: 4 * wordsFor(load.payloadBytes) }, (_, i) => i & 0xff);
    this.payload = new Int32Array(bytes.buffer);
    for (let client = 0; client < load.clients; client++) {
      this.turns[client] = client % load.sets.length;
    }
    for (let i = 0; i < load.outstanding; i++) {
      const nowMs = performance.now();
      for (let client = 0; client < load.clients; client++) this.multicast(client, load, nowMs);
    }
  }

  private multicast(client: number, load: Load, nowMs: number): void {
    const turn = this.turns[client];
    const { low, high } = load.sets[turn];
    const sender = this.clients[client];
    if (!sender.multicast(low, high, this.payload, load.payloadBytes)) return;
    this.turns[client] = turn + 1 < load.sets.length ? turn + 1 : 0;
    this.sentMs[client * this.sizes.slots + sender.lastSlot] = nowMs;
    this.record?.(client, sender.lastNumber, low, high);
  }

  private async drain(): Promise<void> {
    this.load = undefined;
    const untilMs = performance.now() + DRAIN_MS;
    while (this.outstanding > 0 && performance.now() < untilMs) await pause(SLICE_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
