/** Clients of a RamCast cluster as a load target. */

import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { pacingOf } from 'tram-multicast/internal/hosting/pacing.js';
import { groupsOf } from 'tram-multicast/internal/hosting/service.js';
import { latencyOf } from 'tram-multicast/internal/hosting/statistics.js';
import { TraceFile } from 'tram-multicast/internal/hosting/trace.js';
import { type Arena, PARTICIPANT } from 'tram-multicast/internal/memory/arena.js';
import { beginIncarnation } from 'tram-multicast/internal/memory/shared.js';
import { Client } from '../../../baselines/ramcast/client.js';
import { type LoadClient, type LoadTarget, pidsIn } from '../../load/target.js';
import { messageName, RamcastContext } from './context.js';

export function ramcastTarget(arena: Arena): LoadTarget {
  const context = RamcastContext.attach(arena);
  const { map, layout, config } = context;
  return {
    arena,
    map,
    pacing: pacingOf({ ...config, durability: 'none' }),
    callsMax: config.sizes.callsMax,
    pids: pidsIn(arena, map),
    takeSeat: (listener) => {
      const slot = takeSlot(context);
      const participant = layout.clientParticipant(slot);
      // The client continues where the last one in this slot has stopped.
      beginIncarnation(arena, map, participant, true);
      const client = new Client(context.edges(participant), slot, listener);
      const trace = openTrace(config.trace, slot);
      return {
        client: trace === undefined ? client : traced(client, trace),
        participant,
        latency: latencyOf(arena.words, map, participant),
        release: () => {
          trace?.close();
          Atomics.store(arena.words, map.participant(participant) + PARTICIPANT.owner, 0);
        },
      };
    },
    latency: () => {
      const total = Histogram.empty();
      for (let slot = 0; slot < config.sizes.clients; slot++) {
        total.add(latencyOf(arena.words, map, layout.clientParticipant(slot)));
      }
      return total;
    },
    close: () => arena.close(),
  };
}

function takeSlot({ arena, map, layout, config }: RamcastContext): number {
  for (let slot = 0; slot < config.sizes.clients; slot++) {
    const owner = map.participant(layout.clientParticipant(slot)) + PARTICIPANT.owner;
    if (Atomics.compareExchange(arena.words, owner, 0, 1) === 0) return slot;
  }
  throw new RangeError(`all ${config.sizes.clients} client slots are taken`);
}

function openTrace(directory: string | undefined, slot: number): TraceFile | undefined {
  return directory === undefined ? undefined : new TraceFile(directory, `client-${slot}`);
}

/** A client that also traces what it sends. */
function traced(client: Client, trace: TraceFile): LoadClient {
  return {
    get outstanding() {
      return client.outstanding;
    },
    get lastCall() {
      return client.lastCall;
    },
    offer: (low, high, payload) => {
      const outcome = client.offer(low, high, payload);
      if (outcome === 'accepted') {
        trace.add({
          event: 'multicast',
          id: messageName(client.client, client.lastCall.sequence),
          client: `c${client.client}`,
          destinations: groupsOf(low, high),
        });
      }
      return outcome;
    },
    flush: () => client.flush(),
    doWork: () => client.doWork(),
  };
}
