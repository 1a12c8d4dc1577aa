/** The systems that `bench store` compares: Redis alone, Redis with replicas, and tram-store. */
import { connect as connectSocket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { redis } from '../peers/redis.js';
import { encodeCommand, type Reply, ReplyReader, RespError } from '../peers/resp.js';
import { freePorts, LOOPBACK } from '../systems/ports.js';
import { findProgram, type Servers } from '../systems/servers.js';
import { FEW_SHARDS, KEYS, keyOf, VALUE } from './loads.js';

export type StoreSystemId = 'redis' | 'replicated' | 'store';

export interface StoreSystem {
  readonly id: StoreSystemId;
  readonly name: string;
  /** Each pipeline of writes ends with a WAIT. */
  readonly waits: boolean;
  readonly conditions: string;
  /** @returns its port, once it answers */
  start(servers: Servers, shards: number): Promise<number>;
}

const STORE_MAIN = fileURLToPath(new URL('./cli/main.js', import.meta.resolve('tram-store')));
/** As many as a pipeline may have without one side waiting for the other. */
const FILL_STEP = 1000;

export const STORE_SYSTEMS: readonly StoreSystem[] = [
  {
    id: 'redis',
    name: 'Redis',
    waits: false,
    conditions: 'one server, no disk; a reply means that this server has the write',
    start: (servers) => startRedis(servers, 1),
  },
  {
    id: 'replicated',
    name: 'Redis, WAIT 1',
    waits: true,
    conditions:
      'one primary, two replicas, no disk; after each pipeline of writes WAIT 1: the primary and one replica have it. ' +
      'Reads do not wait',
    start: (servers) => startRedis(servers, 3),
  },
  {
    id: 'store',
    name: 'tram-store',
    waits: false,
    conditions:
      `threads, no journal, three replicas of each shard; ${FEW_SHARDS} shards for SET and GET, 8 for the others; a ` +
      'reply means that a majority has the write, reads are strictly serializable too',
    async start(servers, shards) {
      const [port] = await freePorts(1);
      const options = ['--port', String(port), '--shards', String(shards)];
      servers.start('tram-store', process.execPath, [STORE_MAIN, ...options]);
      await servers.ready('until the store answers', () => ask(port, [encodeCommand('PING')]));
      return port;
    },
  },
];

export function redisServer(): string | undefined {
  return findProgram(redis.program);
}

async function startRedis(servers: Servers, replicas: number): Promise<number> {
  const setup = { groups: 1, replicas, clientsMax: 1, outstandingMax: 1, payloadBytesMax: 0 };
  const { ports } = await redis.launch(servers, redisServer()!, setup, false);
  return ports[0];
}

/** Gives a value to each key. */
export async function fill(port: number): Promise<void> {
  for (let from = 0; from < KEYS; from += FILL_STEP) {
    const commands = Array.from({ length: FILL_STEP }, (_, i) =>
      encodeCommand('SET', keyOf(from + i), VALUE),
    );
    await ask(port, commands);
  }
}

/** Sends commands, and waits for all replies. */
function ask(port: number, commands: readonly Buffer[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(port, LOOPBACK);
    let missing = commands.length;
    const reader = new ReplyReader((reply: Reply) => {
      if (reply instanceof RespError) reject(new Error(reply.message));
      if (--missing === 0) resolve();
      if (missing === 0) socket.destroy();
    });
    socket.once('error', reject).on('data', (chunk) => reader.push(chunk));
    socket.write(Buffer.concat(commands));
  });
}
