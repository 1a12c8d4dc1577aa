/**
 * The plan of a simulated run: drawn from a seed, except for the values that options fix. Called by `simulate.ts`.
 *
 * A plan is data. The same seed and options give the same plan, and the same plan gives the same run, event for event.
 */

import {
  type Durability,
  type Order,
  PACE,
  type Pace,
  type Timing,
  type Transition,
} from 'tram-multicast/internal/protocol/edges.js';
import type { Sizes } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay, SHAPES } from 'tram-multicast/internal/protocol/overlay.js';
import { aimAtMark, type DurabilityPlan, drawDurability, replaceDisks } from './durability-plan.js';
import { Random } from './random.js';
import type { Weather } from './simulated-memory.js';

/** What happens to hosts with disks. */
export const FAULTS_OF_DISKS = [
  'power-cut',
  'some-power-cuts',
  'blackout',
  'cut-recovery',
  'host-kill',
  'lost-disk',
  'new-disk',
  'rotten-disk',
  'slow-disk',
  'failed-sync',
  'rival-recovery',
  'cut-at-mark',
] as const;

export const FAULTS = [
  'crash',
  'restart',
  'kill',
  'outage',
  'stop',
  'pause',
  'slow-replica',
  'suspicion',
  'rivals',
  'late-heartbeats',
  'slow-link',
  'broken-link',
  'link-down',
  'client-crash',
  'torn-writes',
  'tiny-rings',
  'bursts',
  'interruptions',
  'wrong-clocks',
  ...FAULTS_OF_DISKS,
] as const;

export type Fault = (typeof FAULTS)[number];

/** Replicas that share a host and its journal do not end one by one. */
export const FAULTS_WITHOUT_DISKS: readonly Fault[] = [
  'crash',
  'restart',
  'kill',
  'outage',
  'stop',
  'slow-replica',
];

/** The faults that happen at one moment. The others last for the whole run. */
export type Incident = Exclude<
  Fault,
  'torn-writes' | 'tiny-rings' | 'bursts' | 'interruptions' | 'wrong-clocks' | 'cut-recovery'
>;

/**
 * `simulated`: operations travel on links, and the memory of a killed participant stays within reach. `machines`: the
 * same, but it is out of reach until the participant restarts. `shared`: the memory of threads and processes.
 */
export const MEMORIES = ['simulated', 'machines', 'shared'] as const;

export type MemoryKind = (typeof MEMORIES)[number];

/** How often steps are interrupted between loads and stores, and for how long. */
export interface InterruptionPlan {
  /** The average number of points between two interruptions. */
  readonly everyPoints: number;
  /** At most so many participants wait in the middle of a step. */
  readonly depthMax: number;
  /** One of so many interruptions is long, or none if this is 0. */
  readonly longEvery: number;
}

/** The wall clock of a participant: what it shows more than a correct one. */
export interface WallClock {
  readonly offsetUs: number;
  /** 1 if it is right; 0 if it stands still. */
  readonly speed: number;
  readonly jumpAtUs: number;
  readonly jumpUs: number;
}

/** The service asks for ticks. */
export interface TickPlan {
  readonly everyUs: number;
  /** By replica; empty if all clocks are right. */
  readonly clocks: readonly WallClock[];
}

export interface PlannedIncident {
  readonly kind: Incident;
  readonly group: number;
  /** It hits the leader, if there is one, rather than `member`. */
  readonly hitsLeader: boolean;
  readonly member: number;
  /** It happens at this time or, if `on` is given, with the first such transition after it. */
  readonly atUs: number;
  readonly on?: Transition;
  /** The time between the transition and the incident, in which the effects of the transition arrive. */
  readonly graceUs?: number;
  /** It interrupts a step after so many more posts. */
  readonly afterPosts: number;
  readonly durationUs: number;
  /** Does the memory stay while the participant is down, even if the participant never uses it again? */
  readonly leavesMemory: boolean;
  /** The incident starts a sequence of faults that showed an error of the paper: see `Incidents`. */
  readonly isAmbush: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly memory: MemoryKind;
  readonly parents: readonly number[];
  readonly sizes: Sizes;
  readonly timing: Timing;
  readonly pace: Pace;
  readonly order: Order;
  /** Undefined if hosts have no disks. */
  readonly durability: DurabilityPlan | undefined;
  readonly weather: Weather;
  /** Undefined if steps are atomic. */
  readonly interruptions: InterruptionPlan | undefined;
  /** The average time between two steps of a participant. */
  readonly stepUs: number;
  readonly messages: number;
  readonly isBursty: boolean;
  /** The average time between two messages of all clients together. */
  readonly messageEveryUs: number;
  /** The share of messages that go to one group only. */
  readonly singleGroupPercent: number;
  /** The share of replies that make a client read another group at once: see `probes.ts`. */
  readonly probePercent: number;
  /** The size of the state of the service, in bytes, besides its head. */
  readonly serviceCells: number;
  /** The service fails on one of so many messages, or on none if this is 0. */
  readonly serviceFailsEvery: number;
  /** The service defers the replies to one of so many messages, or to none if this is 0. */
  readonly serviceDefersEvery: number;
  /** Undefined if the service asks for no ticks. */
  readonly ticks: TickPlan | undefined;
  /** The faults that may happen. */
  readonly faults: ReadonlySet<Fault>;
  readonly incidents: readonly PlannedIncident[];
}

