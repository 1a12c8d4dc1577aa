/**
 * etcd as a peer: three servers, one Raft group. A shard is a key. A message to one shard is a put; a message to several is a
 * transaction of puts.
 */
import { connect as connectSocket, type Socket } from 'node:net';
import { freePorts, LOOPBACK } from '../systems/ports.js';
import {
  decodeFields,
  encodeFrame,
  encodeGrpc,
  encodeHeaders,
  encodePut,
  encodePuts,
  FLAG,
  FRAME,
  FrameReader,
  PREFACE,
} from './etcd-wire.js';
import type { ClientOptions, Connect, Peer, PeerAddress, PeerClient } from './peer.js';

const QUOTA_BYTES = String(8 * 2 ** 30);
const PUT = '/etcdserverpb.KV/Put';
const TRANSACTION = '/etcdserverpb.KV/Txn';
const STATUS = '/etcdserverpb.Maintenance/Status';

export const etcd: Peer = {
  id: 'etcd',
  name: 'etcd',
  program: 'etcd',
  package: 'etcd-server',
  guarantee: {
    brief: 'total order, but in one group',
    full:
      'One Raft group orders everything and a transaction is atomic, so all keys share one order: as strong as TRAM, ' +
      'without shards. Every message passes one leader and every server; there is no order across several clusters.',
  },
  // etcd refuses calls while 5,000 wait to be applied.
  outstandingMax: 8 ** 4,
  conditions:
    'three servers, one Raft group; a shard is a key: put, or a transaction of 8 puts, over one gRPC connection to ' +
    'the leader',
  syncedConditions:
    'three servers, one Raft group, each syncs its log before it acknowledges, as by default; a shard is a key: put, or a ' +
    'transaction of 8 puts, over one gRPC connection to the leader',

  async launch(servers, program, { replicas }) {
    const ports = await freePorts(2 * replicas);
    const clientPorts = ports.slice(0, replicas);
    const url = (port: number): string => `http://${LOOPBACK}:${port}`;
    const name = (i: number): string => `etcd-${i}`;
    const cluster = clientPorts.map((_, i) => `${name(i)}=${url(ports[replicas + i])}`).join(',');
    // Builds for arm64 require the first variable. etcd syncs unless it is told not to, here or by the user's environment.
    const variables = { ETCD_UNSUPPORTED_ARCH: process.arch, ETCD_UNSAFE_NO_FSYNC: 'false' };
    clientPorts.forEach((port, i) => {
      const peerUrl = url(ports[replicas + i]);
      const args = [
        ...['--name', name(i), '--data-dir', servers.makeFolder(name(i))],
        ...['--listen-client-urls', url(port), '--advertise-client-urls', url(port)],
        ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
        ...['--initial-cluster', cluster, '--initial-cluster-token', servers.folder],
        ...['--quota-backend-bytes', QUOTA_BYTES, '--log-level', 'warn'],
      ];
      servers.start(name(i), program, args, variables);
    });
    const leader = await servers.ready('until the servers have a leader', async () => {
      const statuses = await Promise.all(clientPorts.map(isLeader));
      if (!statuses.includes(true)) throw new Error('no leader');
      return clientPorts[statuses.indexOf(true)];
    });
    return { ports: [leader] };
  },
};

/** StatusResponse: header { member_id = 2 } = 1, leader = 4. */
async function isLeader(port: number): Promise<boolean> {
  const answer = await callOnce(port, STATUS, Buffer.alloc(0));
  const fields = decodeFields(answer.subarray(5));
  const header = fields.get(1);
  if (!Buffer.isBuffer(header)) throw new Error('an answer without a header');
  const leader = fields.get(4);
  return leader !== undefined && leader === decodeFields(header).get(2);
}

function callOnce(port: number, path: string, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const connection = new GrpcConnection(port, {
      connected: () => {
        connection.call(0, new Call(port, path, message));
        connection.flush();
      },
      answered: (_, answer) => {
        connection.close();
        resolve(Buffer.from(answer));
      },
      failed: reject,
    });
  });
}

export const connectEtcd: Connect = (
  { ports }: PeerAddress,
  { payload, answered, failed }: ClientOptions,
): Promise<PeerClient> => {
  const port = ports[0];
  const calls = new Map<readonly number[], Call>();
  const callFor = (shards: readonly number[]): Call => {
    const known = calls.get(shards);
    if (known !== undefined) return known;
    const puts = shards.map((shard) => encodePut(`shard-${shard}`, payload));
    const call =
      puts.length === 1
        ? new Call(port, PUT, puts[0])
        : new Call(port, TRANSACTION, encodePuts(puts));
    calls.set(shards, call);
    return call;
  };
  return new Promise((resolve) => {
    const connection = new GrpcConnection(port, {
      connected: () =>
        resolve({
          send: (slot, shards) => connection.call(slot, callFor(shards)),
          flush: () => connection.flush(),
          close: () => connection.close(),
        }),
      answered,
      failed,
    });
  });
};

/** The encoded bytes of a call, in which only the stream number changes. */
class Call {
  private readonly frames: Buffer;
  private readonly dataAt: number;
  /** Counted by flow control. */
  readonly dataBytes: number;

