/**
 * NATS JetStream as a peer: three servers. A shard is a stream with three copies in memory, which is a Raft group of its own.
 * A message to several shards is one publish to each stream; it is answered when all streams have acknowledged.
 */
import { writeFileSync } from 'node:fs';
import { connect as connectSocket, type Socket } from 'node:net';
import { join } from 'node:path';
import { freePorts, LOOPBACK } from '../systems/ports.js';
import type { Servers } from '../systems/servers.js';
import {
  CONNECT,
  encodePublish,
  encodeSubscribe,
  type Message,
  NatsReader,
  PING,
  PONG,
} from './nats-wire.js';
import type { ClientOptions, Connect, Peer, PeerAddress, PeerClient } from './peer.js';

/** Streams are bounded, as in a real deployment. */
const STREAM_MESSAGES = 100_000;

export const nats: Peer = {
  id: 'nats',
  name: 'NATS JetStream',
  program: 'nats-server',
  package: 'nats-server',
  guarantee: {
    brief: 'none: order per stream only',
    full:
      'Each stream is a Raft group with an order of its own. A message to eight is eight publishes: no order between ' +
      'streams, so two messages may be stored in opposite order in two of them, and after a failure in some streams ' +
      'and not in others.',
  },
  outstandingMax: 8 ** 5,
  conditions:
    `three servers; a shard is a stream with 3 copies in memory, at most ${STREAM_MESSAGES} messages; each is ` +
    'published on a connection to the server that leads its stream',

  async launch(servers, program, { groups, replicas }) {
    const ports = await freePorts(2 * replicas);
    const clientPorts = ports.slice(0, replicas);
    const routePorts = ports.slice(replicas);
    clientPorts.forEach((port, i) => {
      const label = serverName(i);
      const config = join(servers.folder, `${label}.conf`);
      const store = servers.makeFolder(label);
      writeFileSync(config, configOf(label, store, port, routePorts[i], routePorts));
      servers.start(label, program, ['--config', config]);
    });
    await servers.ready('until every server takes connections', () =>
      Promise.all(clientPorts.map(async (port) => (await Connection.open(port)).close())),
    );
    const shards = Array.from({ length: groups }, (_, shard) => shard);
    const leaders = await Promise.all(
      shards.map((shard) => makeStream(servers, clientPorts[0], shard, replicas)),
    );
    return { ports: clientPorts, leaders };
  },
};

function serverName(ordinal: number): string {
  return `nats-${ordinal}`;
}

function streamName(shard: number): string {
  return `shard-${shard}`;
}

function configOf(
  name: string,
  folder: string,
  port: number,
  routePort: number,
  routePorts: readonly number[],
): string {
  const routes = routePorts.map((port) => `"nats://${LOOPBACK}:${port}"`).join(', ');
  return `
server_name: "${name}"
listen: "${LOOPBACK}:${port}"
jetstream { store_dir: "${folder}", max_memory_store: 4GB, max_file_store: 1GB }
cluster { name: "tram-bench", listen: "${LOOPBACK}:${routePort}", routes: [${routes}] }
`;
}

interface Answer {
  readonly error?: { readonly description: string; readonly err_code?: number };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { readonly current: boolean }[];
  };
}

/** The stream exists, from an earlier attempt whose answer was late. */
const NAME_IN_USE = 10058;

/** @returns the server that leads the stream */
async function makeStream(
  servers: Servers,
  port: number,
  shard: number,
  replicas: number,
): Promise<number> {
  const connection = await Connection.open(port);
  try {
    await servers.ready(`until stream ${shard} is created`, () =>
      createStream(connection, shard, replicas),
    );
    return await servers.ready(`until stream ${shard} has a leader and followers`, () =>
      leaderOf(connection, shard, replicas),
    );
  } finally {
    connection.close();
  }
}

async function createStream(
  connection: Connection,
  shard: number,
  replicas: number,
): Promise<void> {
  const name = streamName(shard);
  const { error } = await request(connection, `$JS.API.STREAM.CREATE.${name}`, {
    name,
    subjects: [name],
    storage: 'memory',
    num_replicas: replicas,
    retention: 'limits',
    discard: 'old',
    max_msgs: STREAM_MESSAGES,
  });
  if (error !== undefined && error.err_code !== NAME_IN_USE) throw new Error(error.description);
}

