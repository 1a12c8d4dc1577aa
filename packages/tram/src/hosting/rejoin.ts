/**
 * What the end of a host costs the groups of its replicas, and the wait until the replicas of a started host take part
 * again. `Cluster` and the commands `tram kill` and `tram restart` follow the same rules.
 *
 * A replica *takes part* in its group if its host is up and the replica is not recovering. It has a *copy* of the state if
 * it also does not lack entries that it needs from another replica. A host that starts with empty memory learns from f+1
 * other members of each group what its replicas have promised, and fetches the state from one of them. If fewer have a
 * copy, such a start might never end, and could cost the last copy of the state.
 */
import { TramError } from '../errors.js';
import type { ParticipantId } from '../memory/contract.js';
import type { ClusterContext } from './cluster-context.js';
import { pause, requireState } from './oversight.js';
import { STATISTIC } from './statistics.js';
import type { GroupStatus, ReplicaStatus } from './status.js';

const LOOK_MS = 5;

export function takesPart({ state, role }: ReplicaStatus): boolean {
  return state === 'up' && role !== 'recovering';
}

function hasCopy(replica: ReplicaStatus): boolean {
  return takesPart(replica) && !replica.lacksState;
}

function others({ replicas }: GroupStatus, hosts: readonly number[]): ReplicaStatus[] {
  return replicas.filter(({ host }) => !hosts.includes(host));
}

function majorityOf({ replicas }: GroupStatus): number {
  return (replicas.length + 1) / 2;
}

/** The groups that have a replica on these hosts. */
export function groupsOn(groups: readonly GroupStatus[], hosts: readonly number[]): GroupStatus[] {
  return groups.filter(({ replicas }) => replicas.some(({ host }) => hosts.includes(host)));
}

/** By group: how many log entries its replicas have delivered, also those that have ended. */
export function deliveredByGroup(groups: readonly GroupStatus[]): number[] {
  return groups.map(({ replicas }) => Math.max(...replicas.map(({ delivered }) => delivered)));
}

/** @param hosts  those that end together @throws TRAM_LAST_COPY if they can't recover from empty memory */
export function requireOtherCopies(
  groups: readonly GroupStatus[],
  hosts: readonly number[],
  title: string,
): void {
  const error = lackOfCopies(groups, hosts, title);
  if (error !== undefined) throw error;
}

/** TRAM_LAST_COPY if the host can't recover from empty memory */
function lackOfCopies(
  groups: readonly GroupStatus[],
  hosts: readonly number[],
  title: string,
): TramError | undefined {
  for (const group of groupsOn(groups, hosts)) {
    const members = others(group, hosts);
    const copies = members.filter(hasCopy).length;
    const needed = majorityOf(group);
    if (copies >= needed) continue;
    const canEver = members.length >= needed;
    return new TramError(
      'TRAM_LAST_COPY',
      `host ${title} can't start with empty memory: g${group.group} needs ${needed} other members to recover from, ` +
        `and ${copies} of ${members.length} take part and have the state`,
      {
        hint: canEver
          ? 'Restart the other hosts first, and wait until their replicas take part; or start this one without `fresh`.'
          : 'Start it without `fresh`, so that it resumes with the memory that it left.',
      },
    );
  }
  return undefined;
}

/**
 * After the end of a host that is to be restarted with empty memory: other hosts may have ended since that was asked for.
 * Of two such hosts at least one sees that the other has ended, because each looks after its own end.
 * @returns TRAM_LAST_COPY if the host is to be started with its memory, for the caller to throw once it runs
 */
export function refusalAfterEnd(
  groups: readonly GroupStatus[],
  hosts: readonly number[],
  title: string,
): TramError | undefined {
  const error = lackOfCopies(groups, hosts, title);
  return error && keptItsMemory(title, error.message);
}

/** TRAM_LAST_COPY for a host that was to begin with empty memory. */
export function keptItsMemory(title: string, why: string): TramError {
  return new TramError(
    'TRAM_LAST_COPY',
    `host ${title} was restarted with the memory that it left: ${why}`,
    { hint: 'Wait until all replicas take part, then try again.' },
  );
}

/** What it costs to end these hosts without a chance to leave their state, in words; `undefined` if others can go on. */
export function costOfEnd(
  groups: readonly GroupStatus[],
  hosts: readonly number[],
): string | undefined {
  const last = groupsOn(groups, hosts).filter(
    (group) => group.replicas.some(hasCopy) && !others(group, hosts).some(hasCopy),
  );
  const stopping = groupsOn(groups, hosts).filter((group) => {
    const remaining = others(group, hosts).filter(takesPart).length;
    const before = group.replicas.filter(takesPart).length;
    const loses = remaining < majorityOf(group) && before >= majorityOf(group);
    return loses && !last.includes(group);
  });
  const costs: string[] = [];
  if (last.length > 0) {
    costs.push(
      `${namesOf(last)} the last running copy of their state, which is lost if the log has dropped its beginning`,
    );
  }
  if (stopping.length > 0) {
    costs.push(`${namesOf(stopping)} their majority, and they stop until enough hosts are back`);
  }
  return costs.length === 0 ? undefined : `costs ${costs.join('; ')}`;
}

