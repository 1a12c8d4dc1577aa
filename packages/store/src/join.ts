/** Joins a cluster that others run, after it has found that its options and its service are those that a gateway needs. */

import {
  Client,
  Cluster,
  type ClusterStatus,
  type ConnectOptions,
  ReplyError,
} from 'tram-multicast';
import { type BackendListener, TramBackend } from './backend/backend.js';
import type { StartedCluster } from './cluster.js';
import { RemoteLook, viewsOf } from './cluster-view.js';
import { ByteWriter } from './engine/bytes.js';
import {
  GREETING,
  KIND,
  PAYLOAD_BYTES_MAX,
  REPLY_BYTES_MAX,
  writeMessage,
} from './messages/message.js';
import { StoreError } from './options.js';

/** A data client and a control client. */
export const CLIENTS_OF_GATEWAY = 2;

/** How many messages a gateway has under way at least, besides those with which it listens to each shard. */
const CALLS_BESIDES = 16;

/** How long shards may take to say what they are: some may be about to have a leader. */
const GREETING_MS = 10_000;

/** @param address  the name of the cluster, or the path of its configuration file */
export async function joinCluster(
  address: string,
  listener: BackendListener,
): Promise<StartedCluster> {
  const attached = await Cluster.attach(address);
  try {
    const status = attached.status();
    const { groups, memory, durability } = status;
    const isOnMachines = memory === 'machines';
    // On machines, it would copy the state of all hosts again and again.
    if (isOnMachines) await attached.close();
    refuseUnfit(status, address);
    const connect = (options?: ConnectOptions): Promise<Client> =>
      isOnMachines ? Client.connect(address, options) : attached.connect(options);
    await requireStore(connect, groups.length, address);
    const backend = await TramBackend.connect(connect, groups.length, listener);
    const close = async (): Promise<void> => {
      await backend.close();
      await attached.close();
    };
    const remote = new RemoteLook(address);
    const facts = {
      replicas: groups[0].replicas.length,
      isDurable: durability === 'always',
      isKept: true,
      lookAtShards: async () => (isOnMachines ? remote.look() : viewsOf(attached.status())),
    };
    return { own: undefined, backend, facts, close };
  } catch (error) {
    await attached.close();
    throw error;
  }
}

/** @throws a StoreError that lists all options that have to be others */
function refuseUnfit(status: ClusterStatus, address: string): void {
  const { order, payloadBytesMax, replyBytesMax, callsMax, groups, clients } = status;
  const callsMin = groups.length + CALLS_BESIDES;
  const wrong = [
    ...(order === 'strict' ? [] : [`order is ${order}, not strict`]),
    ...tooSmall('payloadBytesMax', payloadBytesMax, PAYLOAD_BYTES_MAX),
    ...tooSmall('replyBytesMax', replyBytesMax, REPLY_BYTES_MAX),
    ...tooSmall('callsMax', callsMax, callsMin),
    ...tooSmall('clients', clients.most, CLIENTS_OF_GATEWAY),
  ];
  if (wrong.length > 0) {
    throw new StoreError(
      `the cluster ${address} does not fit: ${wrong.join(', ')}`,
      'Change these options of the cluster, end it, and start it again.',
    );
  }
  const left = clients.most - clients.connected;
  if (left < CLIENTS_OF_GATEWAY) {
    throw new StoreError(
      `the cluster ${address} has ${left} of ${clients.most} places for clients left, and a gateway needs ${CLIENTS_OF_GATEWAY}`,
      'End another gateway or client, or start the cluster again with more: `clients`.',
    );
  }
}

function tooSmall(option: string, value: number, least: number): string[] {
  return value >= least ? [] : [`${option} is ${value}, and has to be at least ${least}`];
}

/** @throws a StoreError unless all groups run the service of this version */
async function requireStore(
  connect: () => Promise<Client>,
  groups: number,
  address: string,
): Promise<void> {
  const client = await connect();
  try {
    const all = Array.from({ length: groups }, (_, group) => group);
    const replies = await client.multicast(all, hello(groups), { timeoutMs: GREETING_MS });
    for (const reply of replies.values()) requireGreeting(greetingOf(reply), address);
  } catch (error) {
    // Another service does not understand the message.
    if (error instanceof ReplyError && error.code === 'TRAM_SERVICE_FAILED') {
      requireGreeting(undefined, address);
    }
    throw error;
  } finally {
    await client.close();
  }
}

function hello(groups: number): Uint8Array {
  const sections = Array.from({ length: groups }, (_, group) => ({
    group,
    content: new Uint8Array(0),
  }));
  const header = {
    kind: KIND.hello,
    shards: groups,
    stampMs: Date.now(),
    seed: 0,
    sender: '',
    subject: '',
  };
  return writeMessage(new ByteWriter(), header, sections);
}

/** Of a reply that is as short as this, the first byte says how it was sent. */
function greetingOf(reply: Uint8Array): string {
  return Buffer.from(reply.subarray(1)).toString('latin1');
}

function requireGreeting(greeting: string | undefined, address: string): void {
  if (greeting === GREETING) return;
  const [name, version] = GREETING.split(' ');
  if (greeting?.startsWith(`${name} `)) {
    throw new StoreError(
      `the cluster ${address} runs ${greeting}, and this is ${GREETING}`,
      `Install version ${version} on its hosts and restart them, or start the gateway of its version.`,
    );
  }
  throw new StoreError(
    `the service of the cluster ${address} is not that of tram-store`,
    'Set `service` to dist/service.js of the package tram-store, and start the cluster again.',
  );
}