/** Values that the caller fixes. All others are drawn. */
export interface Options {
  readonly groups?: number;
  readonly replicas?: number;
  readonly tree?: readonly number[];
  readonly clients?: number;
  readonly messages?: number;
  readonly payloadBytes?: number;
  readonly ringBytes?: number;
  readonly memory?: MemoryKind;
  readonly order?: Order;
  /** `none` unless it is given. */
  readonly durability?: Durability;
  /** Does the service ask for ticks? */
  readonly ticks?: boolean;
  /** Only these faults; an empty list means none. */
  readonly faults?: readonly Fault[];
  /** Incidents that follow a transition follow one of these. */
  readonly triggers?: readonly Transition[];
}

/** What shared memory does not suffer, because it has no links. */
const FAULTS_OF_LINKS: readonly Fault[] = ['slow-link', 'broken-link', 'link-down', 'torn-writes'];

/** Transitions at which a fault is most interesting. */
const TRIGGERS: readonly Transition[] = [
  'campaigned',
  'granted',
  'answered again',
  'adopted own log',
  'adopted a peer log',
  'led',
  'late member installed',
  'resumed',
  'resumed from a left snapshot',
  'recovered',
  'recovery found a leader',
  'snapshot served',
  'log truncated',
  'left behind',
  'write refused',
  'outbid a higher promise',
];

