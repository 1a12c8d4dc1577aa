/** What a load needs of a running system: *seats*, which are clients in slots of their own. And TRAM as such a target. */

import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import type { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import type { Pacing, Wire } from 'tram-multicast/internal/hosting/duty.js';
import type { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { pacingOf } from 'tram-multicast/internal/hosting/pacing.js';
import { type ClientSlot, takeSlot } from 'tram-multicast/internal/hosting/slot.js';
import { latencyOf } from 'tram-multicast/internal/hosting/statistics.js';
import { totalLatency } from 'tram-multicast/internal/hosting/status.js';
import { type Arena, type ArenaMap, HOST } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import type { Calls } from 'tram-multicast/internal/memory/fabric/calls.js';
import { Client } from 'tram-multicast/internal/protocol/data-path/client.js';
import { NO_OBSERVER } from 'tram-multicast/internal/protocol/edges.js';

export interface LoadClient {
  /** Messages in flight. */
  readonly outstanding: number;
  /** The call of the last accepted offer. */
  readonly lastCall: { readonly slot: number };
  offer(low: number, high: number, payload: Uint8Array): 'accepted' | 'backPressured';
  flush(): number;
  doWork(nowUs: number): number;
}

/** Receives replies. */
export interface LoadListener {
  replied(): void;
  answered(call: { readonly slot: number }): void;
}

export interface Seat {
  readonly client: LoadClient;
  readonly participant: ParticipantId;
  /** Where latencies are recorded. */
  readonly latency: Histogram;
  release(): void;
}

export interface LoadTarget {
  readonly arena: Arena;
  readonly map: ArenaMap;
  readonly pacing: Pacing;
  readonly callsMax: number;
  /** The network, if clients share no memory with replicas. */
  readonly wire?: Wire;
  /** What the clients have asked of the network so far, if there is one. */
  readonly calls?: () => Calls;
  /** Of the processes that run the replicas, if they are on this machine. */
  readonly pids: readonly number[];
  takeSeat(listener: LoadListener): Seat;
  /** The latencies of all clients together. */
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

/** A client of TRAM in a slot that was taken for it. */
export function seatOf(context: ClusterContext, taken: ClientSlot, listener: LoadListener): Seat {
  const { slot, participant, session, release } = taken;
  const edges = context.edges(context.memory(participant), NO_OBSERVER);
  const client = new Client(edges, slot, session, listener, nowUs());
  const latency = latencyOf(context.arena.words, context.map, participant);
  return { client, participant, latency, release };
}

/** The pids of the hosts, as they have written them into the arena. */
export function pidsIn({ words }: Arena, map: ArenaMap): number[] {
  return Array.from({ length: map.hosts }, (_, host) => words[map.host(host) + HOST.pid]);
}
