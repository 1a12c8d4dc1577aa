/** The cluster behind a gateway: started by this process, or by others. */

import { availableParallelism } from 'node:os';
import { Client, Cluster } from 'tram-multicast';
import { type BackendListener, type Connect, TramBackend } from './backend/backend.js';
import type { ClusterFacts } from './gateway/gateway.js';
import type { ShardCall } from './gateway/shards.js';
import { PAYLOAD_BYTES_MAX, REPLY_BYTES_MAX } from './messages/message.js';
import type { ClusterOptions } from './options.js';

const SHARDS = 4;
const REPLICAS = 3;

/** Each gateway has two clients. */
const CLIENTS = 8;

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
    await limitMemory(backend, options.maxmemory ?? 0);
    const close = async (): Promise<void> => {
      await backend.close();
      await cluster.close();
    };
    const facts = { replicas, isDurable: durability === 'always' };
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

/** @param address  the name of the cluster, or the path of its configuration file */
async function joinCluster(address: string, listener: BackendListener): Promise<StartedCluster> {
  const attached = await Cluster.attach(address);
  try {
    const { groups, memory, durability } = attached.status();
    const connect: Connect = (options) =>
      memory === 'machines' ? Client.connect(address, options) : attached.connect(options);
    // On machines, it would copy the state of all hosts again and again.
    if (memory === 'machines') await attached.close();
    const backend = await TramBackend.connect(connect, groups.length, listener);
    const close = async (): Promise<void> => {
      await backend.close();
      await attached.close();
    };
    const facts = { replicas: groups[0].replicas.length, isDurable: durability === 'always' };
    return { own: undefined, backend, facts, close };
  } catch (error) {
    await attached.close();
    throw error;
  }
}