export function drawPlan(seed: number, options: Options): Plan {
  const random = new Random(seed);
  const faults = new Set<Fault>(options.faults ?? FAULTS);
  const memory = options.memory ?? drawMemory(random, faults);
  if (memory === 'shared') for (const fault of FAULTS_OF_LINKS) faults.delete(fault);
  const isDurable = options.durability !== undefined && options.durability !== 'none';
  for (const fault of isDurable ? FAULTS_WITHOUT_DISKS : FAULTS_OF_DISKS) faults.delete(fault);
  const allows = (fault: Fault, percent: number): boolean =>
    random.percent(percent) && faults.has(fault);

  const groups =
    options.tree?.length ??
    options.groups ??
    random.pick(isDurable ? DURABLE.groups : [1, 1, 2, 3, 3, 4, 5, 8]);
  const parents = options.tree ?? drawTree(random, groups);
  const replicas =
    options.replicas ?? random.pick(isDurable ? DURABLE.replicas : [1, 3, 3, 3, 3, 3, 5, 5, 7]);
  const clients = options.clients ?? random.between(1, 5);
  const messages =
    options.messages ?? (isDurable ? random.between(60, 120) : random.between(150, 300));
  // In these runs only followers are slow, so no message may wait long: see `Availability`.
  const isTimely = allows('slow-replica', 10);
  const isTiny = allows('tiny-rings', isTimely ? 70 : 40);
  const isTorn = allows('torn-writes', isTimely ? 0 : 70);
  const isBursty = allows('bursts', 50);
  const payloadBytesMax = options.payloadBytes ?? random.pick([0, 8, 64, 64, 200, 1000]);
  // The only member of a group may be killed as long as its log has its beginning.
  const ringBytes = replicas === 1 ? [65536] : [2048, 4096, 16384, 65536];
  const ring = (): number => options.ringBytes ?? (isTiny ? 0 : random.pick(ringBytes));

  const messageEveryUs = random.pick([2, 20, 40, 80]);
  const heartbeatUs = random.pick([50, 100, 200]);
  const incidents = drawIncidents(
    random,
    isTimely ? new Set(['slow-replica']) : faults,
    options.triggers,
    groups,
    replicas,
    messages * Math.max(20, messageEveryUs),
  );
  const plan: Plan = {
    seed,
    memory,
    parents,
    sizes: {
      groups,
      replicas,
      clients,
      payloadBytesMax,
      // May be too small for the replies of the service. Clients then learn only that the reply is too large.
      replyBytesMax: random.pick([0, 8, 16]),
      logBytes: ring(),
      inboxBytes: ring(),
      feedBytes: ring(),
      callsMax: random.between(1, isTimely ? 4 : 16),
      snapshotChunkBytes: random.pick([64, 256, 4096]),
      firstIndex: firstIndexOf(random.pick([0, 0, 2147483648 - 40, 4294967296 - 40]), isDurable),
      salt: { check: Math.imul(seed, 0x9e3779b1), tail: Math.imul(seed, 0x85ebca6b) },
    },
    timing: {
      heartbeatUs,
      restUs: heartbeatUs,
      quickUs: drawQuick(seed, heartbeatUs),
      suspectAfterUs: heartbeatUs * (isTimely ? 20 : random.between(4, 10)),
      askAgainUs: heartbeatUs * random.between(1, 3),
      backOffUs: heartbeatUs * random.between(1, 3),
      resendAfterUs: heartbeatUs * random.between(8, 20),
    },
    interruptions:
      !isTimely && (allows('interruptions', 20) || memory === 'shared')
        ? drawInterruptions(random)
        : undefined,
    pace: random.percent(50)
      ? PACE
      : { batchEntries: 16, parentEntries: 8, clientEntries: 4, backlogBytesMax: 2048 },
    weather: {
      delayUs: random.between(1, 5),
      jitterUs: random.between(0, 10),
      tornPercent: isTorn ? random.pick([10, 50, 90]) : 0,
      lateCompletionPercent: isTorn ? random.pick([0, 5, 30]) : 0,
    },
    stepUs: random.between(2, 8),
    messages,
    isBursty,
    messageEveryUs,
    singleGroupPercent: random.pick([0, 30, 60, 100]),
    serviceCells: random.pick([0, 0, 30, 500, 2000]),
    serviceFailsEvery: random.pick([0, 0, 0, 7]),
    probePercent: random.pick([0, 10, 30, 50]),
    order: drawOrder(random, options.order),
    durability: drawDurability(seed, options.durability, groups, replicas),
    serviceDefersEvery: isTimely ? 0 : drawDefers(seed),
    ticks: drawTicks(seed, options.ticks, groups * replicas, faults),
    faults,
    incidents,
  };
  return aimAtMark(replaceDisks(plan));
}

/** An order that is given does not change what else is drawn, so that both orders can be tried on the same runs. */
function drawOrder(random: Random, given: Order | undefined): Order {
  const drawn = random.pick(['strict', 'strict', 'multicast'] as const);
  return given ?? drawn;
}

/** Runs with power cuts are longer than others, so they are smaller. */
const DURABLE = { groups: [1, 2, 2, 3, 3, 4, 5], replicas: [1, 3, 3, 3, 3, 3, 5] } as const;

/** As in production: with a journal, a member that has delivered nothing lacks the state before the first entry. */
function firstIndexOf(drawn: number, isDurable: boolean): number {
  return isDurable ? Math.max(2, drawn) : drawn;
}

/** From a sequence of its own, so that the rest of a plan does not depend on it. */
function drawDefers(seed: number): number {
  return new Random(seed + DEFERS_SEQUENCE).pick([0, 0, 2, 5]);
}

/** From a sequence of its own, so that the rest of a plan does not depend on it. */
function drawQuick(seed: number, heartbeatUs: number): number {
  return heartbeatUs * new Random(seed + QUICK_SEQUENCE).pick([0, 0.1, 0.3, 1]);
}

/** From a sequence of its own, so that the rest of a plan does not depend on it. */
function drawTicks(
  seed: number,
  wanted: boolean | undefined,
  replicas: number,
  faults: ReadonlySet<Fault>,
): TickPlan | undefined {
  const random = new Random(seed + TICKS_SEQUENCE);
  const drawn = random.percent(TICKS_PERCENT);
  if (!(wanted ?? drawn)) return undefined;
  const everyUs = random.pick([100, 300, 1000]);
  const isWrong = random.percent(80) && faults.has('wrong-clocks');
  const clocks = Array.from({ length: isWrong ? replicas : 0 }, () => drawClock(random));
  return { everyUs, clocks };
}

