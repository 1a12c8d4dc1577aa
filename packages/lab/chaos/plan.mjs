/**
 * The plan of a chaos round, drawn from a seed. Called by `main.mjs`. A plan is pure data; the same options give the same
 * plan.
 *
 * Faults are distributed over *lanes*. Lanes run concurrently; the faults of a lane run one after the other. Hosts that run
 * members of the same groups share a lane, and a lane continues only when its host is back. So no group ever misses more
 * than one of its three members, while hosts of different groups fail at the same time. Requested leader changes and client
 * faults have lanes of their own.
 */
import { Random } from '../dist/sim/random.js';

export const GROUPS = 8;
export const REPLICAS = 3;

/**
 * @typedef {'kill-leader-fresh' | 'kill-leader-resume' | 'kill-follower-fresh' | 'kill-follower-resume' | 'kill-again'
 *   | 'stop-leader' | 'stop-follower' | 'kill-stopped'} HostFaultKind
 * @typedef {'cut-leader' | 'cut-follower' | 'cut-leader-group' | 'cut-pair' | 'cut-one-way' | 'kill-cut'} NetworkFaultKind
 * @typedef {'lead' | 'rivals'} LeadFaultKind
 * @typedef {'client-kill' | 'client-stop'} ClientFaultKind
 * @typedef {HostFaultKind | NetworkFaultKind | LeadFaultKind | ClientFaultKind} FaultKind
 * @typedef {'processes' | 'machines'} ChaosMemory
 * @typedef {import('tram-multicast/check').PromisedOrder} Order
 */

/**
 * A fault targets a role. Which host has that role is known only when the fault strikes.
 * @typedef {object} Fault
 * @property {FaultKind} kind
 * @property {number} pauseMs  between the previous fault of the lane and this one
 * @property {number} group    whose leader or follower it targets
 * @property {number} draw     chooses among several targets
 * @property {number} stopMs   how long a process is stopped, or a network is cut
 * @property {number} downMs   how long a host that was killed stays down
 * @property {boolean} fresh   whether that host begins with empty memory
 * @property {number} againMs  from a restart to the second kill
 */

/**
 * Small rings wrap and fill up often, and a member that was away soon needs a snapshot.
 * @typedef {{ logBytes: number, inboxBytes: number, feedBytes: number }} RingSizes
 */

/**
 * @typedef {object} RoundPlan
 * @property {ChaosMemory} memory
 * @property {string} tree
 * @property {number} hosts
 * @property {Order} order
 * @property {number} seed      of this round, for its clients
 * @property {RingSizes} rings
 * @property {readonly (readonly Fault[])[]} hostLanes
 * @property {readonly Fault[]} leadLane
 * @property {readonly Fault[]} clientLane
 */

/** The description of each kind in the summary. @type {Readonly<Record<FaultKind, string>>} */
export const KINDS = {
  'kill-leader-fresh': "leader's host killed, restarted with empty memory",
  'kill-leader-resume': "leader's host killed, restarted with its memory",
  'kill-follower-fresh': "follower's host killed, restarted with empty memory",
  'kill-follower-resume': "follower's host killed, restarted with its memory",
  'kill-again': 'host killed again during its restart',
  'stop-leader': "leader's host stopped",
  'stop-follower': "follower's host stopped",
  'kill-stopped': 'stopped host killed',
  'cut-leader': "leader's host cut off from all machines",
  'cut-follower': "follower's host cut off from all machines",
  'cut-leader-group': "leader's host cut off from other hosts only",
  'cut-pair': 'two hosts cut off from each other',
  'cut-one-way': 'host cut off in one direction',
  'kill-cut': 'host cut off and killed',
  lead: 'leader change requested',
  rivals: 'several replicas asked to lead at once',
  'client-kill': 'client killed',
  'client-stop': 'client stopped',
};

const NETWORK_KINDS = new Set(Object.keys(KINDS).filter((kind) => /^cut-|-cut$/.test(kind)));
const STOP_MS = { least: 5, most: 3000 };
const DOWN_MS = { least: 1, most: 1500 };
const AGAIN_MS = { least: 1, most: 600 };
/** The share of a round that is pauses between faults. The rest is faults and recovery. */
const PAUSE_SHARE = 0.4;
/** @type {readonly RingSizes[]} */
const RINGS = [
  { logBytes: 16_384, inboxBytes: 8192, feedBytes: 8192 },
  { logBytes: 65_536, inboxBytes: 8192, feedBytes: 16_384 },
  { logBytes: 262_144, inboxBytes: 32_768, feedBytes: 65_536 },
];

