/**
 * `tram-lab bench peers`: TRAM beside the systems that users might choose instead, in one run on one machine. One system after
 * the other is started, measured with messages to one shard and to eight, and ended.
 */
import { type DestinationSet, setOf } from '../load/destinations.js';
import { findProgram, serversParent, versionOf } from '../systems/servers.js';
import type { RunningSystem, Setup } from '../systems/system.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { etcd } from './etcd.js';
import { type Figures, measureFigures } from './figures.js';
import { nats } from './nats.js';
import { type Guarantee, type Peer, PeerFailure, type PeerId, startPeer } from './peer.js';
import { redis } from './redis.js';
import { startTram, TRAM } from './tram.js';

export const PEERS: Readonly<Record<PeerId, Peer>> = { redis, nats, etcd };

export interface PeersOptions {
  readonly only: readonly PeerId[];
  readonly seconds: number;
  readonly payloadBytes: number;
}

export type SystemResult = {
  readonly id: 'tram' | PeerId;
  readonly name: string;
  readonly version: string;
  readonly guarantee: Guarantee;
  readonly conditions: string;
} & (
  | { readonly status: 'measured'; readonly one: Figures; readonly eight: Figures }
  | { readonly status: 'missing'; readonly install: string }
  | { readonly status: 'failed'; readonly reason: string; readonly log: readonly string[] }
);

export interface Machine extends ThisMachine {
  /** The folder of the servers' files. */
  readonly serversFolder: string;
}

/** The advantage of TRAM: its throughput divided by the peer's, the peer's latency divided by its own. */
export interface Advantage {
  readonly throughput: number;
  readonly latencyP50: number;
}

export interface PeersResult {
  readonly options: PeersOptions;
  readonly machine: Machine;
  readonly systems: readonly SystemResult[];
  /** By the `id` of each measured peer, if TRAM was measured. */
  readonly advantages: Advantages;
}

export type Advantages = Readonly<Record<string, Readonly<Record<'one' | 'eight', Advantage>>>>;

const SHARDS = 8;
const COPIES = 3;

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchPeers(
  options: PeersOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<PeersResult> {
  const run = new Run(options, progress, signal);
  const machine = machineNow();
  const systems = [await run.tram()];
  for (const id of options.only) systems.push(await run.peer(PEERS[id]));
  return { options, machine, systems, advantages: advantagesOf(systems) };
}

export function installCommand(packages: readonly string[]): string {
  return `apt-get install -y ${packages.join(' ')}`;
}

export function advantagesOf(systems: readonly SystemResult[]): Advantages {
  const [tram, ...peers] = systems.filter((system) => system.status === 'measured');
  if (tram?.id !== 'tram') return {};
  const over = (ours: Figures, theirs: Figures): Advantage => ({
    throughput: ours.messagesPerSecond / theirs.messagesPerSecond,
    latencyP50: theirs.alone.latencyNsP50 / ours.alone.latencyNsP50,
  });
  return Object.fromEntries(
    peers.map(({ id, one, eight }) => [
      id,
      { one: over(tram.one, one), eight: over(tram.eight, eight) },
    ]),
  );
}

type About = Pick<SystemResult, 'id' | 'name' | 'version' | 'guarantee' | 'conditions'>;

class Run {
  constructor(
    private readonly options: PeersOptions,
    private readonly progress: (step: string) => void,
    private readonly signal: AbortSignal,
  ) {}

  tram(): Promise<SystemResult> {
    const { outstandingMax, ...about } = TRAM;
    const setup = this.setup(outstandingMax);
    return this.measure(about, setup, () => startTram(setup, this.signal));
  }

  async peer(peer: Peer): Promise<SystemResult> {
    const { id, name, guarantee, conditions } = peer;
    const program = findProgram(peer.program);
    if (program === undefined) {
      const install = installCommand([peer.package]);
      this.progress(`${name} is not installed: ${install}`);
      return { id, name, version: '', guarantee, conditions, status: 'missing', install };
    }
    const about = { id, name, version: versionOf(program), guarantee, conditions };
    const setup = this.setup(peer.outstandingMax);
    return this.measure(about, setup, () => startPeer(peer, program, setup, this.signal));
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
      return { ...about, status: 'measured', one, eight };
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

function machineNow(): Machine {
  return { ...thisMachine(), serversFolder: serversParent() };
}
