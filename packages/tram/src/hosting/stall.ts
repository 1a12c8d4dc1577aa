/**
 * Why messages have no answer yet: which groups on their way can't go on. Asked at the deadline of a call, and once a
 * second while calls wait.
 *
 * If no group on their way has stopped, another one may be the reason: in strict order, a group holds its replies behind a
 * message that it shares with a group that can't go on; in any order, a group whose child can't go on has a full log.
 *
 * On threads and processes the memory of the cluster shows who leads, whose state is lost, and which hosts are silent. A
 * client of a cluster on machines can't read the memory of the hosts: it knows only which hosts it can't reach. One of
 * them may lead a group that the others of the group follow, and only this client does not reach it: its configuration
 * file may have the address of a machine that was replaced.
 */
import { type Channel, channel } from 'node:diagnostics_channel';
import { NO_ANSWER } from '../memory/machines/network-options.js';
import { HEAD_WORDS } from '../memory/record.js';
import { ROW } from '../protocol/layout.js';
import { contains } from '../protocol/overlay.js';
import { nowUs } from './clock.js';
import type { ClusterContext } from './cluster-context.js';
import { groupsOf } from './service.js';
import { type GroupStatus, type ReplicaStatus, statusOf } from './status.js';

/** @internal */
export interface Stall {
  /** The groups on the way of the messages that can't go on, as far as this thread can tell. */
  readonly stalledGroups: readonly number[];
  /** Those among them that have lost their state for good. */
  readonly lostGroups: readonly number[];
  /** In words: which groups can't go on, even if they are not on the way; empty if there is no such group. */
  readonly reason: string;
  /** What to do about it, if that is known. */
  readonly hint: string | undefined;
}

/** @internal What is published on `stalls`. */
export interface StallMessage extends Pick<Stall, 'stalledGroups' | 'reason'> {
  /** Undefined if the client has no slot yet: it waits for hosts. */
  readonly client: string | undefined;
  readonly destinations: readonly number[];
  readonly missingGroups: readonly number[];
}

/** @internal The groups whose replies to a message are missing. */
export interface Missing {
  readonly pendingLow: number;
  readonly pendingHigh: number;
}

/** @internal */
export const stalls: Channel = channel('tram:stalled');
/** @internal What takes longer than this is stalled. A client tells of it as often. */
export const STALLED_US = 1_000_000;

const MAJORITY_HINT = 'A group needs a majority of its replicas: start those that are down.';
const OUTDATED_HINT =
  'Start these hosts. If a machine was replaced, use the configuration file that the hosts have.';
const SILENT_HINT =
  'These hosts run but do nothing. Continue those that are stopped (SIGSTOP, a debugger); kill and restart those whose ' +
  'service does not return.';

/** Why one group can't go on. */
interface Trouble {
  readonly reason: string;
  readonly hint?: string;
  readonly isLost?: true;
}

/** @internal Of one client. */
export class StallWatch {
  /** By replica: its last heartbeat that was seen, and when that was new. */
  private readonly heartbeats: Int32Array;
  private readonly beatUs: Float64Array;
  private lookedUs = Number.NEGATIVE_INFINITY;
  /** Silence that a group does not wait out. */
  private readonly silenceUs: number;

  constructor(private readonly context: ClusterContext) {
    const { sizes, timing } = context.config;
    const replicas = sizes.groups * sizes.replicas;
    this.heartbeats = new Int32Array(replicas);
    this.beatUs = new Float64Array(replicas);
    this.silenceUs = Math.max(STALLED_US, 2 * timing.suspectAfterUs);
  }

  /** Why messages do not go on. That a host is silent is noticed only by calls in the seconds before. */
  stallOf(messages: readonly Missing[]): Stall {
    const { context } = this;
    const { overlay, network } = context;
    const isOnTheWay = ({ group }: GroupStatus): boolean =>
      messages.some(({ pendingLow: low, pendingHigh: high }) => {
        const entryGroup = overlay.entryGroup(low, high);
        const isBelow = contains(
          overlay.reachLow[entryGroup],
          overlay.reachHigh[entryGroup],
          group,
        );
        return isBelow && overlay.reaches(group, low, high);
      });
    if (network === undefined) this.listen();
    const troubles = statusOf(context).groups.flatMap((status) => {
      const trouble = network === undefined ? this.troubleOf(status) : unreachable(context, status);
      return trouble === undefined ? [] : { status, ...trouble };
    });
    const onTheWay = troubles.filter(({ status }) => isOnTheWay(status));
    const isElsewhere = onTheWay.length === 0 && troubles.length > 0;
    const causes = isElsewhere ? troubles : onTheWay;
    const reason = causes.map((cause) => cause.reason).join('; ');
    return {
      stalledGroups: onTheWay.map(({ status }) => status.group),
      lostGroups: onTheWay.filter(({ isLost }) => isLost).map(({ status }) => status.group),
      reason: isElsewhere
        ? `${groupNames(messages)} may wait for another group: ${reason}`
        : reason,
      hint: causes.find(({ hint }) => hint !== undefined)?.hint,
    };
  }