/** The server that leads the stream; throws until all others follow. */
async function leaderOf(connection: Connection, shard: number, replicas: number): Promise<number> {
  const answer = await request(connection, `$JS.API.STREAM.INFO.${streamName(shard)}`, {});
  const { leader, replicas: followers = [] } = answer.cluster ?? {};
  const current = followers.filter((follower) => follower.current).length;
  const ordinal = Array.from({ length: replicas }, (_, i) => serverName(i)).indexOf(leader ?? '');
  if (ordinal < 0 || current < replicas - 1) throw new Error(JSON.stringify(answer));
  return ordinal;
}

async function request(connection: Connection, subject: string, body: object): Promise<Answer> {
  const answer = await connection.request(subject, Buffer.from(JSON.stringify(body)));
  return JSON.parse(answer) as Answer;
}

let inboxes = 0;

class Connection {
  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connectSocket({ port, host: LOOPBACK, noDelay: true });
      const connection: Connection = new Connection(socket, () => resolve(connection), reject);
    });
  }

  /** The prefix of reply subjects. */
  readonly inbox = `_INBOX.${process.pid}-${inboxes++}.`;
  onMessage: (message: Message) => void = () => {};
  onFailure: (error: Error) => void;
  private requests = 0;

  private constructor(
    private readonly socket: Socket,
    ready: () => void,
    failed: (error: Error) => void,
  ) {
    this.onFailure = failed;
    const reader = new NatsReader({
      message: (message) => this.onMessage(message),
      ping: () => socket.write(PONG),
      pong: ready,
      error: (text) => this.onFailure(new Error(`NATS: ${text}`)),
    });
    socket.on('data', (chunk) => reader.push(chunk));
    socket.on('error', (error) => this.onFailure(error));
    socket.on('end', () => this.onFailure(new Error('NATS closed the connection')));
    socket.write(CONNECT + encodeSubscribe(`${this.inbox}*`, 1) + PING);
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** One request at a time. A late answer to an earlier request is ignored. */
  request(subject: string, body: Buffer): Promise<string> {
    const replyTo = `${this.inbox}${this.requests++}`;
    return new Promise((resolve, reject) => {
      this.onMessage = (message) => {
        if (message.subject !== replyTo) return;
        if (message.status === undefined) resolve(message.payload.toString());
        else reject(new Error(`${subject}: ${message.status}`));
      };
      this.onFailure = reject;
      this.write(encodePublish(subject, replyTo, body));
    });
  }

  close(): void {
    this.socket.destroy();
  }
}

export const connectNats: Connect = async (
  { ports, leaders = [] }: PeerAddress,
  options: ClientOptions,
): Promise<PeerClient> => {
  const connections = await Promise.all(ports.map((port) => Connection.open(port)));
  return new NatsClient(connections, leaders, options);
};

class NatsClient implements PeerClient {
  /** Missing answers, by slot. */
  private readonly due: Uint8Array;
  /** Bytes for the next flush, by connection. */
  private readonly next: Buffer[][];
  /** Encoded once, by slot and shard: messages differ only in the subject of the reply. */
  private readonly encoded: Buffer[][];

  constructor(
    private readonly connections: readonly Connection[],
    private readonly leaders: readonly number[],
    private readonly options: ClientOptions,
  ) {
    this.due = new Uint8Array(options.outstanding);
    this.encoded = Array.from({ length: options.outstanding }, () => []);
    this.next = connections.map(() => []);
    for (const connection of connections) {
      connection.onFailure = options.failed;
      connection.onMessage = (message) => this.receive(message, connection.inbox.length);
    }
  }

  send(slot: number, shards: readonly number[]): void {
    this.due[slot] = shards.length;
    for (const shard of shards) {
      const leader = this.leaders[shard];
      this.encoded[slot][shard] ??= this.encode(slot, shard, leader);
      this.next[leader].push(this.encoded[slot][shard]);
    }
  }

  flush(): void {
    for (const [i, connection] of this.connections.entries()) {
      if (this.next[i].length === 0) continue;
      connection.write(Buffer.concat(this.next[i]));
      this.next[i] = [];
    }
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }

  private encode(slot: number, shard: number, leader: number): Buffer {
    const { inbox } = this.connections[leader];
    return encodePublish(streamName(shard), `${inbox}${slot}`, this.options.payload);
  }

  private receive({ subject, payload, status }: Message, prefix: number): void {
    // An acknowledgement contains the stream and a sequence number; a refusal contains an error.
    if (status !== undefined || payload.includes('"error"')) {
      this.options.failed(new Error(`NATS refused: ${status ?? payload.toString()}`));
      return;
    }
    const slot = Number(subject.slice(prefix));
    if (--this.due[slot] === 0) this.options.answered(slot);
  }
}
