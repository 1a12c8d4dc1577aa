/**
 * What a host with a journal publishes of itself, in its line of its own arena; and `nextStep`, by which a host without memory
 * decides what to do, from what the others publish. Such a host runs its replicas in an era of the others only as members
 * that have lost their memory. If too few others have their memory, the cluster is to be recovered from the journals.
 */

import { type ClusterShape, membersOn, quorumOf } from '../../journal/shape.js';
import { HOST, STAGE } from '../../memory/arena.js';

const CLUSTER_ID_WORDS = 4;

/** One of `STAGE`, and what goes with it. */
export interface Standing {
  readonly stage: number;
  /** The era in which it runs its replicas; 0 if it does not. */
  readonly era: number;
  readonly firstSession: number;
  /** As the journals have it. */
  readonly clusterId: string;
  /** It runs: a quorum of the group takes part. Otherwise: its journal has something of the group. */
  hasGroup(group: number): boolean;
}

/** @param line  the words of a host's line */
export function standingIn(line: Int32Array): Standing | undefined {
  const stage = line[HOST.stage];
  if (stage === STAGE.none) return undefined;
  const hasGroup = (group: number): boolean =>
    ((line[HOST.groups + (group >> 5)] >>> (group & 31)) & 1) === 1;
  return { stage, ...eraIn(line), hasGroup };
}

/** An era, and what all hosts that run in it know of it. */
export type Era = Pick<Standing, 'era' | 'firstSession' | 'clusterId'>;

export function eraIn(line: Int32Array): Era {
  const id = line.slice(HOST.clusterId, HOST.clusterId + CLUSTER_ID_WORDS);
  return {
    era: line[HOST.era],
    firstSession: line[HOST.firstSession],
    clusterId: Buffer.from(id.buffer).toString('hex'),
  };
}

/** @param line  of the host that runs in it */
export function noteEra(line: Int32Array, { era, firstSession, clusterId }: Era): void {
  const id = Buffer.from(clusterId, 'hex');
  for (let i = 0; i < CLUSTER_ID_WORDS; i++) line[HOST.clusterId + i] = id.readInt32LE(i * 4);
  line[HOST.firstSession] = firstSession;
  line[HOST.era] = era;
}

/** @param at  where the host's line is in its arena */
export function publishStanding(
  words: Int32Array,
  at: number,
  stage: number,
  groups: Iterable<number>,
): void {
  const bits = [0, 0];
  for (const group of groups) bits[group >> 5] |= 1 << (group & 31);
  words[at + HOST.groups] = bits[0];
  words[at + HOST.groups + 1] = bits[1];
  Atomics.store(words, at + HOST.stage, stage);
}

/** What a host without memory knows. */
export interface View {
  readonly self: number;
  readonly shape: ClusterShape;
  /** By host, this one included; undefined if it is not connected. */
  readonly standings: readonly (Standing | undefined)[];
  /** Was its standing read after this host has answered a survey last? */
  isFresh(host: number): boolean;
  /** The highest era that this host has promised. */
  readonly promisedEra: number;
  /** The era whose opening snapshots this host has made durable since it was started; 0 if there is none. */
  readonly openedEra: number;
  /** An operator wants the cluster to go on with the journals that are there. */
  readonly acceptsLoss: boolean;
}

export type Step =
  /** Run the replicas, with an era's opening snapshots: this host never ran them in this era. */
  | (Era & { readonly what: 'start' })
  /** Run the replicas as members that have lost their memory. */
  | (Era & { readonly what: 'join' })
  | {
      readonly what: 'recover';
      /** How many hosts should rather do it. */
      readonly rank: number;
      /** How many hosts may still come, whose memory or journal would be welcome. */
      readonly missing: number;
      /** Too many hosts have lost their memory: those that are missing can't help with theirs. */
      readonly isInevitable: boolean;
    }
  | { readonly what: 'wait'; readonly why: string };