function drawClock(random: Random): WallClock {
  return {
    offsetUs: random.pick([0, 0, 0, 300, -300, 5000, -5000, HOUR_US, -HOUR_US]),
    speed: random.pick([1, 1, 1, 0, 0.9, 1.1, 10]),
    jumpAtUs: random.below(20_000),
    jumpUs: random.pick([0, 0, 500, -500, HOUR_US, -HOUR_US]),
  };
}

const HOUR_US = 3_600_000_000;
const TICKS_PERCENT = 40;
const TICKS_SEQUENCE = 2 ** 40;
const DEFERS_SEQUENCE = 2 ** 41;
const QUICK_SEQUENCE = 2 ** 44;

/** Without interruptions, the steps on shared memory would be atomic, which shows nothing new. */
function drawMemory(random: Random, faults: ReadonlySet<Fault>): MemoryKind {
  const drawn = random.pick(['simulated', 'simulated', 'simulated', 'machines', 'shared'] as const);
  return drawn === 'shared' && !faults.has('interruptions') ? 'simulated' : drawn;
}

function drawInterruptions(random: Random): InterruptionPlan {
  const everyPoints = random.pick([40, 100, 400, 2000]);
  return {
    everyPoints,
    depthMax: random.pick([1, 1, 2, 3]),
    longEvery: random.pick(everyPoints <= 100 ? [0, 1000] : [0, 100, 20]),
  };
}

function drawTree(random: Random, groups: number): number[] {
  const shapes = [SHAPES.base, SHAPES.breadth, SHAPES.depth];
  const choice = random.below(shapes.length + 1);
  if (choice < shapes.length) return shapes[choice](groups);
  const parents = Array.from({ length: groups }, (_, group) =>
    group === 0 ? -1 : random.below(group),
  );
  return [...new Overlay(parents).parents];
}

function drawIncidents(
  random: Random,
  faults: ReadonlySet<Fault>,
  triggers: readonly Transition[] | undefined,
  groups: number,
  replicas: number,
  horizonUs: number,
): PlannedIncident[] {
  const weights: [Incident, number][] = [
    ['crash', 4],
    ['restart', 6],
    ['kill', 6],
    ['outage', replicas === 1 ? 12 : 3],
    ['stop', 4],
    ['pause', 6],
    ['slow-replica', 2],
    ['suspicion', 4],
    ['rivals', 3],
    ['late-heartbeats', 2],
    ['slow-link', 2],
    ['broken-link', 2],
    ['link-down', 2],
    ['client-crash', 1],
    ['power-cut', 6],
    ['some-power-cuts', 6],
    ['blackout', 8],
    ['host-kill', 4],
    ['lost-disk', 3],
    ['rotten-disk', 2],
    ['slow-disk', 4],
    ['failed-sync', 2],
    ['rival-recovery', 3],
  ];
  const kinds = weights
    .filter(([kind]) => faults.has(kind))
    .flatMap(([kind, weight]) => Array<Incident>(weight).fill(kind));
  const incidents: PlannedIncident[] = [];
  if (kinds.length === 0) return incidents;
  const count = random.between(3, 14);
  // In half of the runs most incidents hit one group: many faults in one group find more errors than a few in each.
  const target = random.percent(50) ? random.below(groups) : -1;
  const durationsUs = faults.has('blackout') ? [20, 200, 1000, 2000] : [20, 200, 1000, 4000, 10000];
  let atUs = 0;
  for (let i = 0; i < count; i++) {
    atUs += random.below((horizonUs * 2) / count);
    const isTriggered = random.percent(triggers ? 80 : 55);
    incidents.push({
      kind: random.pick(kinds),
      group: target >= 0 && random.percent(80) ? target : random.below(groups),
      hitsLeader: random.percent(50),
      member: random.below(replicas),
      atUs,
      ...(isTriggered ? { on: random.pick(triggers ?? TRIGGERS) } : {}),
      afterPosts: random.below(8),
      durationUs: random.pick(durationsUs) + random.below(200),
      leavesMemory: random.percent(50),
      isAmbush: random.percent(40),
    });
  }
  return incidents;
}
