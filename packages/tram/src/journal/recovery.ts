/**
 * Recovery of a whole cluster from the journals of its hosts, into a new era. One *coordinator* runs it: the process that
 * starts the cluster or, across machines, one of the hosts. It is a generator without clock and I/O: it yields asks, to be
 * done side by side, and is given the answers; `undefined` means that a host can't be had. So the simulator runs this code.
 *
 *   1. promise  A new era E, above all that were promised, is promised by at least f+1 members of every group.
 *   2. survey   What do the journals have? Which era is used, E*: the highest one that every group has.
 *   3. plan     Top-down, what each group begins with (recovery-plan.ts).
 *   4. open     Hosts replay it and make their opening snapshots durable: at least f+1 members of every group.
 *   5. opened   Hosts mark the era as open, and remove older ones. Then clients are let in.
 *
 * An era is *present* in a group on a host once its opening snapshot, or a later snapshot that counts, is durable there.
 * It is *open* once it is present at f+1 members of every group.
 *
 * A member counts for f+1 only if some era of its group is present on its host: the empty disk of a host may be a replaced
 * one, which no longer shows what the host had made durable. So a cluster that starts for the first time, where all disks are
 * empty, needs all its hosts, and clients are let in only once all of them have marked its first era as open.
 *
 * A host may withdraw its promise, to join an era that a quorum runs (`joinEra`). If the survey shows that, the attempt ends.
 * So between the last promise and the first survey, f+1 members of every group are bound to E at the same time, and none of
 * them has memory. The members that still run an older era are too few to go on, or to let others join, from then on.
 *
 * docs/protocol.md ("Recovery") has the argument: why nothing acknowledged is lost, why each message is in all its groups or
 * in none, and why attempts may be interrupted or run side by side.
 */
import { TramError } from '../errors.js';
import { askAll, interrupted, type Recovering } from './asking.js';
import type { EraPlan, GroupPlan, Opening, Promised, Survey } from './recovery-asks.js';
import { planEra } from './recovery-plan.js';
import { type ClusterShape, membersOn, quorumOf } from './shape.js';

/** @internal */
export interface RecoverySettings {
  /** The id of the cluster if it starts for the first time. */
  readonly newClusterId: string;
  /** Go on if messages get lost: fewer than f+1 journals of a group can be had. A host may also say so: `Promised.acceptsLoss`. */
  readonly acceptLoss: boolean;
  /** Loss was accepted: one line for each thing that may be lost. */
  readonly onLoss: (losses: readonly string[]) => void;
}

/** @internal */
export interface Recovered {
  readonly era: number;
  readonly clusterId: string;
  /** The cluster had no journals: it starts for the first time. */
  readonly isFirst: boolean;
  /** Sessions of clients start here, above all that were found, so that ids of messages stay unique. */
  readonly firstSession: number;
  readonly losses: readonly string[];
}

/** An era has fewer clients than this that have connected after the last one that the journals show. */
const SESSIONS_APART = 65_536;
/**
 * Hosts that are missing have promised fewer eras than this above those that the others know of: it would take them that
 * many recoveries that all fail, and each is followed by a pause of a second. An era is a word, so there is room for half a million
 * such steps.
 */
const ERAS_APART = 4096;
/** How often coordinators that run side by side outbid each other. */
const ATTEMPTS_MAX = 8;

/**
 * @internal
 * @throws TRAM_RECOVERY_REFUSED, TRAM_JOURNAL_MISMATCH; TRAM_UNAVAILABLE: try again
 */
export function* recoverCluster(
  shape: ClusterShape,
  settings: RecoverySettings,
): Recovering<Recovered> {
  const { era, clusterId, hosts, mayLose } = yield* promiseEra(shape, settings);
  const surveys = yield* surveyHosts(shape, hosts, era);
  const { groups, losses, isFirst } = yield* planEra(shape, surveys);
  if (losses.length > 0) {
    if (!mayLose) throw refusal(losses);
    settings.onLoss(losses);
  }
  const firstSession = yield* openEra(shape, surveys, { era, clusterId, groups }, isFirst);
  return { era, clusterId, isFirst, firstSession, losses };
}

interface PromisedEra {
  readonly era: number;
  readonly clusterId: string;
  /** Those that have promised it. */
  readonly hosts: readonly number[];
  /** Loss was accepted before the era was chosen. */
  readonly mayLose: boolean;
}

/**
 * Chooses an era and gets it promised. No two coordinators open the same one: each needs f+1 members of every group for that,
 * so there is a host that has promised it to both. But a host promises an era only once, unless its disk is replaced in between.
 *
 * An empty disk is no journal, so a replaced one makes no difference as long as f+1 members of every group have journals: one of
 * these knows of every era that may have been opened. If an operator accepts loss, fewer will do. Then the hosts that know of the
 * last era may all be missing, or have new disks. So the era is far above all that the others know of. A host that comes back
 * has promised a lower one. It joins this one, and gets the state from the others. Whether loss is accepted must therefore be known
 * when the era is chosen: an operator who accepts it later is heard by the next attempt.
 */
