/** Beyond the paper: many groups, many clients, many messages in flight. */

import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { MESSAGE } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { destinationSets } from '../../load/destinations.js';
import type { Rung } from '../../load/saturation.js';
import { measureRawRing } from '../../raw/ring.js';
import { plural, rate, significant, times } from '../../text/words.js';
import { meanCopies } from '../copies.js';
import type { Experiment, Finding, Plan, Session } from '../experiment.js';
import { loadSession, loadTask, throughputTask } from '../load-session.js';
import type { Result } from '../results.js';
import type { Summary } from '../summary.js';

const NAME = 'scaling';
const REPLICAS = 3;
const PAYLOAD_BYTES = 64;
const RECORD_BYTES = (FRAME_WORDS + MESSAGE.payload) * 4 + PAYLOAD_BYTES;
/** For the measurements by load, whose messages have two destinations. */
const GROUPS = 8;
const DESTINATIONS = 2;
const BARE = 'bare ring';
const SYSTEMS = ['TRAM base', 'RamCast'] as const;

/** A bare ring keeps two cores busy: one writes, one reads. */
const RING_CORES = 2;

function bareRing({ profile, memory }: Plan): Session {
  const { seconds } = profile.timing;
  const conditions = { memory, recordBytes: RECORD_BYTES, seconds };
  const point = { experiment: NAME, measure: 'bare', system: BARE, series: BARE, x: 1, conditions };
  return {
    system: BARE,
    startSeconds: 0,
    tasks: [{ point, seconds: 2 * seconds + 0.8 }],
    start: async () => ({
      take: async () => {
        const ring = await measureRawRing({ memory, recordBytes: RECORD_BYTES, seconds });
        return { value: ring.messagesPerSecond, details: {} };
      },
      close: async () => undefined,
    }),
  };
}

const LINES = ['1 destination', `${DESTINATIONS} destinations`, 'all groups'];

function destinationCounts(groups: number): { series: string; count: number }[] {
  const counts = [1, DESTINATIONS, groups];
  return LINES.map((series, i) => ({ series, count: counts[i] })).filter(
    ({ count }) => count <= groups,
  );
}

function byGroups({ profile, memory, systems }: Plan): Session[] {
  const name = 'TRAM base';
  const make = systems[name];
  if (make === undefined) return [];
  return profile.groups.map((groups) => {
    const overlay = new Overlay(parseTree('base', groups));
    const tasks = destinationCounts(groups).map(({ series, count }) => {
      const sets = destinationSets(overlay, 'random', count);
      const conditions = {
        ...{ memory, replicas: REPLICAS, destinations: count, payloadBytes: PAYLOAD_BYTES },
        ...profile.timing,
      };
      const point = { experiment: NAME, measure: 'groups', system: name, series, x: groups };
      const copies = meanCopies(overlay, REPLICAS, sets);
      const workload = { sets, payloadBytes: PAYLOAD_BYTES };
      return throughputTask({ ...point, conditions }, workload, profile, profile.ladder, {
        copies,
      });
    });
    const options = { profile, groups, replicas: REPLICAS, rungs: profile.ladder, tasks };
    return loadSession({ system: make(memory), ...options });
  });
}

function byLoad(
  { profile, memory, systems }: Plan,
  measure: 'clients' | 'outstanding',
  counts: readonly number[],
  rungOf: (count: number) => Rung,
): Session[] {
  const overlay = new Overlay(parseTree('base', GROUPS));
  const sets = destinationSets(overlay, 'random', DESTINATIONS);
  return SYSTEMS.flatMap((name) => {
    const make = systems[name];
    if (make === undefined) return [];
    const tasks = counts.map((count) => {
      const conditions = {
        ...{ memory, groups: GROUPS, replicas: REPLICAS, destinations: DESTINATIONS },
        ...{ payloadBytes: PAYLOAD_BYTES, ...profile.timing },
      };
      const point = { experiment: NAME, measure, system: name, series: name, x: count, conditions };
      return loadTask(point, { sets, payloadBytes: PAYLOAD_BYTES }, profile, rungOf(count));
    });
    // The first rung is the load of the warm-up: the highest one.
    const rungs = counts.map(rungOf).reverse();
    const options = { profile, groups: GROUPS, replicas: REPLICAS, rungs, tasks };
    return [loadSession({ system: make(memory), ...options })];
  });
}

/** CPU time for each copy that a message needs. */
function coreNsPerCopy({ value, details }: Result): number {
  return ((details.coresUsed ?? 0) * 1e9) / value / (details.copies ?? 1);
}

function bareCopyNs(summary: Summary): number | undefined {
  const bare = summary.median('bare', BARE, 1);
  return bare === undefined ? undefined : (RING_CORES * 1e9) / bare;
}

function medianLatency({ details }: Result): number {
  return details.latencyNs?.p50 ?? 0;
}

