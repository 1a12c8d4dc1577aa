/** Paper §8.4: payloads from 32 B to 64 KiB, to all eight groups. */
import { everyGroup } from '../../load/destinations.js';
import type { Rung } from '../../load/saturation.js';
import { bytes, times } from '../../text/words.js';
import type { Experiment, Finding, Plan, Session } from '../experiment.js';
import { type LoadTask, latencyTask, loadSession, throughputTask } from '../load-session.js';
import type { Profile } from '../profiles.js';
import type { Summary } from '../summary.js';

const NAME = 'payload';
const GROUPS = 8;
const REPLICAS = 3;
const ALL = everyGroup(GROUPS);
/** The most bytes that one client has in flight: as much as a few rings hold. */
const IN_FLIGHT_BYTES = 4 << 20;
const LOWEST: Rung = { clients: 1, outstanding: 16 };
/** The paper calls payloads up to the first size small, and finds both systems alike from the second size on. */
const SMALL_BYTES = 256;
const LARGE_BYTES = 16 << 10;

/** The measures of each system: as in the paper, each tree for the measure that it is best at. */
const ROLES = [
  { name: 'TRAM breadth', measures: ['latency'] },
  { name: 'TRAM depth', measures: ['throughput'] },
  { name: 'RamCast', measures: ['latency', 'throughput'] },
] as const;

function ladderFor(profile: Profile, payloadBytes: number): Rung[] {
  const rungs = profile.ladder.filter(({ outstanding }) => outstanding > LOWEST.outstanding);
  return [LOWEST, ...rungs].filter(
    ({ outstanding }) => outstanding * payloadBytes <= IN_FLIGHT_BYTES,
  );
}

/** One session for each size, because the size of the rings depends on that of the payload. */
function sessions({ profile, memory, systems }: Plan): Session[] {
  return profile.payloads.flatMap((payloadBytes) =>
    ROLES.flatMap(({ name, measures }) => {
      const make = systems[name];
      if (make === undefined) return [];
      const workload = { sets: [ALL], payloadBytes };
      const ladder = ladderFor(profile, payloadBytes);
      const conditions = {
        ...{ memory, groups: GROUPS, replicas: REPLICAS, destinations: GROUPS },
        ...profile.timing,
      };
      const point = { experiment: NAME, system: name, series: name, x: payloadBytes, conditions };
      const tasks = measures.map(
        (measure): LoadTask =>
          measure === 'latency'
            ? latencyTask({ ...point, measure }, workload, profile)
            : throughputTask({ ...point, measure }, workload, profile, ladder),
      );
      const rungs = ladder;
      const options = { profile, groups: GROUPS, replicas: REPLICAS, rungs, tasks };
      return [loadSession({ system: make(memory), ...options })];
    }),
  );
}

/** The advantage of TRAM: its throughput divided by RamCast's, or RamCast's latency divided by its own. */
function advantages(summary: Summary, measure: 'latency' | 'throughput', tree: string) {
  return summary.xsOf(measure).flatMap((size) => {
    const [ours, theirs] = [tree, 'RamCast'].map((name) => summary.median(measure, name, size));
    if (ours === undefined || theirs === undefined) return [];
    return [{ size, advantage: measure === 'latency' ? theirs / ours : ours / theirs }];
  });
}

function findings(summary: Summary): Finding[] {
  return (['latency', 'throughput'] as const).flatMap((measure) => {
    const tree = measure === 'latency' ? 'TRAM breadth' : 'TRAM depth';
    const small = `With small payloads TRAM outperforms RamCast (${measure}).`;
    const large = `The gap narrows as payloads grow; around 16 KB both achieve similar results (${measure}).`;
    const all = advantages(summary, measure, tree);
    const smallest = all.filter(({ size }) => size <= SMALL_BYTES);
    const largest = all.filter(({ size }) => size >= LARGE_BYTES);
    if (smallest.length === 0 || largest.length === 0) return [{ paper: small }, { paper: large }];
    const say = (list: typeof all): string =>
      list.map(({ size, advantage }) => `${times(advantage)} at ${bytes(size)}`).join(', ');
    const first = smallest[0].advantage;
    const better =
      measure === 'latency'
        ? 'RamCast’s latency divided by TRAM’s'
        : 'TRAM’s throughput divided by RamCast’s';
    return [
      {
        paper: small,
        here: `${better}: ${say(smallest)}.`,
        agrees: smallest.every(({ advantage }) => advantage > 1),
        why: 'Both write to all 24 replicas here, and neither has machines of its own to do it in parallel.',
      },
      {
        paper: large,
        here: `${better}: ${say(largest)}.`,
        agrees: largest.every(
          ({ advantage }) =>
            Math.abs(Math.log(advantage)) <
            Math.min(Math.log(1.5), Math.abs(Math.log(first)) + 0.1),
        ),
        why: 'TRAM stores the payload twice, in inbox and log; RamCast stores it once. Here a copy costs time of a core; in the paper an RDMA card makes it.',
      },
    ];
  });
}

export const payload: Experiment = {
  name: NAME,
  title: 'Payload size',
  section: '§8.4',
  about: `Messages of 32 B to 64 KiB to all ${GROUPS} groups of ${REPLICAS} replicas: TRAM on the breadth tree for latency and on the depth tree for throughput, and RamCast for both, as in the paper. A client has at most 4 MiB in flight.`,
  systems: ['TRAM breadth', 'TRAM depth', 'RamCast'],
  sessions,
  figures: (summary) => {
    const ticks = summary.xsOf('latency');
    // Every third tick if there are many.
    const shown =
      ticks.length > 7 ? ticks.filter((_, i) => (ticks.length - 1 - i) % 3 === 0) : ticks;
    const x = { label: 'payload', kind: 'log', ticks: shown, format: bytes } as const;
    return [
      {
        name: NAME,
        title: 'Payload size, eight destinations',
        panels: [
          {
            title: 'Latency, one client',
            x,
            y: { label: 'latency (µs)', kind: 'log' },
            series: summary.lines('latency', 1000),
          },
          {
            title: 'Throughput at saturation',
            x,
            y: { label: 'thousand messages/s', kind: 'log' },
            series: summary.lines('throughput', 1000),
          },
        ],
      },
    ];
  },
  findings,
};
