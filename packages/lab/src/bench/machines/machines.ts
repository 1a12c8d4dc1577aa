/**
 * `tram-lab bench machines`: latency and throughput of TRAM across machines, beside the limits of the network itself. A round
 * measures a bare acknowledged write through libfabric, a ping-pong through Node's sockets, one message at a time, and
 * saturation. Several rounds alternate between them, so that a disturbance affects all alike. Leader changes come last.
 */
import { TramError } from 'tram-multicast/internal/errors.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { destinationSets } from '../load/destinations.js';
import { measure, rateOf } from '../load/measure.js';
import { climb, type Rung } from '../load/saturation.js';
import { spreadOf } from '../load/spread.js';
import { type BareFabric, measureBareFabric } from '../raw/bare-fabric.js';
import { measureSocketPingPong } from '../raw/socket-ping-pong.js';
import type { Load, Measurement, RunningSystem } from '../systems/system.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { type CallsPerMessage, callsPerMessage, hostCalls, medianCalls } from './calls.js';
import { type MachinesCluster, runningCluster, startCluster } from './cluster.js';
import { type LeaderChanges, measureLeaderChanges } from './leader-changes.js';
import { libfabricVersion } from './libfabric-version.js';
import { loadOn } from './system.js';

export interface MachinesOptions {
  /** The cluster file of a running cluster; without it the benchmark starts one on the loopback. */
  readonly config?: string;
  /** Numbers of destinations to measure. Default: one and all groups. */
  readonly destinations?: readonly number[];
  /** Duration of each measurement. */
  readonly seconds: number;
  /** Number of rounds. */
  readonly rounds: number;
}

/** The figures for one number of destinations. */
export interface Figures {
  readonly destinations: number;
  /** One message at a time. */
  readonly latencyNsP50: number;
  /** At saturation, and the number of messages in flight there. */
  readonly messagesPerSecond: number;
  readonly outstanding: number;
  /** One message at a time, and at saturation. Absent if the hosts are not those of the benchmark. */
  readonly calls?: { readonly alone: CallsPerMessage; readonly loaded: CallsPerMessage };
}

export interface Round {
  readonly bare: BareFabric;
  readonly socketNsP50: number;
  readonly figures: readonly Figures[];
}

export interface MachinesResult {
  readonly options: MachinesOptions;
  readonly machine: ThisMachine & { readonly libfabric: string };
  readonly cluster: {
    readonly groups: number;
    readonly replicas: number;
    readonly hosts: number;
    readonly payloadBytes: number;
  };
  /** Medians of all rounds. */
  readonly bare: {
    /** An acknowledged write, to a process that spins and to one that waits. */
    readonly spinningNs: number;
    readonly waitingNs: number;
    /** With 64 writes in flight, to a process that spins. */
    readonly writesPerSecond: number;
  };
  readonly socketNsP50: number;
  readonly figures: readonly Figures[];
  readonly changes: LeaderChanges;
  readonly rounds: readonly Round[];
}

