/** What `tram status` says of durability: how far the disks are behind, what the journals do, and which disk is slow. */

import type { ClusterStatus, HostStatus, ReplicaStatus } from '../hosting/status.js';
import type { JournalStatus } from '../journal/status.js';
import { count } from './colors.js';
import type { Trouble } from './status-view.js';
import { duration, inColumns, size } from './texts.js';

/** How far the disks are behind the deliveries, and what the journals do. */
export function durabilityLines(status: ClusterStatus, columns: number): string[] {
  const { durability, era, groups, hosts } = status;
  if (durability === 'none') return [];
  const behind = groups.map(({ group, replicas }) => ({
    group,
    entries: notRecoverable(replicas),
  }));
  const worst = behind.reduce((a, b) => (b.entries > a.entries ? b : a));
  const text =
    worst.entries === 0
      ? 'all that was delivered is recoverable'
      : `${count(worst.entries, 'delivered entry', 'delivered entries')} not recoverable yet in g${worst.group}` +
        (behind.filter(({ entries }) => entries > 0).length > 1 ? ', fewer in others' : '');
  const journals = hosts.flatMap(({ host, name, journal }) =>
    journal === undefined ? [] : [`${name ?? host} ${journalText(journal)}`],
  );
  return [
    `durable  ${durability}, ${era === 0 ? 'no era is open yet' : `era ${era}`}; ${text}`,
    ...inColumns('journals', journals, columns),
  ];
}

/** The entries that the replicas of a group have delivered and that a power cut might lose. */
function notRecoverable(replicas: readonly ReplicaStatus[]): number {
  const delivered = Math.max(...replicas.map((replica) => replica.delivered));
  const recoverable = Math.max(...replicas.map((replica) => replica.recoverable ?? 0));
  return Math.max(0, delivered - recoverable);
}

/** `12 MiB, last sync 0.4 ms` */
function journalText({ bytes, syncs, lastSyncNs, pendingSnapshots }: JournalStatus): string {
  const sync = syncs === 0 ? 'not synced yet' : `last sync ${duration(lastSyncNs)}`;
  const pending = pendingSnapshots === 0 ? '' : `, ${count(pendingSnapshots, 'pending snapshot')}`;
  return `${size(bytes)}, ${sync}${pending}`;
}

/** A disk that is well takes a few milliseconds for a sync. */
const SLOW_SYNC_NS = 1e9;

export function slowDisk({ host, name = `host ${host}`, journal }: HostStatus): Trouble[] {
  if (journal === undefined || journal.lastSyncNs < SLOW_SYNC_NS) return [];
  return [
    {
      what: `the disk of ${name} is slow`,
      advice: `the last sync of its journal took ${duration(journal.lastSyncNs)}. Find out what else uses the disk, or whether it fails`,
    },
  ];
}
