/**
 * What the replicas of a host start from, if the host has a journal. A host that takes part in a recovery gets a plan: its
 * replicas replay what the plan says, and it writes their opening snapshots. Any other host starts within the era of its
 * cluster, from what its journal has of that era. After the loss of its disk that is nothing: its replicas fetch the state
 * from others.
 */
import { type ClusterConfig, journalFolder } from '../config/config.js';
import { TramError } from '../errors.js';
import { interrupted } from '../journal/asking.js';
import { requireCluster } from '../journal/cluster-file.js';
import { type Disk, FileDisk } from '../journal/disk.js';
import { eraFolder } from '../journal/format.js';
import { joinEra, readIdentity } from '../journal/identity.js';
import { JournalReader, settle } from '../journal/reader.js';
import { type EraPlan, type GroupPlan, NO_ERA } from '../journal/recovery-asks.js';
import type { GroupSequence } from '../journal/sequence.js';
import { writeOpening } from '../journal/snapshot-file.js';
import { countOf, startOfEra, startWithinEra } from '../journal/start.js';
import { HOST } from '../memory/arena.js';
import type { ClusterContext } from './cluster-context.js';
import type { HostReport } from './host.js';
import { journaledClusterOf, requireWritable } from './local-recovery.js';
import type { JournalStart } from './own-journal.js';

/** Replaying is reported so often. */
const PROGRESS_MS = 1000;

/**
 * For a host on the same machine as all others; undefined without a journal.
 * @param plan  if it takes part in a recovery
 */
export function localJournal(
  { config, map, arena }: ClusterContext,
  host: number,
  plan: EraPlan | undefined,
  report: (report: HostReport) => void,
): (() => JournalStart) | undefined {
  if (config.journal === undefined) return undefined;
  // It may have been removed while the host was down.
  requireWritable(journalFolder(config, host)!);
  return () => {
    if (plan !== undefined) {
      return told(startOfPlan(config, host, plan, localSequence(config)), report);
    }
    const eras = Array.from({ length: map.hosts }, (_, other) =>
      Atomics.load(arena.words, map.host(other) + HOST.era),
    );
    const era = Math.max(...eras);
    if (era !== NO_ERA) return told(startOfEraAgain(config, host, era), report);
    throw new TramError('TRAM_START_FAILED', 'no host of the cluster has opened its journal yet');
  };
}

/** Reports how far its replicas have replayed. */
export function told(start: JournalStart, report: (report: HostReport) => void): JournalStart {
  const count = countOf(start.starts);
  let toldMs = Date.now();
  return {
    ...start,
    onReplayed: (replayed) => {
      start.onReplayed(replayed);
      const nowMs = Date.now();
      if (nowMs - toldMs < PROGRESS_MS) return;
      toldMs = nowMs;
      // There may be snapshots only.
      const percent = Math.floor((100 * replayed) / Math.max(1, count));
      report({ what: 'progress', text: `replays the journal: ${percent} %` });
    },
  };
}

/** @param sequenceOf  what the source of a plan has of its group */
export function startOfPlan(
  config: ClusterConfig,
  host: number,
  plan: EraPlan,
  sequenceOf: (plan: GroupPlan) => GroupSequence,
): JournalStart {
  const disk = new FileDisk(journalFolder(config, host)!);
  const { era, clusterId } = plan;
  const { firstIndex } = config.sizes;
  requirePromise(disk, era);
  const reader = new JournalReader(disk);
  const planOf = (group: number): GroupPlan =>
    plan.groups.find((groupPlan) => groupPlan.group === group)!;
  const starts = plan.groups.map((groupPlan) => {
    const { fromEra, group } = groupPlan;
    const own = reader.eras.includes(fromEra) ? reader.sequences(fromEra, group) : [];
    return startOfEra(groupPlan, own, () => sequenceOf(groupPlan));
  });
  return {
    disk,
    era,
    clusterId,
    has: () => ({ snapshotIndex: firstIndex, end: firstIndex, lastMark: 0, pending: [] }),
    starts,
    onReplayed: () => undefined,
    open: (replicas) => {
      disk.makeFolder(eraFolder(era));
      disk.syncFolder('');
      const written = new Set<number>();
      for (const replica of replicas) {
        const { group } = replica.member;
        if (written.has(group)) continue;
        written.add(group);
        const subject = { clusterId, era, group, index: firstIndex };
        writeOpening(disk, subject, isEmpty(planOf(group)) ? undefined : replica.takeSnapshot());
      }
    },
    scan: () => new JournalReader(disk).segments(era),
  };
}