function* promiseEra(shape: ClusterShape, settings: RecoverySettings): Recovering<PromisedEra> {
  const { newClusterId } = settings;
  let hosts = Array.from({ length: shape.hosts }, (_, host) => host);
  let era = 0;
  let clusterId = newClusterId;
  let mayLose = settings.acceptLoss;
  for (let attempt = 0; attempt <= ATTEMPTS_MAX; attempt++) {
    const asks = hosts.map((host) => ({ what: 'promise', host, era, clusterId }) as const);
    const answers = yield* askAll(asks);
    const had = hosts.filter((_, i) => answers[i] !== undefined);
    const promises = answers.filter((answer) => answer !== undefined);
    const isPromised = era > 0 && promises.every(({ isAccepted }) => isAccepted);
    if (!isPromised) mayLose ||= promises.some(({ acceptsLoss }) => acceptsLoss);
    if (!mayLose) requireQuorums(shape, had);
    if (isPromised) return { era, clusterId, hosts: had, mayLose };
    hosts = had;
    clusterId = clusterIdOf(shape, hosts, promises) ?? newClusterId;
    const known = Math.max(0, ...promises.map(({ promised }) => promised));
    era = known + (mayLose ? ERAS_APART : 1);
  }
  throw interrupted('others try to recover it at the same time');
}

/** @throws TRAM_RECOVERY_REFUSED */
function requireQuorums(shape: ClusterShape, had: readonly number[]): void {
  const losses: string[] = [];
  for (let group = 0; group < shape.overlay.groups; group++) {
    const members = membersOn(shape, group, (host) => had.includes(host));
    if (members >= quorumOf(shape)) continue;
    const missing = [...new Set(shape.hostsOf(group))].filter((host) => !had.includes(host));
    const names = missing.map((host) => shape.nameOf(host)).join(', ');
    losses.push(
      `g${group}: ${members} of its ${shape.replicas} members can be reached, and it needs ${quorumOf(shape)}: ${names} can't`,
    );
  }
  if (losses.length > 0) throw refusal(losses);
}

/** @throws TRAM_JOURNAL_MISMATCH */
function clusterIdOf(
  shape: ClusterShape,
  hosts: readonly number[],
  promises: readonly Promised[],
): string | undefined {
  const first = promises.findIndex(({ clusterId }) => clusterId !== undefined);
  const expected = promises[first]?.clusterId;
  for (const [i, { clusterId }] of promises.entries()) {
    if (clusterId === undefined || clusterId === expected) continue;
    throw new TramError(
      'TRAM_JOURNAL_MISMATCH',
      `the journals of ${shape.nameOf(hosts[first])} and ${shape.nameOf(hosts[i])} belong to different clusters`,
      { hint: 'Put the journal that belongs to this cluster in its place.' },
    );
  }
  return expected;
}

/** @throws TRAM_UNAVAILABLE if a host does not keep its promise */
function* surveyHosts(
  shape: ClusterShape,
  hosts: readonly number[],
  era: number,
): Recovering<ReadonlyMap<number, Survey>> {
  const answers = yield* askAll(hosts.map((host) => ({ what: 'survey', host }) as const));
  const surveys = new Map<number, Survey>();
  for (const [i, survey] of answers.entries()) {
    if (survey === undefined) continue;
    if (survey.promised !== era) {
      throw interrupted(`${shape.nameOf(hosts[i])} takes part in another one, or runs again`);
    }
    surveys.set(hosts[i], survey);
  }
  return surveys;
}

/** Returns where the sessions of clients start. */
function* openEra(
  shape: ClusterShape,
  surveys: ReadonlyMap<number, Survey>,
  { era, clusterId, groups }: EraPlan,
  isFirst: boolean,
): Recovering<number> {
  const hosts = [...surveys.keys()];
  const openings = yield* askAll(
    hosts.map((host) => {
      const plan: EraPlan = { era, clusterId, groups: groupsOn(shape, groups, host) };
      return { what: 'open', host, plan } as const;
    }),
  );
  const openedAt = (host: number, group: number): boolean =>
    openings[hosts.indexOf(host)]?.groups.includes(group) ?? false;
  requireMembers(shape, isFirst, openedAt, 'have made their opening snapshots durable');
  const firstSession = isFirst ? 1 : sessionAfter(surveys, openings);
  const marks = yield* askAll(
    hosts.map((host) => ({ what: 'opened', host, era, firstSession }) as const),
  );
  const isMarked = (host: number): boolean => marks[hosts.indexOf(host)]?.isMarked ?? false;
  requireMembers(shape, isFirst, isMarked, 'have marked the era as open');
  return firstSession;
}

/** Above all sessions of earlier eras: also of those from which no message was found. */
function sessionAfter(
  surveys: ReadonlyMap<number, Survey>,
  openings: readonly (Opening | undefined)[],
): number {
  const opened = [...surveys.values()].map(({ firstSession }) => firstSession);
  const found = openings.map((opening) => opening?.lastSession ?? 0);
  return Math.max(...opened, ...found) + SESSIONS_APART;
}

function groupsOn(
  shape: ClusterShape,
  groups: readonly GroupPlan[],
  host: number,
): readonly GroupPlan[] {
  return groups.filter(({ group }) => shape.hostsOf(group).includes(host));
}

/** A first era needs all members, any other f+1 of each group. @throws TRAM_UNAVAILABLE */
function requireMembers(
  shape: ClusterShape,
  isFirst: boolean,
  has: (host: number, group: number) => boolean,
  what: string,
): void {
  const needed = isFirst ? shape.replicas : quorumOf(shape);
  for (let group = 0; group < shape.overlay.groups; group++) {
    const members = membersOn(shape, group, (host) => has(host, group));
    if (members >= needed) continue;
    throw interrupted(`only ${members} members of g${group} ${what}, and ${needed} are needed`);
  }
}

function refusal(losses: readonly string[]): TramError {
  return new TramError(
    'TRAM_RECOVERY_REFUSED',
    `the cluster can't be recovered without loss:\n${losses.map((loss) => `  ${loss}`).join('\n')}`,
    {
      hint: 'Bring the missing journals back and start again. If they are gone for good, see `tram recover --help`.',
    },
  );
}
