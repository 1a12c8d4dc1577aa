/**
 * `tram-lab bench store`: tram-store beside Redis alone and Redis with two replicas and WAIT 1, in one run on one machine. In each
 * round, each system is started, measured and ended in turn.
 */
import { inRounds } from '../load/rounds.js';
import { type Spread, spreadOf } from '../load/spread.js';
import { forkLoad } from '../peers/peer.js';
import { Servers, serversParent, versionOf } from '../systems/servers.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import type { StoreJob } from './load-process.js';
import { FEW_SHARDS, LOADS, type LoadId, loadOf, type Pipeline } from './loads.js';
import { redisBenchmark, runRedisBenchmark } from './redis-benchmark.js';
import {
  fill,
  redisServer,
  STORE_SYSTEMS,
  type StoreSystem,
  type StoreSystemId,
} from './systems.js';

export interface StoreOptions {
  readonly only: readonly LoadId[];
  readonly pipelines: readonly Pipeline[];
  readonly rounds: number;
  readonly seconds: number;
}

/** One measurement of one system. */
export interface StoreReport {
  readonly requestsPerSecond: number;
  readonly latencyNsP50: number;
  readonly latencyNsP99: number;
  /** Of the process that sends the requests. */
  readonly loadCores: number;
}

/** Who sends the requests: the benchmark's own load, or the program `redis-benchmark`. */
export type Sender = 'own' | 'redis-benchmark';

export interface Figures {
  readonly requestsPerSecond: Spread;
  readonly latencyNsP50: Spread;
  readonly latencyNsP99: Spread;
  /** How many cores the servers and the load have used together; undefined for `redis-benchmark`. */
  readonly cores: Spread | undefined;
  /** The throughput of tram-store divided by that of this system, of each round. */
  readonly storeBy: Spread;
}

export interface LoadResult {
  readonly load: LoadId;
  readonly pipeline: Pipeline;
  readonly sender: Sender;
  /** By system. `redis-benchmark` cannot send WAIT. */
  readonly figures: Readonly<Partial<Record<StoreSystemId, Figures>>>;
}

export interface StoreResult {
  readonly options: StoreOptions;
  readonly machine: ThisMachine;
  readonly redisVersion: string;
  readonly results: readonly LoadResult[];
}

type Measured = Omit<StoreReport, 'loadCores'> & { readonly cores: number | undefined };
type Case = Pick<LoadResult, 'load' | 'pipeline' | 'sender'>;

