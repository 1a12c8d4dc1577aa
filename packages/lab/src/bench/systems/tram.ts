/** TRAM as a `System`, on one of its trees: a cluster, and clients in a thread or process of their own. */
import { Cluster } from 'tram-multicast/internal/cluster.js';
import type { Durability, Order } from 'tram-multicast/internal/protocol/edges.js';
import { type BenchMemory, runLoad } from '../load/run.js';
import type { Setup, System } from './system.js';

export interface TramOptions {
  /** `base`, `breadth`, `depth`, or parents such as `-1,0,0`. */
  readonly tree: string;
  readonly memory: BenchMemory;
  readonly hosts?: number;
  readonly leaders?: 'spread' | 'together';
  /** Default: the order of the paper. */
  readonly order?: Order;
  /** Default: none. */
  readonly durability?: Durability;
  /** The directory of the journals, if messages are to be durable. */
  readonly journal?: string;
  /** Aborts a measurement; `close` then destroys the cluster without waiting. */
  readonly signal?: AbortSignal;
}

const LOG_BYTES = 1 << 18;
const FEED_BYTES = 1 << 16;
const INBOX_BYTES = 1 << 16;
/** Limit for the inboxes of all clients at one replica: with many clients each inbox is smaller. */
const INBOXES_BYTES = 1 << 21;
/** Each ring has room for at least so many of the largest messages. */
const MESSAGES_MIN = 8;
/** More than the overhead of a record. */
const OVERHEAD_BYTES = 128;

export function tram(options: TramOptions): System {
  const {
    tree,
    memory,
    hosts,
    leaders,
    order = 'multicast',
    durability,
    journal,
    signal,
  } = options;
  return {
    name: `TRAM ${tree}`,
    start: async (setup) => {
      const cluster = await Cluster.start({
        memory,
        tree,
        order,
        durability,
        journal,
        groups: setup.groups,
        replicas: setup.replicas,
        ...(hosts !== undefined && { hosts }),
        ...(leaders !== undefined && { leaders }),
        clients: setup.clientsMax + 1,
        callsMax: setup.outstandingMax,
        payloadBytesMax: setup.payloadBytesMax,
        replyBytesMax: 16,
        ...ringBytes(setup),
        // A host that ends is a failure, not something to measure.
        restartHosts: false,
      });
      return {
        measure: (load) => runLoad(memory, { ...load, address: cluster.address }, signal),
        close: () => (signal?.aborted ? cluster.destroy() : cluster.close()),
      };
    },
  };
}

/** Ring sizes for a cluster with such a load. */
export function ringBytes({ clientsMax, payloadBytesMax }: Setup) {
  const least = MESSAGES_MIN * (payloadBytesMax + OVERHEAD_BYTES);
  return {
    logBytes: Math.max(LOG_BYTES, least),
    feedBytes: Math.max(FEED_BYTES, least),
    inboxBytes: Math.max(Math.min(INBOX_BYTES, Math.floor(INBOXES_BYTES / clientsMax)), least),
  };
}
