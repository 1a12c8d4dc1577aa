/**
 * Restores a backup: writes journals from which the next start of a cluster recovers. All hosts get what the backup has of
 * their groups. The new journals belong to a cluster of their own, which is the same on all machines that restore the backup.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { TramError } from '../errors.js';
import {
  groupsOn,
  type JournaledCluster,
  readCluster,
  writeCluster,
} from '../journal/cluster-file.js';
import { COPY_ERA, copyJournal } from '../journal/copy.js';
import { FileDisk } from '../journal/disk.js';
import { JournalReader } from '../journal/reader.js';
import { damaged, journalIn, type Manifest, makeEmpty, readManifest } from './backup-files.js';

export interface RestoreOptions {
  /** The directory of the journals, as the cluster will be started with. */
  readonly journal: string;
  /** With `memory: 'machines'`: only the journal of this host. Default: those of all hosts. */
  readonly host?: string | undefined;
}

/** @throws TRAM_NOT_FOUND, TRAM_CORRUPT, TRAM_EXISTS, TRAM_VERSION_MISMATCH, TRAM_UNKNOWN_REPLICA, TRAM_SYSTEM */
export function restoreBackup(directory: string, { journal, host }: RestoreOptions): string[] {
  const manifest = readManifest(directory);
  const source = journalIn(directory);
  const cluster = readCluster(source);
  if (cluster === undefined) throw damaged(directory, 'it does not say which cluster it is of');
  const reader = new JournalReader(source);
  requireComplete(directory, manifest, reader);
  const hosts = hostsToRestore(manifest, host);
  const folders = hosts.map((number) => join(journal, manifest.folders[number]));
  // All of them, before anything is written.
  for (const folder of folders) makeEmpty(folder, 'a journal');
  for (const [i, number] of hosts.entries()) {
    restoreHost(reader, manifest, cluster, number, new FileDisk(folders[i]));
  }
  return folders;
}

function requireComplete(directory: string, { ends }: Manifest, reader: JournalReader): void {
  for (const [group, end] of ends.entries()) {
    const found = reader.sequence(COPY_ERA, group)?.end;
    if (found !== end) throw damaged(directory, `g${group} ends at ${found}, not at ${end}`);
  }
}

function hostsToRestore({ folders }: Manifest, host: string | undefined): number[] {
  if (host === undefined) return [...folders.keys()];
  // Of a machine with several threads, all.
  const isOf = (folder: string): boolean => folder === host || folder.startsWith(`${host}#`);
  const found = [...folders.keys()].filter((number) => isOf(folders[number]));
  if (found.length > 0) return found;
  throw new TramError('TRAM_UNKNOWN_REPLICA', `the backup has no host "${host}"`, {
    hint: `It has ${folders.join(', ')}.`,
  });
}

function restoreHost(
  reader: JournalReader,
  manifest: Manifest,
  cluster: JournaledCluster,
  host: number,
  disk: FileDisk,
): void {
  const groups = groupsOn(cluster, host).map((group) => {
    const sequence = reader.sequence(COPY_ERA, group)!;
    return { group, sequence, below: sequence.end };
  });
  writeCluster(disk, cluster);
  copyJournal(disk, { ...reader.identity!, clusterId: newClusterId(manifest), host }, groups);
}

/** The same on all machines, and another one than that of the cluster that was saved. */
function newClusterId(manifest: Manifest): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex').slice(0, 32);
}