/** The journal is locked, so no other recovery can begin from now on. @throws TRAM_UNAVAILABLE if one has begun */
function requirePromise(disk: Disk, era: number): void {
  if (readIdentity(disk)?.promisedEra !== era) throw interrupted('another recovery has begun');
}

function isEmpty({ fromEra, append }: GroupPlan): boolean {
  return fromEra === NO_ERA && append.length === 0;
}

/**
 * @param joined  on machines: the id of the cluster, as the hosts have it that run in the era. A host that has promised a later
 *   one may join them.
 * @throws TRAM_CORRUPT, TRAM_JOURNAL_MISMATCH
 */
export function startOfEraAgain(
  config: ClusterConfig,
  host: number,
  era: number,
  joined?: string,
): JournalStart {
  const folder = journalFolder(config, host)!;
  const disk = new FileDisk(folder);
  requireCluster(disk, journaledClusterOf(config), folder);
  const clusterId = joined ?? clusterIdWithin(config, disk, host, era);
  joinEra(disk, host, era, clusterId);
  settle(disk);
  const reader = new JournalReader(disk);
  return {
    disk,
    era,
    clusterId,
    has: (group) => reader.sequence(era, group),
    starts: reader.groups(era).map((group) => startWithinEra(reader.sequence(era, group)!)),
    onReplayed: () => undefined,
    open: () => undefined,
    scan: () => reader.segments(era),
  };
}

/** The id of a cluster whose journals are all on this machine. @throws TRAM_JOURNAL_MISMATCH, TRAM_START_FAILED */
function clusterIdWithin(config: ClusterConfig, disk: Disk, host: number, era: number): string {
  const identity = readIdentity(disk);
  const promised = identity?.promisedEra ?? NO_ERA;
  if (promised > era) {
    throw new TramError(
      'TRAM_JOURNAL_MISMATCH',
      `the journal of host ${host} has promised era ${promised}, and its cluster runs in era ${era}`,
      { hint: 'End the whole cluster and start it again: it is recovered from its journals.' },
    );
  }
  return identity?.clusterId ?? clusterIdOf(config);
}

/** The id that the journals of the other hosts have. @throws TRAM_START_FAILED */
function clusterIdOf(config: ClusterConfig): string {
  for (let host = 0; host < config.hosts; host++) {
    const identity = readIdentity(new FileDisk(journalFolder(config, host)!));
    if (identity !== undefined) return identity.clusterId;
  }
  throw new TramError('TRAM_START_FAILED', `no host has a journal in ${config.journal}`, {
    hint: 'Bring the journals back. If they are gone for good, start a new cluster in another directory.',
  });
}

/** What the source of a plan has of its group, if its host is on this machine. */
function localSequence(config: ClusterConfig): (plan: GroupPlan) => GroupSequence {
  const readers = new Map<number, JournalReader>();
  return ({ source, fromEra, group, keepFrom }) => {
    let reader = readers.get(source);
    if (reader === undefined) {
      reader = new JournalReader(new FileDisk(journalFolder(config, source)!));
      readers.set(source, reader);
    }
    const sequences = reader.sequences(fromEra, group);
    return sequences.find(({ snapshotIndex }) => snapshotIndex === keepFrom)!;
  };
}