const CONNECTIONS = 50;
/** For longer at first: V8 compiles what it runs, which takes more than one core in the first second, and a third of one in the next. */
const WARM_UP_SECONDS_MAX = { first: 3, later: 1 };

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchStore(
  options: StoreOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<StoreResult> {
  const server = redisServer();
  if (server === undefined || redisBenchmark() === undefined) {
    throw new Error('Redis is not installed: apt-get install -y redis-server redis-tools');
  }
  const machine = thisMachine();
  const cases = casesOf(options);
  const run = new Run(options, progress, signal);
  const rounds = await inRounds(options.rounds, STORE_SYSTEMS, (system) =>
    run.measureAll(system, cases),
  );
  const results = cases.map((one, i) => ({
    ...one,
    figures: figuresOf(rounds.map((systems) => systems.map((measured) => measured[i]))),
  }));
  return { options, machine, redisVersion: versionOf(server), results };
}

function casesOf({ only, pipelines }: StoreOptions): Case[] {
  const loads = LOADS.filter(({ id }) => only.includes(id));
  const own = loads.flatMap(({ id: load }) =>
    pipelines.map((pipeline): Case => ({ load, pipeline, sender: 'own' })),
  );
  const others = own.filter(({ load }) => load === 'set' || load === 'get');
  return [...own, ...others.map((one): Case => ({ ...one, sender: 'redis-benchmark' }))];
}

class Run {
  constructor(
    private readonly options: StoreOptions,
    private readonly progress: (step: string) => void,
    private readonly signal: AbortSignal,
  ) {}

  /** @returns in the order of the cases; undefined where it can't be measured */
  async measureAll(
    system: StoreSystem,
    cases: readonly Case[],
  ): Promise<readonly (Measured | undefined)[]> {
    const measured: (Measured | undefined)[] = [];
    // The number of shards makes a difference to the store only.
    const numbers = system.id === 'store' ? cases.map(shardsOf) : cases.map(() => FEW_SHARDS);
    for (const shards of new Set(numbers)) {
      const servers = new Servers('store', this.signal, serversParent());
      try {
        this.step(`${system.name}: start`);
        const port = await system.start(servers, shards);
        await fill(port);
        let warmUpSecondsMax = WARM_UP_SECONDS_MAX.first;
        for (const [i, one] of cases.entries()) {
          if (numbers[i] !== shards) continue;
          measured[i] = await this.measure(system, servers, port, one, warmUpSecondsMax);
          warmUpSecondsMax = WARM_UP_SECONDS_MAX.later;
        }
      } catch (cause) {
        this.signal.throwIfAborted();
        const log = servers.lastLines().join('\n');
        throw new Error(`${system.name}: ${(cause as Error).message}\n${log}`, { cause });
      } finally {
        await servers.close();
      }
    }
    return measured;
  }

  private async measure(
    { name, id, waits }: StoreSystem,
    servers: Servers,
    port: number,
    { load, pipeline, sender }: Case,
    warmUpSecondsMax: number,
  ): Promise<Measured | undefined> {
    const { signal } = this;
    const { seconds } = this.options;
    const what = { load, pipeline, connections: CONNECTIONS, seconds };
    if (sender === 'redis-benchmark') {
      if (id === 'replicated') return undefined;
      this.step(`${name}: redis-benchmark, ${loadOf(load).name}, ${pipeline} at a time`);
      const report = await runRedisBenchmark(redisBenchmark()!, port, { ...what, signal });
      return { ...report, cores: undefined };
    }
    this.step(`${name}: ${loadOf(load).name}, ${pipeline} at a time`);
    const warmUpSeconds = Math.min(warmUpSecondsMax, warmUpSecondsMax * seconds);
    const job: StoreJob = { ...what, port, waits, warmUpSeconds };
    const cpuBefore = servers.cpuSeconds();
    const startedMs = performance.now();
    const script = new URL('./load-process.js', import.meta.url);
    const { loadCores, ...report } = await forkLoad<StoreReport>(script, job, signal);
    const elapsed = (performance.now() - startedMs) / 1000;
    return { ...report, cores: loadCores + (servers.cpuSeconds() - cpuBefore) / elapsed };
  }

  private step(step: string): void {
    this.signal.throwIfAborted();
    this.progress(step);
  }
}

function shardsOf({ load }: Case): number {
  return loadOf(load).shards;
}

/** @param rounds  of one case: for each round, what was measured of the systems */
function figuresOf(rounds: readonly (readonly (Measured | undefined)[])[]): LoadResult['figures'] {
  const ours = STORE_SYSTEMS.findIndex(({ id }) => id === 'store');
  const entries = STORE_SYSTEMS.flatMap(({ id }, i) => {
    const measured = rounds.map((systems) => systems[i]).filter((one) => one !== undefined);
    if (measured.length === 0) return [];
    const spread = (of: (one: Measured, round: number) => number | undefined) =>
      spreadOf(measured.map(of).filter((value) => value !== undefined));
    const figures: Figures = {
      requestsPerSecond: spread((one) => one.requestsPerSecond)!,
      latencyNsP50: spread((one) => one.latencyNsP50)!,
      latencyNsP99: spread((one) => one.latencyNsP99)!,
      cores: spread((one) => one.cores),
      storeBy: spread(
        (one, round) => rounds[round][ours]!.requestsPerSecond / one.requestsPerSecond,
      )!,
    };
    return [[id, figures] as const];
  });
  return Object.fromEntries(entries);
}