function groupsFinding(summary: Summary): Finding[] {
  const groups = summary.xsOf('groups');
  const [least, most] = [groups[0], groups.at(-1)];
  if (least === undefined || most === undefined || least === most) return [];
  const series = '1 destination';
  const [few, many] = [least, most].map((x) => summary.median('groups', series, x));
  if (few === undefined || many === undefined) return [];
  return [
    {
      here: `Messages to one group: ${rate(few)} with ${plural(least, 'group')}, ${rate(many)} with ${most}, which is ${times(many / few)}. More groups bring no more throughput if they share the cores; the cost is that of polling their replicas.`,
    },
  ];
}

function copiesFinding(summary: Summary): Finding[] {
  const bare = bareCopyNs(summary);
  const all = summary.results.filter(({ measure }) => measure === 'groups').map(coreNsPerCopy);
  if (bare === undefined || all.length === 0) return [];
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return [
    {
      here: `Each necessary copy takes ${significant(least)} to ${significant(most)} ns of CPU time. To transfer a record through a bare ring takes ${significant(bare)} ns on two cores together. The ratio is ${times(least / bare)} to ${times(most / bare)}.`,
    },
  ];
}

function loadFindings(summary: Summary): Finding[] {
  return (['clients', 'outstanding'] as const).flatMap((measure) => {
    const counts = summary.xsOf(measure);
    const found = summary.seriesOf(measure).flatMap((name) => {
      const rates = counts.flatMap((x) => {
        const value = summary.median(measure, name, x);
        return value === undefined ? [] : [{ x, value }];
      });
      const best = rates.reduce((a, b) => (b.value > a.value ? b : a), rates[0]);
      const last = rates.at(-1)!;
      const what = measure === 'clients' ? 'clients' : 'messages in flight';
      return `${name} has its highest throughput with ${best.x} ${what} (${rate(best.value)}), and ${times(last.value / best.value)} of it with ${last.x}.`;
    });
    return found.length === 0 ? [] : [{ here: found.join(' ') }];
  });
}

export const scaling: Experiment = {
  name: NAME,
  title: 'Groups, clients and messages in flight',
  section: 'beyond the paper',
  about: `Groups of ${REPLICAS} on the base tree, ${PAYLOAD_BYTES} B. The first figure shows throughput at saturation and the cost of a message by the number of groups. The cost is the CPU time of all cores, divided by the least number of record copies that a message needs (into every replica of the entry group; into the log of every replica of every group on the path; into every replica of every group that it is forwarded to; a reply from each destination). The reference line is the cost of a record of that size through a bare ring. The second figure has ${GROUPS} groups and messages to ${DESTINATIONS} random ones, and varies the load: clients with one message each, and one client with many messages.`,
  systems: SYSTEMS,
  sessions: (plan) => [
    bareRing(plan),
    ...byGroups(plan),
    ...byLoad(plan, 'clients', plan.profile.clients, (clients) => ({ clients, outstanding: 1 })),
    ...byLoad(plan, 'outstanding', plan.profile.outstanding, (outstanding) => ({
      clients: 1,
      outstanding,
    })),
  ],
  figures: (summary) => {
    const bare = bareCopyNs(summary);
    const axis = (measure: string, label: string) => {
      const all = summary.xsOf(measure);
      const ticks = all.length > 9 ? all.filter((_, i) => (all.length - 1 - i) % 2 === 0) : all;
      return { label, kind: 'log', ticks } as const;
    };
    const groups = axis('groups', 'groups');
    const perSecond = { label: 'thousand messages/s', kind: 'log' } as const;
    const micros = { label: 'latency (µs)', kind: 'log' } as const;
    return [
      {
        name: 'scaling-groups',
        title: 'More groups, base tree',
        panels: [
          {
            title: 'Throughput at saturation',
            x: groups,
            y: perSecond,
            series: LINES.map((name) => summary.line('groups', name, 1000)),
          },
          {
            title: 'CPU time for each necessary copy',
            x: groups,
            y: { label: 'CPU time (ns)', kind: 'linear' },
            series: LINES.map((name) => summary.line('groups', name, 1, coreNsPerCopy)),
            ...(bare !== undefined && { reference: { y: bare, label: 'bare ring' } }),
          },
        ],
      },
      {
        name: 'scaling-load',
        title: `More load, ${GROUPS} groups, ${DESTINATIONS} random destinations`,
        panels: [
          {
            title: 'Clients, one message each',
            x: axis('clients', 'clients'),
            y: perSecond,
            series: summary.lines('clients', 1000),
          },
          {
            title: 'One client, many messages',
            x: axis('outstanding', 'messages in flight'),
            y: perSecond,
            series: summary.lines('outstanding', 1000),
          },
          {
            title: 'Latency of these messages',
            x: axis('outstanding', 'messages in flight'),
            y: micros,
            series: summary.lines('outstanding', 1000, medianLatency),
          },
        ],
      },
    ];
  },
  findings: (summary) => [
    ...groupsFinding(summary),
    ...copiesFinding(summary),
    ...loadFindings(summary),
  ],
};
