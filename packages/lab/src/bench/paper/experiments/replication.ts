/** Paper §8.5: latency by the number of replicas in a group, on the simple tree. */
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { destinationSets } from '../../load/destinations.js';
import { plural, times } from '../../text/words.js';
import type { Context, Experiment, Finding, Plan, Session } from '../experiment.js';
import { latencyTask, loadSession } from '../load-session.js';
import type { Summary } from '../summary.js';

const NAME = 'replication';
const GROUPS = 3;
const SYSTEM = 'TRAM simple';
const PAYLOAD_BYTES = 64;
const DESTINATIONS = [1, 2, 3];

function seriesName(destinations: number): string {
  return plural(destinations, 'destination');
}

function sessions({ profile, memory, systems }: Plan): Session[] {
  const make = systems[SYSTEM];
  if (make === undefined) return [];
  const overlay = new Overlay(parseTree('simple', GROUPS));
  return profile.replicas.map((replicas) => {
    const tasks = DESTINATIONS.map((destinations) => {
      const sets = destinationSets(overlay, 'random', destinations);
      const conditions = {
        ...{ memory, groups: GROUPS, destinations, payloadBytes: PAYLOAD_BYTES },
        ...profile.timing,
      };
      const series = seriesName(destinations);
      const point = { experiment: NAME, measure: 'latency', system: SYSTEM, series, x: replicas };
      return latencyTask({ ...point, conditions }, { sets, payloadBytes: PAYLOAD_BYTES }, profile);
    });
    const rungs = [{ clients: 1, outstanding: 1 }];
    return loadSession({ system: make(memory), profile, groups: GROUPS, replicas, rungs, tasks });
  });
}

function findings(summary: Summary, { setting }: Context): Finding[] {
  const paper =
    'Replication takes almost constant time, independently of the number of replicas and of destinations.';
  const replicas = summary.xsOf('latency');
  const [least, most] = [replicas[0], replicas.at(-1)!];
  const growth = DESTINATIONS.flatMap((destinations) => {
    const [few, many] = [3, most].map((x) =>
      summary.median('latency', seriesName(destinations), x),
    );
    return few === undefined || many === undefined ? [] : [{ destinations, ratio: many / few }];
  });
  if (growth.length === 0 || least === most) return [{ paper }];
  const each = growth.map(
    ({ destinations, ratio }) => `${times(ratio)} for ${seriesName(destinations)}`,
  );
  return [
    {
      paper,
      here: `${most} replicas against 3: ${each.join(', ')}.`,
      agrees: growth.every(({ ratio }) => ratio < 1.25),
      why: `Here the leader’s core makes each copy itself, one after the other; an RDMA card has all writes in flight at once. And ${plural(setting.cores, 'core')} run all replicas, so followers take time from leaders.`,
    },
  ];
}

export const replication: Experiment = {
  name: NAME,
  title: 'Replicas in a group',
  section: '§8.5',
  about: `The simple tree (${GROUPS} groups, two below the root) with groups of 1 to 7 replicas, one client that sends one message at a time, ${PAYLOAD_BYTES} B payloads, destinations drawn uniformly. The figure shows the median latency.`,
  systems: [SYSTEM],
  sessions,
  figures: (summary) => [
    {
      name: NAME,
      title: 'Replicas in a group, simple tree',
      panels: [
        {
          title: 'Latency, one client',
          x: { label: 'replicas in each group', kind: 'linear', ticks: summary.xsOf('latency') },
          y: { label: 'latency (µs)', kind: 'linear' },
          series: summary.lines('latency', 1000),
        },
      ],
    },
  ],
  findings,
};
