/**
 * `tram-lab bench order`: the throughput of a cluster, and the latency of a message, from the offer of a client until the
 * replies of all destinations are back. Beside them, from the same run, the limits of the machine: the copy-only loop, which
 * makes the same copies with no protocol, a bare ring, and the ping-pong of one word, which tells how far the cores are apart.
 *
 * All configurations are measured once, then all of them again. The figures are the medians of these runs.
 */
import { resolveSizes } from 'tram-multicast/internal/config/sizes.js';
import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { messageWords, NO_SALT } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { type DestinationSet, destinationSets } from '../load/destinations.js';
import { rateOf } from '../load/measure.js';
import { inRounds } from '../load/rounds.js';
import type { BenchMemory } from '../load/run.js';
import { type Spread, spreadOf } from '../load/spread.js';
import { meanCopies } from '../paper/copies.js';
import { type CopyOnly, measureCopyOnly } from '../raw/copy-only/measure.js';
import { measurePingPong } from '../raw/ping-pong.js';
import { measureRawRing, type RawRing } from '../raw/ring.js';
import type { Load, Measurement, Setup } from '../systems/system.js';
import { sizeOptions, type TramOptions } from '../systems/tram.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { type Build, buildIn, measureTram, THIS_BUILD } from './build.js';

export interface Configuration {
  readonly memory: BenchMemory;
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly hosts?: number;
  readonly leaders?: TramOptions['leaders'];
  readonly destinations: number;
  readonly clients: number;
  readonly outstanding: number;
  readonly payloadBytes: number;
}

export interface OrderOptions {
  readonly configurations: readonly Configuration[];
  readonly runs: number;
  readonly seconds: number;
  /** Another checkout, with a build, to compare this one with. */
  readonly against?: string;
}

/** TRAM in one run. */
export interface ClusterFigures {
  /** With the configured number of messages in flight. */
  readonly loaded: Measurement;
  /** With one client and one message at a time. */
  readonly alone: Measurement;
}

export interface OrderRun {
  /** The ping-pong right before and right after the run. */
  readonly pingPongNs: readonly [before: number, after: number];
  readonly tram: ClusterFigures;
  /** The copy-only loop, with the same loads. */
  readonly copyOnly: { readonly loaded: CopyOnly; readonly alone: CopyOnly };
  /** TRAM as the other checkout has it. */
  readonly against?: ClusterFigures;
}

/** The medians of all runs. */
export interface Figures {
  readonly messagesPerSecond: Spread;
  /** One message at a time. */
  readonly latencyNsP50: Spread;
}

export interface ConfigurationResult extends Figures {
  readonly configuration: Configuration;
  readonly runs: readonly OrderRun[];
  /** Of all threads or processes under load: the time of a core for each copy of a message. */
  readonly coreNsPerCopy: Spread;
  readonly copyOnly: Figures;
  /** Of each run: TRAM divided by the copy-only loop. */
  readonly perCopyOnly: Figures;
  readonly against?: Figures;
  /** Of each run: this build divided by the other one. */
  readonly perAgainst?: Figures;
}

export interface BareRing extends RawRing {
  readonly memory: BenchMemory;
  readonly recordBytes: number;
}

export interface OrderResult {
  readonly options: OrderOptions;
  readonly machine: ThisMachine;
  /** One for each kind of memory. */
  readonly rings: readonly BareRing[];
  readonly configurations: readonly ConfigurationResult[];
}

const RING_SECONDS = 0.5;
const PING_PONG_SECONDS = 0.2;
const WARM_UP_SECONDS_MAX = 1.5;
/** Of the duration of a measurement. */
const WARM_UP_SHARE = 3;

