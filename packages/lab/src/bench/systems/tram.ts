/** TRAM as a `System`, on one of its trees: a cluster, and clients in a thread or process of their own. */
import { Cluster } from 'tram-multicast/internal/cluster.js';
import type { ClusterStatus } from 'tram-multicast/internal/hosting/status.js';
import type { Durability, Order } from 'tram-multicast/internal/protocol/edges.js';
import { type BenchMemory, runLoad } from '../load/run.js';
import type { RunningSystem, Setup, System } from './system.js';

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
  readonly snapshotBytes?: number;
  readonly service?: URL;
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

export interface RunningTram extends RunningSystem {
  status(): ClusterStatus;
}

export function tram(options: TramOptions): System {
  return { name: `TRAM ${options.tree}`, start: (setup) => startTram(options, setup) };
}

export async function startTram(options: TramOptions, setup: Setup): Promise<RunningTram> {
  const { signal, order = 'multicast', ...rest } = options;
  const cluster = await Cluster.start({
    ...rest,
    order,
    ...sizeOptions(setup),
    // A host that ends is a failure, not something to measure.
    restartHosts: false,
  });
  return {
    measure: (load) => runLoad(rest.memory, { ...load, address: cluster.address }, signal),
    status: () => cluster.status(),
    close: () => (signal?.aborted ? cluster.destroy() : cluster.close()),
  };
}

/** How large the memory of a cluster is that is started for such a setup. */
export function sizeOptions(setup: Setup) {
  return {
    groups: setup.groups,
    replicas: setup.replicas,
    clients: setup.clientsMax + 1,
    callsMax: setup.outstandingMax,
    payloadBytesMax: setup.payloadBytesMax,
    replyBytesMax: 16,
    ...ringBytes(setup),
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
