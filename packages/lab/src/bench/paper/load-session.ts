/** Sessions on a system under load: latency with one message at a time, throughput at saturation or at a given load. */
import type { DestinationSet } from '../load/destinations.js';
import { measure, rateOf } from '../load/measure.js';
import { climb, type Rung } from '../load/saturation.js';
import type { Measurement, RunningSystem, System } from '../systems/system.js';
import type { Session, Task } from './experiment.js';
import type { Profile } from './profiles.js';
import type { Details, Outcome, Point } from './results.js';

export interface Workload {
  readonly sets: readonly DestinationSet[];
  readonly payloadBytes: number;
}

/** Measures one point on the running system. */
export interface LoadTask extends Task {
  readonly workload: Workload;
  take(running: RunningSystem): Promise<Outcome>;
}

export interface LoadSessionOptions {
  readonly system: System;
  readonly profile: Profile;
  readonly groups: number;
  readonly replicas: number;
  /** All loads that the tasks may use. */
  readonly rungs: readonly Rung[];
  readonly tasks: readonly LoadTask[];
}

const ALONE: Rung = { clients: 1, outstanding: 1 };
/** Clients start and end. */
const LOAD_SECONDS = 0.13;
const START_SECONDS = 0.7;
/** The average number of rungs that a search climbs beyond its patience. */
const RUNGS_CLIMBED = 1.5;

export function loadSession(options: LoadSessionOptions): Session {
  const { system, profile, groups, replicas, rungs, tasks } = options;
  const { warmUpSeconds, seconds } = profile.startUp;
  const setup = {
    groups,
    replicas,
    clientsMax: Math.max(1, ...rungs.map(({ clients }) => clients)),
    outstandingMax: Math.max(1, ...rungs.map(({ outstanding }) => outstanding)),
    payloadBytesMax: Math.max(...tasks.map(({ workload }) => workload.payloadBytes)),
  };
  return {
    system: system.name,
    startSeconds: (system.startSeconds ?? START_SECONDS) + LOAD_SECONDS + warmUpSeconds + seconds,
    tasks,
    start: async () => {
      const running = await system.start(setup);
      try {
        // A warm-up: the first measurement would include compilation.
        await running.measure({ ...rungs[0], ...tasks[0].workload, ...profile.startUp });
      } catch (error) {
        await running.close();
        throw error;
      }
      return { take: (task) => (task as LoadTask).take(running), close: () => running.close() };
    },
  };
}

/** The median latency of one client with one message at a time. */
export function latencyTask(point: Point, workload: Workload, profile: Profile): LoadTask {
  return {
    point,
    workload,
    seconds: loadSeconds(profile),
    take: async (running) => {
      const measurement = await measure(running, { ...workload, ...ALONE, ...profile.timing });
      return { value: measurement.latencyNsP50, details: detailsOf(measurement, ALONE) };
    },
  };
}

/** Throughput at a given load. */
export function loadTask(point: Point, workload: Workload, profile: Profile, rung: Rung): LoadTask {
  return {
    point,
    workload,
    seconds: loadSeconds(profile),
    take: async (running) => {
      const measurement = await measure(running, { ...workload, ...rung, ...profile.timing });
      return { value: rateOf(measurement), details: detailsOf(measurement, rung) };
    },
  };
}

/** Throughput at saturation. */
export function throughputTask(
  point: Point,
  workload: Workload,
  profile: Profile,
  ladder: readonly Rung[] = profile.ladder,
  more: Details = {},
): LoadTask {
  const rungs = Math.min(ladder.length, profile.patience + RUNGS_CLIMBED);
  return {
    point,
    workload,
    seconds: rungs * loadSeconds(profile),
    take: async (running) => {
      const { rung, outcome, tried, isSaturated } = await climb(
        ladder,
        profile.patience,
        (next) => measure(running, { ...workload, ...next, ...profile.timing }),
        rateOf,
      );
      const details = { ...detailsOf(outcome, rung), isSaturated, tried, ...more };
      return { value: rateOf(outcome), details };
    },
  };
}

function loadSeconds({ timing }: Profile): number {
  return timing.warmUpSeconds + timing.seconds + LOAD_SECONDS;
}

function detailsOf(measurement: Measurement, load: Rung): Details {
  return {
    latencyNs: {
      p50: measurement.latencyNsP50,
      p90: measurement.latencyNsP90,
      p99: measurement.latencyNsP99,
      p999: measurement.latencyNsP999,
      max: measurement.latencyNsMax,
    },
    coresUsed: measurement.coresUsed,
    load: { clients: load.clients, outstanding: load.outstanding },
  };
}
