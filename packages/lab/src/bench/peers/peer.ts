/**
 * A peer: a system that a user might choose instead of TRAM. Called by `peers.ts`. `redis.ts`, `nats.ts` and `etcd.ts` each
 * implement both sides: the start of the servers, and the client, which runs in the process of the load.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { DestinationSet } from '../load/destinations.js';
import { Servers } from '../systems/servers.js';
import type { Load, LoadReport, Measurement, RunningSystem, Setup } from '../systems/system.js';

export type PeerId = 'redis' | 'nats' | 'etcd';

export interface Guarantee {
  /** For messages to several shards, in a few words. */
  readonly brief: string;
  /** What holds and what does not, precisely. */
  readonly full: string;
}

export interface Peer {
  readonly id: PeerId;
  readonly name: string;
  /** The server program and its Debian package. */
  readonly program: string;
  readonly package: string;
  readonly guarantee: Guarantee;
  /** The most messages in flight that are tried. */
  readonly outstandingMax: number;
  /** The setup, and what the client does. */
  readonly conditions: string;
  /** The same if a majority syncs each message to disk before it is acknowledged; absent if the system can't do that. */
  readonly syncedConditions?: string;
  /** Starts the servers and waits until they are ready. @param isSynced  as in `syncedConditions` */
  launch(servers: Servers, program: string, setup: Setup, isSynced: boolean): Promise<PeerAddress>;
}

/** Plain data, sent to the process of the load. */
export interface PeerAddress {
  readonly ports: readonly number[];
  /** For each shard the server that leads it, as an index of `ports`, if it matters. */
  readonly leaders?: readonly number[];
}

/** A client in the process of the load. A slot identifies a message in flight and is reused after the answer. */
export interface PeerClient {
  /** Takes a message, which need not be sent before `flush`. `answered(slot)` is called once it is replicated. */
  send(slot: number, shards: readonly number[]): void;
  flush(): void;
  close(): void;
}

export interface ClientOptions {
  readonly outstanding: number;
  readonly payload: Uint8Array;
  readonly answered: (slot: number) => void;
  /** A message was refused, or the connection was lost: the measurement fails. */
  readonly failed: (error: Error) => void;
}

export type Connect = (address: PeerAddress, options: ClientOptions) => Promise<PeerClient>;

export interface PeerJob {
  readonly peer: PeerId;
  readonly address: PeerAddress;
  readonly sets: readonly (readonly number[])[];
  readonly outstanding: number;
  readonly payloadBytes: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export type ForkedReport = LoadReport & { readonly cpuSeconds: number };

/** A failure of a measured system, with the last log lines of its servers. */
export class PeerFailure extends Error {
  constructor(
    message: string,
    readonly log: readonly string[],
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

/** @param diskFolder  where the servers keep their files, if they sync each message; otherwise they need no disk */
export async function startPeer(
  peer: Peer,
  program: string,
  setup: Setup,
  signal: AbortSignal,
  diskFolder?: string,
): Promise<RunningSystem> {
  const servers = new Servers(peer.id, signal, diskFolder);
  const run = async <T>(task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new PeerFailure(message, servers.lastLines(), cause);
    }
  };
  try {
    const address = await run(() => peer.launch(servers, program, setup, diskFolder !== undefined));
    return {
      measure: (load) => run(() => measure(peer, address, servers, load, signal)),
      close: () => servers.close(),
    };
  } catch (error) {
    await servers.close();
    throw error;
  }
}

async function measure(
  { id }: Peer,
  address: PeerAddress,
  servers: Servers,
  load: Load,
  signal: AbortSignal,
): Promise<Measurement> {
  const { clients, outstanding, payloadBytes, warmUpSeconds, seconds } = load;
  const job: PeerJob = {
    peer: id,
    address,
    sets: load.sets.map(shardsOf),
    outstanding: clients * outstanding,
    ...{ payloadBytes, warmUpSeconds, seconds },
  };
  const cpuBefore = servers.cpuSeconds();
  const startedMs = performance.now();
  const report = await forkLoad(new URL('./load-process.js', import.meta.url), job, signal);
  const elapsed = (performance.now() - startedMs) / 1000;
  const coresUsed = (servers.cpuSeconds() - cpuBefore + report.cpuSeconds) / elapsed;
  return { ...report, coresUsed };
}

/** Runs a load in a process of its own, which ends after its report or when the signal aborts. */
export function forkLoad<Report = ForkedReport>(
  script: URL,
  job: object,
  signal: AbortSignal,
): Promise<Report> {
  const child = fork(fileURLToPath(script), { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  const kill = (): boolean => child.kill('SIGKILL');
  signal.addEventListener('abort', kill);
  process.once('exit', kill);
  child.send(job);
  return reportOf<Report>(child, () => complaint).finally(() => {
    signal.removeEventListener('abort', kill);
    process.off('exit', kill);
    kill();
  });
}

function reportOf<Report>(child: ChildProcess, complaint: () => string): Promise<Report> {
  return new Promise((resolve, reject) => {
    child.once('message', (message: { readonly failure?: string }) => {
      if (message.failure !== undefined) reject(new Error(message.failure));
      else resolve(message as Report);
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const end = `the load ended with ${signal ?? `exit code ${code}`}`;
      reject(new Error([end, complaint().trim()].filter(Boolean).join(': ')));
    });
  });
}

function shardsOf({ low, high }: DestinationSet): number[] {
  const isIn = (shard: number): boolean => ((shard < 32 ? low : high) & (1 << (shard & 31))) !== 0;
  return Array.from({ length: 64 }, (_, shard) => shard).filter(isIn);
}
