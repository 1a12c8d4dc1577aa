/** What a load needs of a running system, TRAM or another: places for clients, and clients that sit there. */

import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import type { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import type { Pacing, Wire } from 'tram-multicast/internal/hosting/duty.js';
import type { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { pacingOf } from 'tram-multicast/internal/hosting/pacing.js';
import { type ClientSlot, takeSlot } from 'tram-multicast/internal/hosting/slot.js';
import { latencyOf } from 'tram-multicast/internal/hosting/statistics.js';
import { totalLatency } from 'tram-multicast/internal/hosting/status.js';
import { type Arena, type ArenaMap, HOST } from 'tram-multicast/internal/memory/arena.js';
import type { ProcessId } from 'tram-multicast/internal/memory/contract.js';
import { Client } from 'tram-multicast/internal/protocol/data-path/client.js';
import { NO_OBSERVER } from 'tram-multicast/internal/protocol/edges.js';

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
  /** Where clients share no memory with replicas: what brings replies, and takes messages there. */
  readonly wire?: Wire;
  /** Of the processes that run the replicas, if they are on this machine. */
  readonly pids: readonly number[];
  takeSeat(listener: LoadListener): Seat;
  /** Of all clients. */
  latency(): Histogram;
  /** After all seats have been released. */
  close(): void;
}

export function tramTarget(context: ClusterContext): LoadTarget {
  const { arena, map, config } = context;
  return {
    arena,
    map,
    pacing: pacingOf(config),
    callsMax: config.sizes.callsMax,
    pids: pidsIn(arena, map),
    takeSeat: (listener) => seatOf(context, takeSlot(context), listener),
    latency: () => totalLatency(context),
    close: () => arena.close(),
  };
}

/** A client of TRAM in a slot that it has taken. */
export function seatOf(context: ClusterContext, taken: ClientSlot, listener: LoadListener): Seat {
  const { slot, process, session, release } = taken;
  const edges = context.edges(context.memory(process), NO_OBSERVER);
  const client = new Client(edges, slot, session, listener, nowUs());
  const latency = latencyOf(context.arena.words, context.map, process);
  return { client, process, latency, release };
}

/** As hosts have written them down. */
export function pidsIn({ words }: Arena, map: ArenaMap): number[] {
  return Array.from({ length: map.hosts }, (_, host) => words[map.host(host) + HOST.pid]);
}
