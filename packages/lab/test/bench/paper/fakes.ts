/** Systems that answer at once with made-up figures, and results of such systems, for tests of `bench/paper`. */
import type { Experiment, Plan } from '../../../src/bench/paper/experiment.js';
import { roundsOf } from '../../../src/bench/paper/experiment.js';
import { EXPERIMENTS } from '../../../src/bench/paper/experiments/index.js';
import type { Profile } from '../../../src/bench/paper/profiles.js';
import type { Details, Outcome, Point, Results } from '../../../src/bench/paper/results.js';
import type { Setting } from '../../../src/bench/paper/setting.js';
import type { SystemName, Systems } from '../../../src/bench/paper/systems.js';
import type { Load, Measurement, System } from '../../../src/bench/systems/system.js';
import { Random } from '../../../src/sim/random.js';

export const ALL_SYSTEMS: readonly SystemName[] = [
  'TRAM base',
  'TRAM breadth',
  'TRAM depth',
  'TRAM simple',
  'TRAM machines',
  'RamCast',
  'ByzCast',
  'Skeen',
];

export const SETTING: Setting = {
  profile: 'tiny',
  memory: 'threads',
  version: '0.0.0',
  commit: 'abcdef0',
  code: '0123456789ab',
  processor: 'A processor',
  cores: 2,
  memoryGiB: 8,
  system: 'Linux 6.1 x64',
  node: '20.0.0',
};

export const TINY: Profile = {
  name: 'tiny',
  rounds: 2,
  startUp: { warmUpSeconds: 0.01, seconds: 0.02 },
  timing: { warmUpSeconds: 0.01, seconds: 0.05 },
  ladder: [
    { clients: 1, outstanding: 8 },
    { clients: 1, outstanding: 32 },
  ],
  patience: 1,
  destinations: [1, 8],
  payloads: [32, 16384],
  replicas: [1, 3],
  groups: [1, 4],
  clients: [1, 4],
  outstanding: [1, 8],
  changes: 3,
};

/** The calls to fake systems, in order. */
export interface Journal {
  readonly starts: string[];
  readonly loads: { readonly system: string; readonly load: Load }[];
  closed: number;
}

export function fakeSystems(
  journal: Journal,
  names: readonly SystemName[] = ALL_SYSTEMS,
  fail?: (system: string, load: Load) => boolean,
): Systems {
  return Object.fromEntries(
    names.map((name) => [
      name,
      (): System => ({
        name,
        start: async () => {
          journal.starts.push(name);
          return {
            measure: async (load) => {
              journal.loads.push({ system: name, load });
              if (fail?.(name, load)) throw new Error('as planned');
              return measurement(load);
            },
            close: async () => {
              journal.closed++;
            },
          };
        },
      }),
    ]),
  );
}

export function journal(): Journal {
  return { starts: [], loads: [], closed: 0 };
}

/** Experiments by name. */
export function named(...names: string[]): Experiment[] {
  return EXPERIMENTS.filter(({ name }) => names.includes(name));
}

export function planOf(more: Partial<Plan> = {}): Plan {
  return { profile: TINY, memory: 'threads', systems: fakeSystems(journal()), ...more };
}

function measurement({ outstanding, clients, seconds }: Load): Measurement {
  const rate = 1e5 * Math.min(1, (outstanding * clients) / 16);
  const latency = 1e9 / rate;
  return {
    messages: rate * seconds,
    seconds,
    latencyNsP50: latency,
    latencyNsP90: latency,
    latencyNsP99: latency,
    latencyNsP999: latency,
    latencyNsMax: latency,
    unanswered: 0,
    coresUsed: 1.5,
  };
}

/** Adds plausible results with some noise for all points of the experiments. */
export function fillIn(
  results: Results,
  experiments: readonly Experiment[],
  plan: Plan,
  setting: Setting,
  othersCores = 0.1,
): void {
  const random = new Random(1);
  for (const experiment of experiments) {
    for (let round = 1; round <= roundsOf(experiment, plan.profile); round++) {
      for (const { tasks } of experiment.sessions(plan)) {
        for (const { point } of tasks) {
          const noise = 0.9 + random.below(200) / 1000;
          const at = new Date(1e12 + round).toISOString();
          const { value, details } = outcomeOf(point);
          const result = { ...point, round, setting, othersCores, at };
          results.add({ ...result, value: value * noise, details });
        }
      }
    }
  }
}

const BASE_NS: Readonly<Record<string, readonly [number, number]>> = {
  'TRAM base': [1800, 2300],
  'TRAM breadth': [1900, 2000],
  'TRAM depth': [1800, 2500],
  'TRAM machines': [110_000, 20_000],
  RamCast: [1500, 4200],
  ByzCast: [90_000, 40_000],
  Skeen: [80_000, 60_000],
};

function outcomeOf({ experiment, measure, system, series, x }: Point): Outcome {
  const [first, each] = BASE_NS[system] ?? [1500, 900];
  const destinations = experiment === 'payload' ? 8 : x;
  const perByte = experiment === 'payload' ? x * 12 : 0;
  const latency = first + (destinations - 1) * each + perByte;
  const details: Details = {
    latencyNs: { p50: latency, p90: latency, p99: latency, p999: latency, max: latency },
    coresUsed: 1.9,
    load: { clients: 1, outstanding: 256 },
  };
  if (experiment === 'write-latency') {
    const isTogether = series.endsWith('together');
    const isAnswered = series.startsWith('acknowledged');
    const value = isAnswered ? (isTogether ? 280 + 60 * x : 320 * x) : 55 * x;
    return { value, details: {} };
  }
  if (experiment === 'replication') return { value: 2000 + 400 * x, details };
  if (measure === 'latency') return { value: latency, details };
  if (measure === 'bare') return { value: 1.7e7, details: {} };
  if (measure === 'groups') {
    const copies = series === 'all groups' ? 7 * x : series === '1 destination' ? 7 : 17;
    return { value: 4e6 / copies, details: { ...details, isSaturated: true, tried: [], copies } };
  }
  if (measure === 'clients' || measure === 'outstanding') {
    const value = 4e5 * (x / (x + 8));
    const p50 = (x * 1e9) / value;
    return { value, details: { ...details, latencyNs: { ...details.latencyNs!, p50 } } };
  }
  if (measure === 'delay') return { value: 1e7, details: { failover: failover() } };
  return { value: 1.4e9 / latency, details: { ...details, isSaturated: true, tried: [] } };
}

function failover(): NonNullable<Details['failover']> {
  const span = (meanMs: number) => ({
    ...{ messages: 100, spanMs: 20, gapMs: 18, meanMs, deviationMs: 3 },
    ...{ minMs: meanMs / 2, maxMs: meanMs * 2 },
  });
  const cause = (name: 'request' | 'kill', scale: number) => ({
    ...{
      cause: name,
      changes: [10, 14, 12].map((ms) => span(ms * scale)),
      total: span(12 * scale),
    },
    usualMsP50: 0.6,
  });
  const options = { groups: 8, replicas: 3, tree: 'breadth', clients: 100, payloadBytes: 64 };
  return { options: { ...options, changes: 3 }, causes: [cause('request', 1), cause('kill', 3)] };
}