/** Processes that share memory have no network to cut. @param {ChaosMemory} memory @returns {FaultKind[]} */
export function kindsOf(memory) {
  const kinds = /** @type {FaultKind[]} */ (Object.keys(KINDS));
  return memory === 'machines' ? kinds : kinds.filter((kind) => !NETWORK_KINDS.has(kind));
}

/**
 * @param {object} options
 * @param {ChaosMemory} [options.memory]
 * @param {number} options.seed
 * @param {string} options.tree
 * @param {number} options.hosts
 * @param {Order} [options.order]
 * @param {number} options.faults
 * @param {number} options.seconds
 * @returns {RoundPlan}
 */
export function planRound(options) {
  const { memory = 'processes', order = 'strict', seed, tree, hosts, faults, seconds } = options;
  const random = new Random(mix(seed, `${tree}/${hosts}`));
  const kinds = drawKinds(random, kindsOf(memory), faults);
  const laneCount = hosts / REPLICAS;
  const hostKinds = kinds.filter((kind) => isHostFault(kind));
  const ofLane = (/** @type {number} */ lane) =>
    hostKinds.filter((_, place) => place % laneCount === lane);
  const lane = (/** @type {FaultKind[]} */ laneKinds, /** @type {number[]} */ groups) =>
    laneKinds.map((kind) =>
      drawFault(random, kind, groups, (PAUSE_SHARE * seconds * 1000) / laneKinds.length),
    );
  const allGroups = groupsOfLane(0, 1);
  return {
    memory,
    tree,
    hosts,
    order,
    seed: random.next(),
    rings: random.pick(RINGS),
    hostLanes: Array.from({ length: laneCount }, (_, place) =>
      lane(ofLane(place), groupsOfLane(place, laneCount)),
    ),
    leadLane: lane(
      kinds.filter((kind) => kind === 'lead' || kind === 'rivals'),
      allGroups,
    ),
    clientLane: lane(
      kinds.filter((kind) => kind.startsWith('client-')),
      allGroups,
    ),
  };
}

/** Draws all kinds equally often, in random order. @param {Random} random @param {FaultKind[]} kinds @param {number} count */
function drawKinds(random, kinds, count) {
  /** @type {FaultKind[]} */
  const drawn = [];
  while (drawn.length < count) drawn.push(...shuffled(random, kinds));
  return drawn.slice(0, count);
}

/** @param {FaultKind} kind */
function isHostFault(kind) {
  return ['kill-', 'stop-', 'cut-'].some((start) => kind.startsWith(start));
}

/**
 * Mirrors how the cluster assigns groups to hosts: `ArenaMap.hostOf`.
 * @param {number} lane
 * @param {number} laneCount
 */
function groupsOfLane(lane, laneCount) {
  return [...Array(GROUPS).keys()].filter((group) => group % laneCount === lane);
}

/**
 * @param {Random} random
 * @param {FaultKind} kind
 * @param {readonly number[]} groups
 * @param {number} meanPauseMs
 * @returns {Fault}
 */
function drawFault(random, kind, groups, meanPauseMs) {
  return {
    kind,
    pauseMs: random.between(0, Math.round(2 * meanPauseMs)),
    group: random.pick(groups),
    draw: random.next(),
    stopMs: durationOf(random, STOP_MS),
    downMs: durationOf(random, DOWN_MS),
    fresh: kind.endsWith('-fresh') || (!kind.endsWith('-resume') && random.percent(50)),
    againMs: durationOf(random, AGAIN_MS),
  };
}

/** Draws a duration, uniformly on a logarithmic scale. @param {Random} random @param {{ least: number, most: number }} range */
export function durationOf(random, { least, most }) {
  return Math.round(least * (most / least) ** (random.below(1001) / 1000));
}

/** @template T @param {Random} random @param {readonly T[]} values @returns {T[]} */
function shuffled(random, values) {
  const left = [...values];
  return values.map(() => left.splice(random.below(left.length), 1)[0]);
}

/** A seed of its own for each text. @param {number} seed @param {string} text */
export function mix(seed, text) {
  let mixed = seed | 0;
  for (const character of text) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x01000193);
  return mixed >>> 0;
}