/** If interrupted, it ends what it has started, then throws the signal's reason. */
export async function benchOrder(
  options: OrderOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<OrderResult> {
  const { configurations, runs } = options;
  const bench = new Bench(options, progress, signal);
  const machine = thisMachine();
  const rings: BareRing[] = [];
  for (const memory of new Set(configurations.map((configuration) => configuration.memory))) {
    rings.push(await bench.ring(memory));
  }
  const rounds = await inRounds(runs, configurations, (configuration) => bench.run(configuration));
  const results = configurations.map((configuration, i) =>
    combine(
      configuration,
      rounds.map((round) => round[i]),
    ),
  );
  return { options, machine, rings, configurations: results };
}

class Bench {
  private readonly other: Build | undefined;
  private runs = 0;

  constructor(
    private readonly options: OrderOptions,
    private readonly progress: (step: string) => void,
    private readonly signal: AbortSignal,
  ) {
    const { against } = options;
    this.other = against === undefined ? undefined : buildIn(against);
  }

  async ring(memory: BenchMemory): Promise<BareRing> {
    this.step(`${memory}: bare ring`);
    const { payloadBytes } = this.options.configurations[0];
    const recordBytes = (FRAME_WORDS + messageWords(payloadBytes)) * 4;
    const ring = await measureRawRing({ memory, recordBytes, seconds: RING_SECONDS });
    return { ...ring, memory, recordBytes };
  }

  async run(configuration: Configuration): Promise<OrderRun> {
    // Whichever build comes first, a disturbance that grows affects it less: they take turns.
    const otherFirst = this.runs++ % 2 === 1;
    const before = await this.pingPong(configuration);
    const first = otherFirst ? await this.otherTram(configuration) : undefined;
    const tram = await this.tram(THIS_BUILD, configuration);
    const against = first ?? (await this.otherTram(configuration));
    const copyOnly = await this.copyOnly(configuration);
    const after = await this.pingPong(configuration);
    const run = { pingPongNs: [before, after] as const, tram, copyOnly };
    return against === undefined ? run : { ...run, against };
  }

  private async pingPong({ memory }: Configuration): Promise<number> {
    this.signal.throwIfAborted();
    const { roundTripNsP50 } = await measurePingPong({ memory, seconds: PING_PONG_SECONDS });
    return roundTripNsP50;
  }

  private async otherTram(configuration: Configuration): Promise<ClusterFigures | undefined> {
    return this.other === undefined ? undefined : this.tram(this.other, configuration);
  }

  private tram(build: Build, configuration: Configuration): Promise<ClusterFigures> {
    this.step(`${describe(configuration)}: TRAM${build === this.other ? ', other build' : ''}`);
    const { memory, tree, hosts, leaders } = configuration;
    const options: TramOptions = {
      ...{ tree, memory },
      ...(hosts !== undefined && { hosts }),
      ...(leaders !== undefined && { leaders }),
    };
    const loaded = this.load(configuration);
    const alone = { ...loaded, clients: 1, outstanding: 1 };
    const job = { options, setup: setupOf(configuration), alone, loaded };
    return measureTram(build, job, this.signal);
  }

  private async copyOnly(configuration: Configuration): Promise<OrderRun['copyOnly']> {
    this.step(`${describe(configuration)}: copy-only loop`);
    const { memory, groups, tree, clients, outstanding, payloadBytes } = configuration;
    const sizes = resolveSizes(sizeOptions(setupOf(configuration)), NO_SALT);
    const { sets, seconds } = this.load(configuration);
    const parents = parseTree(tree, groups);
    const common = { memory, seconds, sizes, parents, sets, payloadBytes };
    const alone = await measureCopyOnly({ ...common, clients: 1, outstanding: 1 });
    const loaded = await measureCopyOnly({ ...common, clients, outstanding });
    return { loaded, alone };
  }

  private load(configuration: Configuration): Load {
    const { clients, outstanding, payloadBytes } = configuration;
    const { seconds } = this.options;
    const sets = setsOf(configuration);
    const warmUpSeconds = Math.min(WARM_UP_SHARE * seconds, WARM_UP_SECONDS_MAX);
    return { sets, clients, outstanding, payloadBytes, seconds, warmUpSeconds };
  }

  private step(step: string): void {
    this.signal.throwIfAborted();
    this.progress(step);
  }
}

function overlayOf({ groups, tree }: Configuration): Overlay {
  return new Overlay(parseTree(tree, groups));
}

/** The destinations of the messages; clients cycle through them. */
function setsOf(configuration: Configuration): DestinationSet[] {
  return destinationSets(overlayOf(configuration), 'rotating', configuration.destinations);
}

function setupOf(configuration: Configuration): Setup {
  const { groups, replicas, clients, outstanding, payloadBytes } = configuration;
  const limits = { clientsMax: clients, outstandingMax: outstanding };
  return { groups, replicas, ...limits, payloadBytesMax: payloadBytes };
}

/** `threads, 8 groups of 3, breadth tree, 64 B to 8` */
export function describe(configuration: Configuration): string {
  const { memory, groups, replicas, tree, destinations, payloadBytes } = configuration;
  const shape = `${groups} group${groups === 1 ? '' : 's'} of ${replicas}, ${tree} tree`;
  return `${memory}, ${shape}, ${payloadBytes} B to ${destinations}`;
}

/** A figure of all runs is the median of theirs; a ratio is the median of the ratios of the runs. */
export function combine(
  configuration: Configuration,
  runs: readonly OrderRun[],
): ConfigurationResult {
  const tram = runs.map((run) => ownFigures(run.tram));
  const copyOnly = runs.map(({ copyOnly: { loaded, alone } }) => ({
    messagesPerSecond: loaded.messagesPerSecond,
    latencyNsP50: alone.latencyNsP50,
  }));
  const others = runs.flatMap(({ against }) =>
    against === undefined ? [] : [ownFigures(against)],
  );
  const copies = meanCopies(
    overlayOf(configuration),
    configuration.replicas,
    setsOf(configuration),
  );
  const coreNs = runs.map(
    ({ tram: { loaded } }) => (loaded.coresUsed * 1e9) / (rateOf(loaded) * copies),
  );
  return {
    configuration,
    runs,
    coreNsPerCopy: spreadOf(coreNs)!,
    ...spreadsOf(tram),
    copyOnly: spreadsOf(copyOnly),
    perCopyOnly: spreadsOf(quotients(tram, copyOnly)),
    ...(others.length > 0 && {
      against: spreadsOf(others),
      perAgainst: spreadsOf(quotients(tram, others)),
    }),
  };
}

type Values = Readonly<Record<keyof Figures, number>>;

function ownFigures({ loaded, alone }: ClusterFigures): Values {
  return { messagesPerSecond: rateOf(loaded), latencyNsP50: alone.latencyNsP50 };
}

function quotients(of: readonly Values[], by: readonly Values[]): Values[] {
  return of.map((values, i) => ({
    messagesPerSecond: values.messagesPerSecond / by[i].messagesPerSecond,
    latencyNsP50: values.latencyNsP50 / by[i].latencyNsP50,
  }));
}

function spreadsOf(values: readonly Values[]): Figures {
  return {
    messagesPerSecond: spreadOf(values.map(({ messagesPerSecond }) => messagesPerSecond))!,
    latencyNsP50: spreadOf(values.map(({ latencyNsP50 }) => latencyNsP50))!,
  };
}