const PAYLOAD_BYTES = 64;
const SETUP = { groups: 8, replicas: 3, clientsMax: 1, payloadBytesMax: PAYLOAD_BYTES } as const;
const IN_FLIGHT = [16, 32, 64, 128, 256, 512];
const PATIENCE = 1;
const WARM_UP_SECONDS_MAX = 0.5;
const BARE_WRITES_PER_SECOND = 5000;

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchMachines(
  options: MachinesOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<MachinesResult> {
  const machine = machineNow();
  const cluster = await open(options, progress, signal);
  try {
    const { groups, replicas, payloadBytesMax } = cluster.config.sizes;
    const payloadBytes = Math.min(PAYLOAD_BYTES, payloadBytesMax);
    const run = new Run(cluster, options, payloadBytes, progress, signal);
    const rounds = await run.rounds();
    const changes = await run.changes();
    return {
      options,
      machine,
      cluster: { groups, replicas, hosts: cluster.config.hosts, payloadBytes },
      ...mediansOf(rounds),
      changes,
      rounds,
    };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await cluster.close();
  }
}

/** Called first: without libfabric nothing can be measured. @throws TRAM_FABRIC_MISSING */
function machineNow(): MachinesResult['machine'] {
  return { libfabric: libfabricVersion(), ...thisMachine() };
}

async function open(
  { config, destinations = [] }: MachinesOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<MachinesCluster> {
  const running = config === undefined ? undefined : await runningCluster(config);
  requireGroups(destinations, running?.config.sizes.groups ?? SETUP.groups);
  if (running !== undefined) return running;
  progress('starting three hosts');
  return startCluster({ ...SETUP, outstandingMax: IN_FLIGHT.at(-1)! }, signal);
}

function requireGroups(destinations: readonly number[], groups: number): void {
  const most = Math.max(0, ...destinations);
  if (most <= groups) return;
  throw new TramError(
    'TRAM_INVALID_ARGUMENT',
    `${most} destinations, but the cluster has ${groups} groups`,
  );
}

export function mediansOf(
  rounds: readonly Round[],
): Pick<MachinesResult, 'bare' | 'socketNsP50' | 'figures'> {
  const median = (read: (round: Round) => number): number => spreadOf(rounds.map(read))!.median;
  return {
    bare: {
      spinningNs: median(({ bare }) => bare.spinning.landedUs * 1000),
      waitingNs: median(({ bare }) => bare.waiting.landedUs * 1000),
      writesPerSecond: median(({ bare }) => bare.spinning.landedPerSecond),
    },
    socketNsP50: median(({ socketNsP50 }) => socketNsP50),
    figures: rounds[0].figures.map(({ destinations }, i) => ({
      destinations,
      latencyNsP50: median(({ figures }) => figures[i].latencyNsP50),
      messagesPerSecond: median(({ figures }) => figures[i].messagesPerSecond),
      outstanding: median(({ figures }) => figures[i].outstanding),
      ...callsOf(rounds.flatMap(({ figures }) => figures[i].calls ?? [])),
    })),
  };
}

function callsOf(rounds: readonly NonNullable<Figures['calls']>[]): Pick<Figures, 'calls'> {
  if (rounds.length === 0) return {};
  const median = (values: readonly number[]): number => spreadOf(values)!.median;
  const of = (load: 'alone' | 'loaded'): CallsPerMessage =>
    medianCalls(
      rounds.map((round) => round[load]),
      median,
    );
  return { calls: { alone: of('alone'), loaded: of('loaded') } };
}

/** A measurement with what hosts and clients have asked of the network for a message. */
interface Counted {
  readonly measurement: Measurement;
  readonly calls?: CallsPerMessage;
}

class Run {
  private readonly running: RunningSystem;
  private readonly overlay: Overlay;
  private readonly destinations: readonly number[];
  private readonly ladder: readonly Rung[];

  constructor(
    private readonly cluster: MachinesCluster,
    private readonly options: MachinesOptions,
    private readonly payloadBytes: number,
    private readonly progress: (step: string) => void,
    private readonly signal: AbortSignal,
  ) {
    const { parents, sizes } = cluster.config;
    this.running = loadOn(cluster, signal);
    this.overlay = new Overlay(parents);
    this.destinations = options.destinations ?? [...new Set([1, sizes.groups])];
    const [least] = IN_FLIGHT;
    this.ladder = IN_FLIGHT.filter((count) => count === least || count <= sizes.callsMax).map(
      (count) => ({ clients: 1, outstanding: Math.min(count, sizes.callsMax) }),
    );
  }

  async rounds(): Promise<Round[]> {
    this.step('warm-up');
    await this.measure(this.destinations[0], this.ladder[0]);
    const rounds: Round[] = [];
    const { rounds: count } = this.options;
    for (let round = 1; round <= count; round++) {
      rounds.push(await this.round(` (round ${round} of ${count})`));
    }
    return rounds;
  }

  changes(): Promise<LeaderChanges> {
    this.step('leader changes');
    return measureLeaderChanges(this.cluster, this.payloadBytes, this.signal);
  }

  private async round(which: string): Promise<Round> {
    const { seconds } = this.options;
    this.step(`bare writes${which}`);
    const writes = Math.max(100, Math.round(BARE_WRITES_PER_SECOND * seconds));
    const bare = await measureBareFabric({ writes });
    this.step(`ping-pong through sockets${which}`);
    const { latencyNsP50 } = await measureSocketPingPong({ bytes: this.payloadBytes, seconds });
    const figures: Figures[] = [];
    for (const destinations of this.destinations) {
      figures.push(await this.figures(destinations, which));
    }
    return { bare, socketNsP50: latencyNsP50, figures };
  }

  private async figures(destinations: number, which: string): Promise<Figures> {
    const groups = destinations === 1 ? 'one group' : `${destinations} groups`;
    this.step(`one message at a time to ${groups}${which}`);
    const alone = await this.measure(destinations, { clients: 1, outstanding: 1 });
    const { outcome, rung } = await climb(
      this.ladder,
      PATIENCE,
      (next) => {
        this.step(`${next.outstanding} in flight to ${groups}${which}`);
        return this.measure(destinations, next);
      },
      ({ measurement }) => rateOf(measurement),
    );
    const hasCalls = alone.calls !== undefined && outcome.calls !== undefined;
    return {
      destinations,
      latencyNsP50: alone.measurement.latencyNsP50,
      messagesPerSecond: rateOf(outcome.measurement),
      outstanding: rung.outstanding,
      ...(hasCalls && { calls: { alone: alone.calls, loaded: outcome.calls } }),
    };
  }

  private async measure(destinations: number, rung: Rung): Promise<Counted> {
    const { seconds } = this.options;
    const { metrics, config } = this.cluster;
    const load: Load = {
      ...rung,
      sets: destinationSets(this.overlay, 'rotating', destinations),
      payloadBytes: this.payloadBytes,
      warmUpSeconds: Math.min(seconds, WARM_UP_SECONDS_MAX),
      seconds,
    };
    const before = await hostCalls(metrics);
    const measurement = await measure(this.running, load);
    const after = await hostCalls(metrics);
    if (metrics.length === 0) return { measurement };
    const replicas = destinations * config.sizes.replicas;
    return { measurement, calls: callsPerMessage(before, after, replicas, measurement) };
  }

  private step(step: string): void {
    this.signal.throwIfAborted();
    this.progress(step);
  }
}
