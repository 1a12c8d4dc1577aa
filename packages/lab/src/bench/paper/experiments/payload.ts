/** Paper §8.4: payloads from 32 B to 64 KiB, to all eight groups. */
import { setOf } from '../../load/destinations.js';
import type { Rung } from '../../load/saturation.js';
import { bytes, times } from '../../text/words.js';
import type { Experiment, Finding, Plan, Session } from '../experiment.js';
import { type LoadTask, latencyTask, loadSession, throughputTask } from '../load-session.js';
import type { Profile } from '../profiles.js';
import type { Summary } from '../summary.js';

const NAME = 'payload';
const GROUPS = 8;
const REPLICAS = 3;
const ALL = setOf(Array.from({ length: GROUPS }, (_, group) => group));
/** What one client may have under way: no more than a few rings hold. */
const UNDER_WAY_BYTES = 4 << 20;
const LOWEST: Rung = { clients: 1, outstanding: 16 };
/** Up to here the paper calls payloads small, and from there on the two alike. */
const SMALL_BYTES = 256;
const LARGE_BYTES = 16 << 10;

/** Which system is measured for what: as in the paper, each tree for what it is best at. */
const ROLES = [
  { name: 'TRAM breadth', measures: ['latency'] },
  { name: 'TRAM depth', measures: ['throughput'] },
  { name: 'RamCast', measures: ['latency', 'throughput'] },
] as const;

function ladderFor(profile: Profile, payloadBytes: number): Rung[] {
  const rungs = profile.ladder.filter(({ outstanding }) => outstanding > LOWEST.outstanding);
  return [LOWEST, ...rungs].filter(
    ({ outstanding }) => outstanding * payloadBytes <= UNDER_WAY_BYTES,
  );
}

/** A session for each size: rings that are large enough for all of them would be too large for most. */
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

/** How much better TRAM is: throughput by throughput, or latency the other way round. */
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
      measure === 'latency' ? 'RamCast’s latency by TRAM’s' : 'TRAM’s throughput by RamCast’s';
    return [
      {
        paper: small,
        here: `${better}: ${say(smallest)}.`,
        agrees: smallest.every(({ advantage }) => advantage > 1),
        why: 'Both write to all 24 replicas here, and neither has machines of its own to do it side by side.',
      },
      {
        paper: large,
        here: `${better}: ${say(largest)}.`,
        agrees: largest.every(
          ({ advantage }) =>
            Math.abs(Math.log(advantage)) <
            Math.min(Math.log(1.5), Math.abs(Math.log(first)) + 0.1),
        ),
        why: 'TRAM keeps the payload in inbox and log, RamCast once. A copy costs time of a core here, where an RDMA card does it in the paper.',
      },
    ];
  });
}

export const payload: Experiment = {
  name: NAME,
  title: 'Payload size',
  section: '§8.4',
  about: `Messages of 32 B to 64 KiB to all ${GROUPS} groups of ${REPLICAS} replicas: TRAM on the breadth tree for latency and on the depth tree for throughput, and RamCast for both, as in the paper. A client has at most 4 MiB under way.`,
  systems: ['TRAM breadth', 'TRAM depth', 'RamCast'],
  sessions,
  figures: (summary) => {
    const ticks = summary.xsOf('latency');
    // Every third if there are many.
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
