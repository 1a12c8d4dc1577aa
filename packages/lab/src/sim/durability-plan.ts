/**
 * The plan of the disks of a simulated run: what the cluster promises to survive, which replicas share a host and its disk,
 * and how small and slow everything about a journal is. Drawn by `plan.ts`, from a sequence of its own.
 */
import type { Durability } from 'tram-multicast/internal/protocol/edges.js';
import { Random } from './random.js';

export interface DurabilityPlan {
  readonly mode: Exclude<Durability, 'none'>;
  /** By replica: its host. Hosts are numbered from 0 on, and each has a replica. */
  readonly hostOf: readonly number[];
  /** So small that snapshots are taken, count and replace segments all the time. */
  readonly snapshotBytes: number;
  readonly segmentBytes: number;
  /** How many times larger than necessary the ring is between the replicas of a host and its journal. */
  readonly ringFactor: number;
  /** How long a sync takes at most, by host. */
  readonly syncUs: readonly number[];
  /** With `everySecond`: the second. */
  readonly syncEveryUs: number;
  /** How long a host that recovers takes for each thing that it is asked. */
  readonly askUs: number;
  /** The share of recoveries during which the power is cut again. */
  readonly cutsRecoveryPercent: number;
}

const SEQUENCE = 2 ** 42;

export function drawDurability(
  seed: number,
  mode: Durability | undefined,
  groups: number,
  replicas: number,
): DurabilityPlan | undefined {
  if (mode === undefined || mode === 'none') return undefined;
  const random = new Random(seed + SEQUENCE);
  const hostOf = drawHosts(random, groups, replicas);
  const hosts = Math.max(...hostOf) + 1;
  const syncUs = random.pick([5, 20, 80]);
  return {
    mode,
    hostOf,
    snapshotBytes: random.pick([200, 1000, 4000, 1_000_000]),
    segmentBytes: random.pick([2048, 8192, 32_768]),
    ringFactor: random.pick([1, 1, 4]),
    syncUs: Array.from({ length: hosts }, () => syncUs * random.pick([1, 1, 1, 5])),
    syncEveryUs: random.pick([200, 1000, 5000]),
    askUs: random.pick([5, 20, 100]),
    cutsRecoveryPercent: random.pick([0, 0, 30, 60]),
  };
}

function drawHosts(random: Random, groups: number, replicas: number): number[] {
  const all = Array.from({ length: groups * replicas }, (_, replica) => replica);
  switch (random.below(6)) {
    case 0:
      // Each replica has its own.
      return all;
    case 1:
      // Fewer hosts than members of a group: some of them share one.
      return all.map((replica) => replica % Math.max(1, (replicas >> 1) + 1));
    case 2:
      return numbered(all.map(() => random.below(replicas + 1)));
    default:
      // As on machines: each host has one member of every group.
      return all.map((replica) => replica % replicas);
  }
}

/** Hosts without a replica are left out. */
function numbered(hostOf: readonly number[]): number[] {
  const hosts = [...new Set(hostOf)];
  return hostOf.map((host) => hosts.indexOf(host));
}
