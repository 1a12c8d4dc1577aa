/** What a load needs of a running system, TRAM or another: places for clients, and clients that sit there. */
import type { Commons } from '../hosting/commons.js';
import { pacingOf } from '../hosting/pacing.js';
import { takeSlot } from '../hosting/slot.js';
import { latencyOf } from '../hosting/statistics.js';
import { totalLatency } from '../hosting/status.js';
import { ARENA, type Arena, type ArenaMap } from '../memory/arena.js';
import type { ProcessId } from '../memory/contract.js';
import { Client } from '../protocol/client.js';
import { NO_OBSERVER } from '../protocol/edges.js';
import type { Pacing } from '../runtime/duty.js';
import type { Histogram } from '../runtime/histogram.js';

export interface LoadClient {
  /** Messages that are not answered by all destinations. */
  readonly outstanding: number;
  /** The call of the last accepted offer. */
  readonly lastCall: { readonly slot: number };
  offer(low: number, high: number, payload: Uint8Array): 'accepted' | 'backPressured';
  flush(): number;
  doWork(nowUs: number): number;
}

/** Told of replies. */
export interface LoadListener {
  replied(): void;
  answered(call: { readonly slot: number }): void;
}

export interface Seat {
  readonly client: LoadClient;
  readonly process: ProcessId;
  /** Where latencies are recorded. */
  readonly latency: Histogram;
  release(): void;
}

export interface LoadTarget {
  readonly arena: Arena;
  readonly map: ArenaMap;
  readonly pacing: Pacing;
  readonly callsMax: number;
  takeSeat(listener: LoadListener): Seat;
  /** Of all clients. */
  latency(): Histogram;
}

export function tramTarget(commons: Commons): LoadTarget {
  const { arena, map, config } = commons;
  return {
    arena,
    map,
    pacing: pacingOf(config),
    callsMax: config.sizes.callsMax,
    takeSeat: (listener) => {
      const { slot, process, release } = takeSlot(commons);
      const session = Atomics.add(arena.words, ARENA.sessions, 1) + 1;
      const edges = commons.edges(commons.memory(process), NO_OBSERVER);
      const client = new Client(edges, slot, session, listener, 0);
      return { client, process, release, latency: latencyOf(arena.words, map, process) };
    },
    latency: () => totalLatency(commons),
  };
}