function namesOf(groups: readonly GroupStatus[]): string {
  return groups.map(({ group }) => `g${group}`).join(', ');
}

/**
 * For hosts that are about to end in order.
 * @returns throws TRAM_SNAPSHOT_FAILED, after its end, if a replica could not leave its state. `why` is what it threw
 */
export function savedStateCheck(
  context: ClusterContext,
  hosts: readonly number[],
  title: string,
): (why?: string) => void {
  const { map, arena } = context;
  const replicas = hosts.flatMap((host) => map.participantsOf(host));
  const unsavedEnds = (replica: ParticipantId): number =>
    arena.words[map.statisticsOf(replica) + STATISTIC.unsavedEnds];
  const before = replicas.map(unsavedEnds);
  return (why) => {
    const unsaved = replicas.filter((replica, i) => unsavedEnds(replica) !== before[i]);
    if (unsaved.length === 0) return;
    const names = unsaved.map((replica) => context.nameOf(replica)).join(', ');
    const reason = why === undefined ? '' : `: ${why.split('\n', 1)[0]}`;
    throw new TramError(
      'TRAM_SNAPSHOT_FAILED',
      `host ${title} has ended, but the state of ${names} could not be saved${reason}`,
      {
        hint:
          'End no other host: the other replicas still have the state. Send a command that makes the state one that can ' +
          'be saved, then restart this host. Its log says why it failed.',
      },
    );
  };
}

/** A host that has been started, or all hosts of a machine. */
export interface StartedHost {
  readonly hosts: readonly number[];
  /** As users know it: its number, or the name of its machine. */
  readonly title: string;
  /** Where it prints, if that is a file. */
  readonly log?: string | undefined;
  /** The groups as they are now; none if the memory can't be read yet. */
  groups(): readonly GroupStatus[] | Promise<readonly GroupStatus[]>;
  /** How it has ended, if it has. */
  ended(): string | undefined;
}

/**
 * Waits until all replicas of the host take part in groups that have a leader, and have delivered what their groups had
 * delivered. A group that waits for other hosts delivers nothing, and is not waited for.
 * @param targets  by group: the log entries to be delivered
 * @returns the replicas of the host
 * @throws TRAM_START_FAILED if the host ends again, TRAM_STATE_LOST if a group of it has lost its state, TRAM_TIMEOUT
 */
export async function untilRejoined(
  started: StartedHost,
  targets: readonly number[],
  deadlineMs: number,
): Promise<ReplicaStatus[]> {
  const { hosts, title } = started;
  for (;;) {
    const groups = await started.groups();
    requireState(groupsOn(groups, hosts));
    const ours = groups
      .flatMap(({ replicas }) => replicas)
      .filter(({ host }) => hosts.includes(host));
    const missing = ours.filter((replica) => {
      const { group, delivered } = replica;
      const { health, replicas } = groups[group];
      const waitsForOthers =
        health === 'no-majority' && replicas.some(({ state }) => state !== 'up');
      const hasCaughtUp = health === 'ok' && delivered >= targets[group];
      return !takesPart(replica) || !(hasCaughtUp || waitsForOthers);
    });
    if (ours.length > 0 && missing.length === 0) return ours;
    const exit = started.ended();
    if (exit !== undefined) {
      throw new TramError('TRAM_START_FAILED', `host ${title} has ended again: ${exit}`, {
        hint: started.log === undefined ? undefined : `Read its log: ${started.log}`,
      });
    }
    if (Date.now() > deadlineMs) {
      const names = ours.length === 0 ? 'its replicas' : missing.map(({ name }) => name).join(', ');
      throw new TramError(
        'TRAM_TIMEOUT',
        `host ${title} runs, but ${names} did not rejoin in time`,
        {
          hint:
            failingSnapshots(groupsOn(groups, hosts)) ??
            'See the status of the cluster. A group goes on once a majority of it is up.',
        },
      );
    }
    await pause(LOOK_MS);
  }
}

/** A replica that has to catch up waits for a snapshot of another one. */
function failingSnapshots(groups: readonly GroupStatus[]): string | undefined {
  const failing = groups
    .flatMap(({ replicas }) => replicas)
    .filter(({ failedSnapshots }) => failedSnapshots > 0);
  if (failing.length === 0) return undefined;
  const names = failing.map(({ name }) => name).join(', ');
  return `snapshot() of the service fails at ${names}, and others can't catch up without it. The logs of their hosts say why.`;
}
