/** Measures how many messages per second one thread orders without faults. Called by `tram-lab sim --throughput`. */
import { PACE } from 'tram-multicast/internal/protocol/edges.js';
import { SHAPES } from 'tram-multicast/internal/protocol/overlay.js';
import { guarded } from './ledger.js';
import type { Plan } from './plan.js';
import { World } from './world.js';

const WARM_UP_MS = 1000;
const MEASURED_MS = 3000;
/** Simulated time between two readings of the clock. */
const SLICE_US = 50;
const GROUPS = 8;
const RING_BYTES = 1 << 18;

const PLAN: Plan = {
  seed: 1,
  memory: 'simulated',
  durability: undefined,
  order: 'multicast',
  parents: SHAPES.base(GROUPS),
  sizes: {
    groups: GROUPS,
    replicas: 3,
    clients: 8,
    payloadBytesMax: 64,
    replyBytesMax: 16,
    logBytes: RING_BYTES,
    inboxBytes: RING_BYTES,
    feedBytes: RING_BYTES,
    callsMax: 256,
    snapshotChunkBytes: 4096,
    firstIndex: 0,
    salt: { check: 1, tail: 2 },
  },
  timing: {
    heartbeatUs: 1000,
    restUs: 1000,
    quickUs: 250,
    suspectAfterUs: 10_000,
    askAgainUs: 1000,
    backOffUs: 1000,
    resendAfterUs: 10_000,
  },
  pace: PACE,
  weather: { delayUs: 2, jitterUs: 1, tornPercent: 0, lateCompletionPercent: 0 },
  interruptions: undefined,
  stepUs: 4,
  messages: Number.MAX_SAFE_INTEGER,
  isBursty: false,
  messageEveryUs: 0,
  singleGroupPercent: 100,
  probePercent: 0,
  serviceCells: 0,
  serviceFailsEvery: 0,
  serviceDefersEvery: 0,
  ticks: undefined,
  faults: new Set(),
  incidents: [],
};

export interface Throughput {
  readonly conditions: string;
  readonly messages: number;
  readonly wallMs: number;
  readonly messagesPerSecond: number;
}

/** @param clock  milliseconds of wall time */
export function measure(clock: () => number): Throughput {
  const world = new World(PLAN, { saturates: true, keepsHistory: false });
  runFor(world, clock, WARM_UP_MS);
  const before = ordered(world);
  const wallMs = runFor(world, clock, MEASURED_MS);
  const messages = ordered(world) - before;
  const { groups, replicas, clients, callsMax, payloadBytesMax } = PLAN.sizes;
  return {
    conditions:
      `${groups} groups of ${replicas} replicas on the base tree, ${clients} clients with up to ` +
      `${callsMax} unanswered messages each, to one group, payloads up to ${payloadBytesMax} bytes, ` +
      `no faults, one thread, measured for ${MEASURED_MS / 1000} s after ${WARM_UP_MS / 1000} s of warm-up`,
    messages,
    wallMs,
    messagesPerSecond: Math.round((messages / wallMs) * 1000),
  };
}

function runFor(world: World, clock: () => number, durationMs: number): number {
  const startedMs = clock();
  let elapsedMs = 0;
  while (elapsedMs < durationMs) {
    const untilUs = world.nowUs + SLICE_US;
    guarded(() => world.runUntil(() => world.nowUs >= untilUs));
    elapsedMs = clock() - startedMs;
  }
  return elapsedMs;
}

function ordered(world: World): number {
  return world.ledger.orders.reduce((sum, order) => sum + order.length, 0);
}
