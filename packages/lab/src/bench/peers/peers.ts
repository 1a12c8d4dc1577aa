/**
 * `tram-lab bench peers`: TRAM beside the systems that users might choose instead, in one run on one machine. One system after
 * the other is started, measured with messages to one shard and to eight, and ended; in several rounds, if asked to.
 */
import { type DiskFolder, type FileSystem, makeDiskFolder } from '../disk-folder.js';
import { type DestinationSet, setOf } from '../load/destinations.js';
import { inRounds } from '../load/rounds.js';
import type { Spread } from '../load/spread.js';
import { measureSyncedWrites, type SyncedWrites } from '../raw/synced-writes.js';
import { findProgram, serversParent, versionOf } from '../systems/servers.js';
import type { RunningSystem, Setup } from '../systems/system.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { etcd } from './etcd.js';
import { type Figures, measureFigures } from './figures.js';
import { nats } from './nats.js';
import { type Guarantee, type Peer, PeerFailure, type PeerId, startPeer } from './peer.js';
import { redis } from './redis.js';
import { advantagesOf, combine, inOneRound } from './rounds.js';
import { startTram, TRAM } from './tram.js';

export const PEERS: Readonly<Record<PeerId, Peer>> = { redis, nats, etcd };

export interface PeersOptions {
  readonly only: readonly PeerId[];
  readonly seconds: number;
  readonly payloadBytes: number;
  readonly rounds: number;
  /** Each system syncs every message to disk before it acknowledges it. */
  readonly isSynced: boolean;
  /** If so: a folder on the disk to use. */
  readonly folder?: string;
}

export type SystemResult = {
  readonly id: 'tram' | PeerId;
  readonly name: string;
  readonly version: string;
  readonly guarantee: Guarantee;
  readonly conditions: string;
} & (
  | { readonly status: 'measured'; readonly one: RoundsFigures; readonly eight: RoundsFigures }
  | { readonly status: 'missing'; readonly install: string }
  | { readonly status: 'failed'; readonly reason: string; readonly log: readonly string[] }
);

export interface Machine extends ThisMachine {
  /** The folder of the servers' files. */
  readonly serversFolder: string;
  /** If messages are synced. */
  readonly disk?: Disk;
}

export interface Disk {
  readonly fileSystem: FileSystem;
  /** One writer that syncs one message at a time, before the first round. */
  readonly bare: SyncedWrites;
}

/** The figures of a system, with their spread over all rounds. */
export interface RoundsFigures extends Figures {
  readonly spread: { readonly messagesPerSecond: Spread; readonly latencyNsP50: Spread };
}

/** The advantage of TRAM, of each round: its throughput divided by the peer's, the peer's latency divided by its own. */
export interface Advantage {
  readonly throughput: Spread;
  readonly latencyP50: Spread;
}

export interface PeersResult {
  readonly options: PeersOptions;
  readonly machine: Machine;
  readonly systems: readonly SystemResult[];
  readonly advantages: Advantages;
}

/** By the `id` of each measured peer, if TRAM was measured. */
export type Advantages = Readonly<Record<string, Readonly<Record<'one' | 'eight', Advantage>>>>;

const SHARDS = 8;
const COPIES = 3;
const BARE_SECONDS = 1;

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchPeers(
  options: PeersOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<PeersResult> {
  const folder = options.isSynced ? makeDiskFolder(options.folder) : undefined;
  try {
    const run = new Run(options, progress, signal, folder);
    const machine = await run.machine();
    const rounds = await inRounds(options.rounds, ['tram', ...options.only] as const, (id) =>
      id === 'tram' ? run.tram() : run.peer(PEERS[id]),
    );
    return { options, machine, systems: combine(rounds), advantages: advantagesOf(rounds) };
  } finally {
    folder?.remove();
  }
}

export function installCommand(packages: readonly string[]): string {
  return `apt-get install -y ${packages.join(' ')}`;
}

type About = Pick<SystemResult, 'id' | 'name' | 'version' | 'guarantee' | 'conditions'>;

class Run {
  constructor(
    private readonly options: PeersOptions,
    private readonly progress: (step: string) => void,
    private readonly signal: AbortSignal,
    /** If messages are synced. */
    private readonly folder: DiskFolder | undefined,
  ) {}

  async machine(): Promise<Machine> {
    const { folder } = this;
    const machine = thisMachine();
    if (folder === undefined) return { ...machine, serversFolder: serversParent() };
    this.step('bare loop of write and fdatasync');
    const { payloadBytes } = this.options;
    const bare = await measureSyncedWrites({
      ...{ folder: folder.path, writers: 1, bytesPerSync: payloadBytes, seconds: BARE_SECONDS },
    });
    const disk = { fileSystem: folder.fileSystem, bare };
    return { ...machine, serversFolder: folder.path, disk };
  }

  tram(): Promise<SystemResult> {
    const { outstandingMax } = TRAM;
    const setup = this.setup(outstandingMax);
    return this.measure(this.about(TRAM, ''), setup, () =>
      startTram(setup, this.signal, this.folder?.path),
    );
  }

  async peer(peer: Peer): Promise<SystemResult> {
    const program = findProgram(peer.program);
    if (program === undefined) {
      const install = installCommand([peer.package]);
      this.progress(`${peer.name} is not installed: ${install}`);
      return { ...this.about(peer, ''), status: 'missing', install };
    }
    const setup = this.setup(peer.outstandingMax);
    return this.measure(this.about(peer, versionOf(program)), setup, () =>
      startPeer(peer, program, setup, this.signal, this.folder?.path),
    );
  }

  private about(system: Peer | typeof TRAM, version: string): About {
    const { id, name, guarantee, conditions, syncedConditions } = system;
    if (this.folder === undefined) return { id, name, version, guarantee, conditions };
    if (syncedConditions === undefined) throw new Error(`${name} can't sync each message`);
    return { id, name, version, guarantee, conditions: syncedConditions };
  }

  /** A failure of one system is a result; an interruption ends the run. */
  private async measure(
    about: About,
    setup: Setup,
    start: () => Promise<RunningSystem>,
  ): Promise<SystemResult> {
    let running: RunningSystem | undefined;
    try {
      this.step(`${about.name}: start`);
      running = await start();
      const one = await this.figures(about, setup, running, 1);
      const eight = await this.figures(about, setup, running, SHARDS);
      return { ...about, status: 'measured', one: inOneRound(one), eight: inOneRound(eight) };
    } catch (error) {
      this.signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      const log = error instanceof PeerFailure ? error.log : [];
      this.progress(`${about.name} failed: ${reason}`);
      return { ...about, status: 'failed', reason, log };
    } finally {
      await running?.close();
    }
  }

  private figures(
    { name }: About,
    { outstandingMax }: Setup,
    running: RunningSystem,
    destinations: number,
  ): Promise<Figures> {
    const { seconds, payloadBytes } = this.options;
    const sets = setsOf(destinations);
    return measureFigures(running, { sets, payloadBytes, seconds, outstandingMax }, (outstanding) =>
      this.step(`${name}: ${outstanding} in flight to ${destinations} of ${SHARDS}`),
    );
  }

  private setup(outstandingMax: number): Setup {
    const payloadBytesMax = this.options.payloadBytes;
    return { groups: SHARDS, replicas: COPIES, clientsMax: 1, outstandingMax, payloadBytesMax };
  }

  private step(step: string): void {
    this.signal.throwIfAborted();
    this.progress(step);
  }
}

/** Each single shard in rotation, or all shards. */
function setsOf(destinations: number): DestinationSet[] {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  return destinations === 1 ? shards.map((shard) => setOf([shard])) : [setOf(shards)];
}
