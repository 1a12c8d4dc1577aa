/** The cluster behind a gateway: started by this process, or by others. */

import { Cluster } from 'tram-multicast';
import { type BackendListener, TramBackend } from './backend/backend.js';
import { viewsOf } from './cluster-view.js';
import type { ClusterFacts } from './gateway/cluster-facts.js';
import type { ShardCall } from './gateway/shards.js';
import { CLIENTS_OF_GATEWAY, joinCluster } from './join.js';
import { PAYLOAD_BYTES_MAX, REPLY_BYTES_MAX } from './messages/message.js';
import type { ClusterOptions } from './options.js';

const SHARDS = 4;
const REPLICAS = 3;

const CLIENTS = 4 * CLIENTS_OF_GATEWAY;

/** How many messages a client of a gateway may have in flight, besides those with which it listens. Shards hold a reply for each. */
const CALLS_MAX = 32;

export interface StartedCluster {
  /** Undefined if others run it. */
  readonly own: Cluster | undefined;
  readonly backend: TramBackend;
  readonly facts: ClusterFacts;
  close(): Promise<void>;
}

export function startCluster(
  options: ClusterOptions,
  listener: BackendListener,
): Promise<StartedCluster> {
  const other = options.attach ?? options.config;
  return other === undefined ? startOwnCluster(options, listener) : joinCluster(other, listener);
}

async function startOwnCluster(
  options: ClusterOptions,
  listener: BackendListener,
): Promise<StartedCluster> {
  const { shards = SHARDS, replicas = REPLICAS, memory = 'threads', durability = 'none' } = options;
  const cluster = await Cluster.start({
    groups: shards,
    replicas: replicas as 1 | 3 | 5 | 7,
    memory,
    durability,
    ...(options.name !== undefined && { name: options.name }),
    ...(options.journal !== undefined && { journal: options.journal }),
    tree: 'breadth',
    // A client that has its reply may tell another one, which then has to find the effect in any shard.
    order: 'strict',
    service: new URL('./service.js', import.meta.url),
    clients: CLIENTS,
    // A message that ends a transaction must not wait for those that listen to each shard.
    callsMax: CALLS_MAX + shards,
    payloadBytesMax: PAYLOAD_BYTES_MAX,
    replyBytesMax: REPLY_BYTES_MAX,
  });
  try {
    const backend = await TramBackend.connect((opts) => cluster.connect(opts), shards, listener);
    await limitMemory(backend, options.maxmemory ?? 0);
    const close = async (): Promise<void> => {
      await backend.close();
      await cluster.close();
    };
    const facts = {
      replicas,
      isDurable: durability === 'always',
      isKept: durability !== 'none',
      lookAtShards: async () => viewsOf(cluster.status()),
    };
    return { own: cluster, backend, facts, close };
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

/** The shards share the memory evenly. */
function limitMemory({ shards }: TramBackend, bytes: number): Promise<void> {
  const args = [String(Math.ceil(bytes / shards.count))];
  const calls = Array.from(
    { length: shards.count },
    (_, shard): ShardCall => ({ shard, command: { name: '.maxmemory' }, args, resp: 3 }),
  );
  return new Promise((resolve, reject) => shards.run(calls, () => resolve(), reject));
}