export function nextStep(view: View): Step {
  const { self, shape, standings, promisedEra, openedEra, acceptsLoss } = view;
  const running = standings.filter((standing) => standing?.stage === STAGE.running);
  const opened = running.find((standing) => standing!.era === openedEra);
  if (opened !== undefined) return { what: 'start', ...eraOf(opened) };
  const newest = Math.max(0, ...running.map((standing) => standing!.era));
  const current = running.filter((standing) => standing!.era === newest);
  const own = groupsOf(view).filter((group) => shape.hostsOf(group).includes(self));
  const areRunning = own.every((group) => current.some((standing) => standing!.hasGroup(group)));
  if (current.length > 0 && areRunning) {
    const isRunning = (host: number): boolean =>
      current.includes(standings[host]) && view.isFresh(host);
    // What one host says of others may be out of date: they may wait meanwhile, bound to the same later era as this host.
    const mayJoin = own.every((group) => membersOn(shape, group, isRunning) >= quorumOf(shape));
    if (promisedEra <= newest || mayJoin) return { what: 'join', ...eraOf(current[0]!) };
    return { what: 'wait', why: `waits for more hosts that run in era ${newest}` };
  }
  const coordinator = standings.findIndex(
    (standing, host) => host !== self && standing?.stage === STAGE.recovering,
  );
  if (coordinator >= 0) {
    return {
      what: 'wait',
      why: `waits for ${shape.nameOf(coordinator)}, which recovers the cluster`,
    };
  }
  const lacking = acceptsLoss ? undefined : whatIsLacking(view);
  return lacking === undefined ? recovery(view) : { what: 'wait', why: lacking };
}

function recovery({ self, shape, standings, acceptsLoss }: View): Step {
  const isWaiting = (host: number): boolean => standings[host]?.stage === STAGE.waiting;
  const before = standings.filter((_, host) => host < self && isWaiting(host));
  const missing = standings.filter((standing) => standing === undefined).length;
  const groups = shape.overlay.parents.map((_, group) => group);
  const isWaitingHere = (host: number): boolean => host === self || isWaiting(host);
  const isInevitable = groups.some(
    (group) => membersOn(shape, group, isWaitingHere) >= quorumOf(shape),
  );
  return { what: 'recover', rank: acceptsLoss ? 0 : before.length, missing, isInevitable };
}

/** Why the cluster can't be recovered yet, in words; undefined if it can. */
function whatIsLacking(view: View): string | undefined {
  const { shape, standings } = view;
  const missing = standings.flatMap((standing, host) => (standing === undefined ? [host] : []));
  const hasJournal = (host: number, group: number): boolean => {
    const standing = standings[host];
    return standing !== undefined && (standing.stage === STAGE.running || standing.hasGroup(group));
  };
  const groups = groupsOf(view);
  const isNew = groups.every(
    (group) => membersOn(shape, group, (host) => hasJournal(host, group)) === 0,
  );
  if (isNew) {
    if (missing.length === 0) return undefined;
    return `waits for ${namesOf(shape, missing)}: the first start needs all hosts, and no journal was found yet`;
  }
  const short = groups.filter(
    (group) => membersOn(shape, group, (host) => hasJournal(host, group)) < quorumOf(shape),
  );
  if (short.length === 0) return undefined;
  const needed = short.map((group) => `g${group}`).join(', ');
  const concerned = new Set(short.flatMap((group) => shape.hostsOf(group)));
  const empty = [...concerned]
    .filter((host) => standings[host] !== undefined)
    .filter((host) =>
      short.some((group) => shape.hostsOf(group).includes(host) && !hasJournal(host, group)),
    );
  const reasons = [
    ...(missing.length > 0 ? [`waits for ${namesOf(shape, missing)}`] : []),
    ...(empty.length > 0
      ? [`${namesOf(shape, empty)} ${empty.length === 1 ? 'has' : 'have'} no journal of them`]
      : []),
  ];
  return `${reasons.join('; ')}: recovery needs the journals of ${quorumOf(shape)} of the ${shape.replicas} members of ${needed}`;
}

function groupsOf({ shape }: View): number[] {
  return shape.overlay.parents.map((_, group) => group);
}

function eraOf({ era, firstSession, clusterId }: Standing): Era {
  return { era, firstSession, clusterId };
}

function namesOf(shape: ClusterShape, hosts: readonly number[]): string {
  return hosts.map((host) => shape.nameOf(host)).join(' and ');
}
