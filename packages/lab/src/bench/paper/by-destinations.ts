/**
 * Latency and throughput by the number of destinations: the sessions and panels that several experiments share. Called by the
 * experiments on destinations, message passing and machines.
 */
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import type { Panel } from '../figures/panel.js';
import { destinationSets, type Pattern } from '../load/destinations.js';
import type { Plan, Session } from './experiment.js';
import { latencyTask, loadSession, throughputTask } from './load-session.js';
import type { Summary } from './summary.js';
import type { SystemName } from './systems.js';

export const GROUPS = 8;
export const PAYLOAD_BYTES = 64;

/** The tree in which destinations are adjacent. RamCast has no tree and gets the workload of the base tree. */
const TREES: Partial<Record<SystemName, string>> = {
  'TRAM base': 'base',
  'TRAM breadth': 'breadth',
  'TRAM depth': 'depth',
};

/** A system that is compared. */
interface Member {
  readonly name: SystemName;
  /** The name of its line, if it is not that of the system. */
  readonly series?: string;
  readonly replicas: number;
}

/** Measures latency and throughput of systems for every number of destinations. */
export function sessionsByDestinations(
  experiment: string,
  { profile, systems }: Plan,
  memory: Plan['memory'],
  pattern: Pattern,
  members: readonly Member[],
): Session[] {
  return members.flatMap(({ name, series = name, replicas }) => {
    const make = systems[name];
    if (make === undefined) return [];
    const overlay = new Overlay(parseTree(TREES[name] ?? 'base', GROUPS));
    const tasks = profile.destinations.flatMap((count) => {
      const workload = {
        sets: destinationSets(overlay, pattern, count),
        payloadBytes: PAYLOAD_BYTES,
      };
      const conditions = {
        ...{ memory, groups: GROUPS, replicas, payloadBytes: PAYLOAD_BYTES, pattern },
        ...profile.timing,
      };
      const point = { experiment, system: name, series, x: count, conditions };
      return [
        latencyTask({ ...point, measure: 'latency' }, workload, profile),
        throughputTask({ ...point, measure: 'throughput' }, workload, profile),
      ];
    });
    const system = make(memory);
    return [
      loadSession({ system, profile, groups: GROUPS, replicas, rungs: profile.ladder, tasks }),
    ];
  });
}

export function destinationsAxis(summary: Summary) {
  const ticks = summary.xsOf('latency');
  return { label: 'destinations', kind: 'linear', ticks } as const;
}

export function latencyPanel(summary: Summary, kind: 'linear' | 'log'): Panel {
  return {
    title: 'Latency, one client',
    x: destinationsAxis(summary),
    y: { label: 'latency (µs)', kind },
    series: summary.lines('latency', 1000),
  };
}

export function throughputPanel(summary: Summary): Panel {
  return {
    title: 'Throughput at saturation',
    x: destinationsAxis(summary),
    y: { label: 'thousand messages/s', kind: 'log' },
    series: summary.lines('throughput', 1000),
  };
}