  /** Notes which replicas have a new heartbeat. */
  private listen(): void {
    const { context, heartbeats, beatUs } = this;
    const { arena, map, layout } = context;
    const now = nowUs();
    // Nobody has listened for a while, so nobody knows of a silence.
    const isDeaf = now - this.lookedUs > 2 * STALLED_US;
    this.lookedUs = now;
    for (let replica = 0; replica < heartbeats.length; replica++) {
      const at = map.region(replica) + layout.row + HEAD_WORDS + ROW.heartbeat;
      const heartbeat = Atomics.load(arena.words, at);
      if (isDeaf || heartbeat !== heartbeats[replica]) beatUs[replica] = now;
      heartbeats[replica] = heartbeat;
    }
  }

  /** For how long no heartbeat of it has come. */
  private silenceOf({ group, member }: ReplicaStatus): number {
    return this.lookedUs - this.beatUs[this.context.layout.replicaParticipant(group, member)];
  }

  /** `g3 has no leader: g3/1, g3/2 are down` */
  private troubleOf({ group, leader, health, replicas }: GroupStatus): Trouble | undefined {
    if (health === 'state-lost') {
      return { reason: `g${group} has lost its state for good`, isLost: true };
    }
    const up = replicas.filter(({ state }) => state === 'up');
    const silent = up.filter((replica) => this.silenceOf(replica) > this.silenceUs);
    const silence = silent.length === 0 ? [] : [this.describeSilence(silent)];
    if (leader !== undefined) {
      if (!silent.includes(replicas[leader])) return undefined;
      return { reason: `the leader of g${group} is silent: ${silence}`, hint: SILENT_HINT };
    }
    const absent = replicas.filter(({ state }) => state !== 'up');
    const recovering = up.filter(({ role }) => role === 'recovering');
    const causes = [
      ...(absent.length > 0 ? [`${namesOf(absent)} down`] : []),
      ...(recovering.length > 0 ? [`${namesOf(recovering)} recovering`] : []),
      ...silence,
    ];
    const missing = new Set([...absent, ...recovering, ...silent]);
    const isLeaderless = 2 * missing.size > replicas.length;
    return {
      reason: `g${group} has no leader: ${isLeaderless ? causes.join(', ') : 'an election is under way'}`,
      hint: isLeaderless && absent.length === 0 && silent.length > 0 ? SILENT_HINT : MAJORITY_HINT,
    };
  }

  /** `no heartbeat from hosts 0, 1 for 3 s` */
  private describeSilence(silent: readonly ReplicaStatus[]): string {
    const hosts = [...new Set(silent.map(({ host }) => host))];
    const seconds = Math.floor(Math.min(...silent.map((one) => this.silenceOf(one))) / 1e6);
    return `no heartbeat from host${hosts.length === 1 ? '' : 's'} ${hosts.join(', ')} for ${seconds} s`;
  }
}

/** @internal `g2, g3` */
export function groupNames(messages: readonly Missing[]): string {
  const groups = messages.flatMap(({ pendingLow, pendingHigh }) =>
    groupsOf(pendingLow, pendingHigh),
  );
  return [...new Set(groups)].map((group) => `g${group}`).join(', ');
}

function namesOf(replicas: readonly ReplicaStatus[]): string {
  return `${replicas.map(({ name }) => name).join(', ')} ${replicas.length === 1 ? 'is' : 'are'}`;
}

/**
 * `g3 can't be reached: beta (connection refused), gamma (no answer)`
 * `g3 may be led by gamma, which can't be reached (no answer)`
 */
function unreachable(
  { network, config }: ClusterContext,
  { group, replicas }: GroupStatus,
): Trouble | undefined {
  const missing = new Set(network!.missingHosts());
  const absent = replicas.filter(({ host }) => missing.has(host));
  if (absent.length === 0) return undefined;
  const nameOf = ({ host }: ReplicaStatus): string => config.machines![host].name;
  const whyNot = ({ host }: ReplicaStatus): string => network!.complaintOf(host) ?? NO_ANSWER;
  if (2 * absent.length > replicas.length) {
    const hosts = absent.map((replica) => `${nameOf(replica)} (${whyNot(replica)})`);
    return { reason: `g${group} can't be reached: ${hosts.join(', ')}`, hint: MAJORITY_HINT };
  }
  const names = absent.map(nameOf).join(' or ');
  const reasons = absent.map(whyNot).join(', ');
  const reason = `g${group} may be led by ${names}, which can't be reached (${reasons})`;
  return { reason, hint: OUTDATED_HINT };
}
