/**
 * Redis as a peer: one primary and two replicas; a shard is a stream. A message is an XADD, or a MULTI of several. It is
 * answered after WAIT 1, when the primary and one replica have it: two of three, as in TRAM. If messages are synced, both
 * have it on disk: with `appendfsync always`, a server syncs before it sends anything, also before a replica acknowledges.
 */
import { connect as connectSocket, type Socket } from 'node:net';
import { freePorts, LOOPBACK } from '../systems/ports.js';
import type { ClientOptions, Connect, Peer, PeerAddress, PeerClient } from './peer.js';
import { encodeCommand, type Reply, ReplyReader, RespError } from './resp.js';

/** Streams are bounded, as in a real deployment. */
const STREAM_ENTRIES = '100000';
const WAIT_MS = '10000';
const READY_WAIT_MS = '2000';
/** WAIT blocks its connection. With several the primary works on one batch while others wait for the replica. */
const CONNECTIONS_MAX = 4;
const PIPELINED = `up to ${CONNECTIONS_MAX} connections, each with one WAIT after all that it has pipelined`;
const APPEND_SYNCED = [
  ...['--appendonly', 'yes', '--appendfsync', 'always'],
  ...['--auto-aof-rewrite-percentage', '0'],
];

export const redis: Peer = {
  id: 'redis',
  name: 'Redis',
  program: 'redis-server',
  package: 'redis-server',
  guarantee: {
    brief: 'one primary: no shards to order',
    full:
      'MULTI is atomic and ordered on one primary, which has all streams; Redis Cluster refuses one that touches two ' +
      'shards. Replication is asynchronous: WAIT tells that a replica has the bytes, but it is not consensus, and a ' +
      'failover can lose what was acknowledged.',
  },
  outstandingMax: 8 ** 5,
  conditions:
    'one primary, two replicas, no disk; XADD with MAXLEN ~ 100000, or MULTI of 8 of them, then WAIT 1; under load ' +
    PIPELINED,
  syncedConditions:
    'one primary, two replicas, appendonly yes, appendfsync always, no rewrites of the file; XADD with MAXLEN ~ 100000, ' +
    'or MULTI of 8 of them, then WAIT 1: the primary and one replica have synced it; under load ' +
    PIPELINED,

  async launch(servers, program, { replicas }, isSynced) {
    const ports = await freePorts(replicas);
    ports.forEach((port, i) => {
      const label = `redis-${i}`;
      servers.start(label, program, [
        ...['--port', String(port), '--bind', LOOPBACK, '--dir', servers.makeFolder(label)],
        ...['--save', '', ...(isSynced ? APPEND_SYNCED : ['--appendonly', 'no'])],
        ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'],
        // With the default limits the primary would disconnect a replica that lags behind the pipelined load.
        ...['--client-output-buffer-limit', 'replica 0 0 0'],
        ...(i > 0 ? ['--replicaof', `${LOOPBACK} ${ports[0]}`] : []),
      ]);
    });
    // A replica that counts as online may need another second until it follows: wait until it acknowledges a write.
    await servers.ready('until all replicas follow the primary', async () => {
      const following = await followers(ports[0], replicas - 1);
      if (following !== replicas - 1) throw new Error(`${following} of ${replicas - 1} follow`);
    });
    return { ports: ports.slice(0, 1) };
  },
};

/** The number of replicas that acknowledge a new write. */
async function followers(port: number, count: number): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(port, LOOPBACK);
    const reader = new ReplyReader((reply) => {
      if (reply === 'OK') return;
      socket.destroy();
      resolve(reply);
    });
    socket.once('error', reject).on('data', (chunk) => reader.push(chunk));
    socket.write(encodeCommand('SET', 'ready', ''));
    socket.write(encodeCommand('WAIT', String(count), READY_WAIT_MS));
  });
}

export const connectRedis: Connect = async (
  { ports }: PeerAddress,
  options: ClientOptions,
): Promise<PeerClient> => {
  const commands = new Commands(options.payload);
  const count = Math.min(CONNECTIONS_MAX, options.outstanding);
  const connections = await Promise.all(
    Array.from({ length: count }, () => Connection.open(ports[0], commands, options)),
  );
  return {
    send: (slot, shards) => connections[slot % count].send(slot, shards),
    flush: () => {
      for (const connection of connections) connection.flush();
    },
    close: () => {
      for (const connection of connections) connection.close();
    },
  };
};

/** Commands, encoded once, because all messages are alike. */
class Commands {
  readonly wait = encodeCommand('WAIT', '1', WAIT_MS);
  private readonly encoded = new Map<readonly number[], Buffer>();

  constructor(private readonly payload: Uint8Array) {}

  forShards(shards: readonly number[]): Buffer {
    const known = this.encoded.get(shards);
    if (known !== undefined) return known;
    const adds = shards.map((shard) =>
      encodeCommand(
        ...['XADD', `shard-${shard}`, 'MAXLEN', '~', STREAM_ENTRIES, '*', 'm'],
        this.payload,
      ),
    );
    const command =
      adds.length === 1
        ? adds[0]
        : Buffer.concat([encodeCommand('MULTI'), ...adds, encodeCommand('EXEC')]);
    this.encoded.set(shards, command);
    return command;
  }
}

/** A connection with one batch in flight. Messages that arrive meanwhile form the next batch. */
class Connection {
  static open(port: number, commands: Commands, options: ClientOptions): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connectSocket({ port, host: LOOPBACK, noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new Connection(socket, commands, options)));
    });
  }

  private batch: number[] = [];
  private next: number[] = [];
  private nextBytes: Buffer[] = [];
  /** Replies that are expected before that of WAIT. */
  private repliesDue = 0;
  private nextReplies = 0;

  private constructor(
    private readonly socket: Socket,
    private readonly commands: Commands,
    private readonly options: ClientOptions,
  ) {
    const reader = new ReplyReader((reply) => this.receive(reply));
    socket.on('data', (chunk) => reader.push(chunk));
    socket.on('error', options.failed);
    socket.on('end', () => options.failed(new Error('Redis closed the connection')));
  }

  send(slot: number, shards: readonly number[]): void {
    this.next.push(slot);
    this.nextBytes.push(this.commands.forShards(shards));
    // MULTI, each command and EXEC have a reply each.
    this.nextReplies += shards.length === 1 ? 1 : shards.length + 2;
  }

  flush(): void {
    if (this.batch.length > 0 || this.next.length === 0) return;
    this.socket.write(Buffer.concat([...this.nextBytes, this.commands.wait]));
    this.batch = this.next;
    this.repliesDue = this.nextReplies;
    this.next = [];
    this.nextBytes = [];
    this.nextReplies = 0;
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(reply: Reply): void {
    const refusal = refusalIn(reply);
    if (refusal !== undefined) {
      this.options.failed(new Error(`Redis: ${refusal.message}`));
    } else if (this.repliesDue > 0) {
      this.repliesDue--;
    } else {
      this.receiveWait(reply);
    }
  }

  /** @param reply  the number of replicas that have all earlier writes */
  private receiveWait(reply: Reply): void {
    if (typeof reply !== 'number' || reply < 1) {
      this.options.failed(new Error(`no replica answered within ${WAIT_MS} ms`));
      return;
    }
    const { batch } = this;
    this.batch = [];
    for (const slot of batch) this.options.answered(slot);
    this.flush();
  }
}

function refusalIn(reply: Reply): RespError | undefined {
  if (reply instanceof RespError) return reply;
  if (!Array.isArray(reply)) return undefined;
  return reply.find((part): part is RespError => part instanceof RespError);
}