  constructor(port: number, path: string, message: Buffer) {
    const headers = encodeHeaders({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': path,
      ':authority': `${LOOPBACK}:${port}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const head = encodeFrame(FRAME.headers, FLAG.endHeaders, 0, headers);
    const content = encodeGrpc(message);
    this.frames = Buffer.concat([head, encodeFrame(FRAME.data, FLAG.endStream, 0, content)]);
    this.dataAt = head.length;
    this.dataBytes = content.length;
  }

  onStream(stream: number): Buffer {
    const frames = Buffer.from(this.frames);
    frames.writeUInt32BE(stream, 5);
    frames.writeUInt32BE(stream, this.dataAt + 5);
    return frames;
  }
}

interface GrpcListener {
  connected(): void;
  /** @param message  with its gRPC header; a view, valid during the call */
  answered(slot: number, message: Buffer): void;
  failed(error: Error): void;
}

const FIRST_WINDOW = 65_535;
/** The receive window, and the number of received bytes after which the client extends it. */
const WINDOW = 2 ** 30;
const WINDOW_LOW = 2 ** 29;
const SETTING = { headerTableSize: 1, initialWindowSize: 4 } as const;

/** A connection for calls with one small message in each direction; any number may be in flight. */
class GrpcConnection {
  private readonly socket: Socket;
  private nextStream = 1;
  private readonly slots = new Map<number, number>();
  /** Answers whose trailers have not arrived yet. */
  private readonly answers = new Map<number, Buffer>();
  /** Calls that wait for room in the server's window, in order. */
  private waiting: { readonly slot: number; readonly call: Call }[] = [];
  private output: Buffer[] = [];
  private sendWindow = FIRST_WINDOW;
  private received = 0;
  private isClosed = false;

  constructor(
    port: number,
    private readonly listener: GrpcListener,
  ) {
    this.socket = connectSocket({ port, host: LOOPBACK, noDelay: true });
    const reader = new FrameReader((...frame) => this.receive(...frame));
    this.socket.on('data', (chunk) => {
      reader.push(chunk);
      this.flush();
    });
    this.socket.on('error', (error) => this.fail(error.message));
    this.socket.on('end', () => this.fail('the connection was closed'));
    this.socket.once('connect', () => listener.connected());
    const settings = Buffer.alloc(12);
    settings.writeUInt16BE(SETTING.headerTableSize, 0);
    settings.writeUInt16BE(SETTING.initialWindowSize, 6);
    settings.writeUInt32BE(WINDOW, 8);
    this.output.push(PREFACE, encodeFrame(FRAME.settings, 0, 0, settings));
    this.widen(WINDOW - FIRST_WINDOW);
  }

  call(slot: number, call: Call): void {
    this.waiting.push({ slot, call });
  }

  flush(): void {
    let sent = 0;
    for (; sent < this.waiting.length; sent++) {
      const { slot, call } = this.waiting[sent];
      if (call.dataBytes > this.sendWindow) break;
      this.sendWindow -= call.dataBytes;
      this.slots.set(this.nextStream, slot);
      this.output.push(call.onStream(this.nextStream));
      this.nextStream += 2;
    }
    if (sent > 0) this.waiting = this.waiting.slice(sent);
    if (this.output.length === 0) return;
    this.socket.write(Buffer.concat(this.output));
    this.output = [];
  }

  close(): void {
    this.isClosed = true;
    this.socket.destroy();
  }

  private receive(type: number, flags: number, stream: number, content: Buffer): void {
    switch (type) {
      case FRAME.data:
        this.answers.set(stream, content);
        this.received += content.length;
        if (this.received > WINDOW_LOW) this.widen(this.received);
        break;
      case FRAME.headers:
        if ((flags & FLAG.endStream) !== 0) this.finish(stream);
        break;
      case FRAME.windowUpdate:
        if (stream === 0) this.sendWindow += content.readUInt32BE(0);
        break;
      case FRAME.settings:
      case FRAME.ping:
        if ((flags & FLAG.acknowledgement) === 0) this.acknowledge(type, content);
        break;
      case FRAME.reset:
      case FRAME.goAway:
        this.fail(type === FRAME.reset ? 'a call was reset' : `going away: ${content.subarray(8)}`);
        break;
    }
  }

  /** A successful call has a message before its trailers; a failed one has only trailers. */
  private finish(stream: number): void {
    const slot = this.slots.get(stream);
    const answer = this.answers.get(stream);
    this.slots.delete(stream);
    this.answers.delete(stream);
    if (slot === undefined || answer === undefined)
      this.fail('a call was refused: too many, or no leader');
    else this.listener.answered(slot, answer);
  }

  private acknowledge(type: number, content: Buffer): void {
    const echo = type === FRAME.ping ? content : Buffer.alloc(0);
    this.output.push(encodeFrame(type, FLAG.acknowledgement, 0, echo));
  }

  private widen(bytes: number): void {
    const content = Buffer.alloc(4);
    content.writeUInt32BE(bytes);
    this.output.push(encodeFrame(FRAME.windowUpdate, 0, 0, content));
    this.received = 0;
  }

  private fail(message: string): void {
    if (this.isClosed) return;
    this.close();
    this.listener.failed(new Error(`etcd: ${message}`));
  }
}
