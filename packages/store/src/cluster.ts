/** The cluster behind a gateway: started by this process, or by others. */

import { availableParallelism } from 'node:os';
import { Cluster } from 'tram-multicast';
import { type BackendListener, TramBackend } from './backend/backend.js';
import { viewsOf } from './cluster-view.js';
import { POLICIES } from './engine/eviction.js';
import type { ClusterFacts } from './gateway/cluster-facts.js';
import { configureShards } from './gateway/shard-settings.js';
import { CLIENTS_OF_GATEWAY, joinCluster } from './join.js';
import { PAYLOAD_BYTES_MAX, REPLY_BYTES_MAX } from './messages/message.js';
import { type ClusterOptions, StoreError } from './options.js';

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

export async function startCluster(
  options: ClusterOptions,
  listener: BackendListener,
): Promise<StartedCluster> {
  checkMemory(options);
  const other = options.attach ?? options.config;
  const cluster = await (other === undefined
    ? startOwnCluster(options, listener)
    : joinCluster(other, listener));
  try {
    await configureMemory(cluster.backend, options);
    return cluster;
  } catch (error) {
    await cluster.close();
    throw error;
  }
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
    // TRAM would leave one of two cores to the gateway, which needs less than half of it.
    ...(memory === 'threads' && availableParallelism() === 2 && replicas > 1 && { hosts: 2 }),
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

/** @throws StoreError */
function checkMemory({ maxmemory = 0, maxmemoryPolicy = 'noeviction' }: ClusterOptions): void {
  if (!Number.isSafeInteger(maxmemory) || maxmemory < 0) {
    throw new StoreError(`maxmemory is ${maxmemory}`, 'Use a number of bytes, or 0 for no limit.');
  }
  if (!POLICIES.includes(maxmemoryPolicy)) {
    const hint = `Use one of ${POLICIES.join(', ')}.`;
    throw new StoreError(`there is no maxmemoryPolicy '${maxmemoryPolicy}'`, hint);
  }
}

/** Without these options, the shards keep what they have: from their journals, or from another gateway. */
async function configureMemory(
  { shards }: TramBackend,
  { maxmemory, maxmemoryPolicy }: ClusterOptions,
): Promise<void> {
  const changes = {
    ...(maxmemory !== undefined && { maxmemory: String(maxmemory) }),
    ...(maxmemoryPolicy !== undefined && { 'maxmemory-policy': maxmemoryPolicy }),
  };
  if (Object.keys(changes).length > 0) await configureShards(shards, changes);
}
