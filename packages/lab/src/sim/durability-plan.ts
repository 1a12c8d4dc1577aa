/**
 * The plan of the disks of a simulated run: what the cluster promises to survive, which replicas share a host and its disk,
 * and how small and slow everything about a journal is. Drawn by `plan.ts`, from a sequence of its own.
 */
import type { Durability } from 'tram-multicast/internal/protocol/edges.js';
import type { Incident, Plan } from './plan.js';
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

/**
 * Some plans get another course, which leads to a recovery from snapshots at marks: see `mark-ambush.ts`. Which ones is drawn from
 * a sequence of its own, so that all others stay as they are. (Seeds of regressions and of mutations are among the others.)
 */
export function aimAtMark(plan: Plan): Plan {
  const { seed, durability, sizes, faults } = plan;
  const random = new Random(seed + MARK_SEQUENCE);
  const isChosen = random.percent(MARK_PERCENT);
  if (!isChosen || durability === undefined || !faults.has('cut-at-mark')) return plan;
  if (sizes.groups < 2 || sizes.replicas < 3) return plan;
  const hostOf = durability.hostOf.map((_, replica) => replica % sizes.replicas);
  const syncUs = Array.from({ length: sizes.replicas }, () => random.pick([5, 20]));
  return {
    ...plan,
    // No other snapshots count meanwhile.
    durability: { ...durability, hostOf, syncUs, snapshotBytes: 1_000_000 },
    // So small that a host that was away finds what it has missed neither in a log nor in a backlog.
    sizes: { ...sizes, logBytes: 2048 },
    pace: { ...plan.pace, backlogBytesMax: 256 },
    messages: 250,
    messageEveryUs: 60,
    singleGroupPercent: 0,
    incidents: [
      {
        kind: 'cut-at-mark',
        group: 0,
        hitsLeader: false,
        member: random.below(sizes.replicas),
        atUs: random.between(200, 1000),
        afterPosts: 0,
        durationUs: random.between(2000, 5000),
        leavesMemory: false,
        isAmbush: false,
      },
    ],
  };
}

/**
 * In some plans, hosts whose process ends, or whose disk is lost, come back with an empty disk and with their memory. Which ones
 * is drawn from a sequence of its own, so that all others stay as they are.
 */
export function replaceDisks(plan: Plan): Plan {
  const { seed, durability, faults, incidents } = plan;
  const isChosen = new Random(seed + NEW_DISK_SEQUENCE).percent(NEW_DISK_PERCENT);
  if (!isChosen || durability === undefined || !faults.has('new-disk')) return plan;
  return {
    ...plan,
    incidents: incidents.map((incident) =>
      REPLACED.includes(incident.kind) ? { ...incident, kind: 'new-disk' } : incident,
    ),
  };
}

const NEW_DISK_SEQUENCE = 2 ** 46;
const NEW_DISK_PERCENT = 10;
const REPLACED: readonly Incident[] = ['host-kill', 'lost-disk', 'rotten-disk'];

const MARK_SEQUENCE = 2 ** 45;
const MARK_PERCENT = 15;

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
