/**
 * A backup of a running cluster: what all its groups have delivered up to one place in their order, taken from the journals on
 * this machine.
 *
 * A *mark* is sent to all groups. It has one place in the order of each, and the backup has what lies before it. That is
 * consistent: the mark passes the tree like any message. So a message that came from the parent lies before the mark in a
 * group if and only if it lies before the mark in the parent.
 *
 * The journals are read while their hosts write them. A host may use a file again that is just being read. Then what was
 * read does not fit together, and the backup begins again with another mark.
 */
import { existsSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { type ClusterConfig, journalFolder } from '../config/config.js';
import { TramError } from '../errors.js';
import { writeCluster } from '../journal/cluster-file.js';
import { type CopiedGroup, copyJournal } from '../journal/copy.js';
import { FileDisk } from '../journal/disk.js';
import type { JournalIdentity } from '../journal/format.js';
import { JournalReader } from '../journal/reader.js';
import {
  between,
  entriesIn,
  type JournalEntry,
  type JournalSequence,
} from '../journal/sequence.js';
import { entryGroupOf, MARK, MESSAGE, messageId, numberIn } from '../protocol/layout.js';
import { journalIn, makeEmpty, writeManifest } from './backup-files.js';
import { journaledClusterOf } from './local-recovery.js';
import { pause } from './oversight.js';
import type { ClusterStatus } from './status.js';

/** @internal */
export interface BackupSource {
  readonly config: ClusterConfig;
  status(): ClusterStatus;
  /** Sends a mark to all groups. Resolves to its id, once all of them have it. */
  mark(): Promise<string>;
}

/** What a backup has. */
export interface Backup {
  readonly directory: string;
  readonly takenAt: string;
  readonly era: number;
  /** The size of its files. */
  readonly bytes: number;
}

const ATTEMPTS_MAX = 5;
/** How long a journal may take until it has the mark. With `everySecond`, about a second. */
const DURABLE_MS = 30_000;
const LOOK_MS = 10;
const HOST_OF_BACKUP = 0;

/**
 * @internal @throws TRAM_NOT_SUPPORTED: the cluster has no journal, or no host on this machine has a member of a group; TRAM_EXISTS,
 *   TRAM_TIMEOUT, TRAM_CORRUPT, TRAM_SYSTEM; what `mark` throws
 */
export async function saveBackup(source: BackupSource, directory: string): Promise<Backup> {
  const hosts = hostsByGroup(source);
  makeEmpty(directory, 'a backup');
  for (let attempt = 1; ; attempt++) {
    const takenAt = new Date().toISOString();
    const mark = await source.mark();
    await untilDurable(source, hosts);
    try {
      const marked = readMarked(source.config, hosts, mark);
      return save(source.config, directory, takenAt, marked);
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      if (attempt === ATTEMPTS_MAX || !isPassing(error)) throw error;
      makeEmpty(directory, 'a backup');
    }
  }
}

/** By group: the host on this machine whose journal is read. */
function hostsByGroup({ config, status }: BackupSource): number[] {
  if (config.journal === undefined) {
    throw new TramError('TRAM_NOT_SUPPORTED', 'the cluster has no journal to make a backup from', {
      hint: "Start it with durability: 'everySecond' or 'always'.",
    });
  }
  return status().groups.map(({ group, replicas }) => {
    const isHere = (host: number): boolean => existsSync(journalFolder(config, host)!);
    const found = replicas.find(({ state, host }) => state === 'up' && isHere(host));
    if (found !== undefined) return found.host;
    const names = replicas.map(({ host }) => config.machines?.[host].name ?? `host ${host}`);
    throw new TramError(
      'TRAM_NOT_SUPPORTED',
      `no host that runs here has a member of g${group}: its members are on ${names.join(', ')}`,
      { hint: 'Run it on a machine whose host has members of all groups.' },
    );
  });
}

/** Waits until the journals that are read have all that their groups have delivered now. @throws TRAM_TIMEOUT */
async function untilDurable({ status }: BackupSource, hosts: readonly number[]): Promise<void> {
  const wanted = status().groups.map(({ replicas }) =>
    Math.max(...replicas.map(({ delivered }) => delivered)),
  );
  const deadlineMs = performance.now() + DURABLE_MS;
  for (;;) {
    const late = status().groups.find(({ group, replicas }) => {
      const ofHost = replicas.filter(({ host }) => host === hosts[group]);
      return ofHost.every(({ durable = 0 }) => durable < wanted[group]);
    });
    if (late === undefined) return;
    if (performance.now() > deadlineMs) {
      const what = `the journal of host ${hosts[late.group]} has not got the entries of g${late.group}`;
      throw new TramError('TRAM_TIMEOUT', `${what} within ${DURABLE_MS / 1000} s`, {
        hint: 'Its disk is slow, as `tram status` shows. Find out what else uses it, and try again.',
      });
    }
    await pause(LOOK_MS);
  }
}

interface Marked {
  readonly era: number;
  readonly identity: JournalIdentity;
  readonly groups: readonly CopiedGroup[];
}

/** Finds the mark in the journals. */
function readMarked(config: ClusterConfig, hosts: readonly number[], mark: string): Marked {
  const readers = new Map<number, JournalReader>();
  const groups = hosts.map((host, group): CopiedGroup => {
    const folder = journalFolder(config, host)!;
    const reader = readers.get(host) ?? new JournalReader(new FileDisk(folder));
    readers.set(host, reader);
    const sequence = reader.sequence(eraIn(reader, folder), group);
    const below = sequence && indexOf(sequence, mark);
    if (below === undefined)
      throw new NotThere(`the journal in ${folder} lacks the mark of g${group}`);
    return { group, sequence: sequence!, below };
  });
  const [reader] = readers.values();
  return { era: eraIn(reader, ''), identity: reader.identity!, groups };
}

/** The era that the host runs in. */
function eraIn(reader: JournalReader, folder: string): number {
  const era = reader.eras.findLast((one) => reader.isOpened(one));
  if (era === undefined) throw new NotThere(`the journal in ${folder} has no open era`);
  return era;
}

/** From the end on, where it was just put: most of the journal need not be read. */
function indexOf(sequence: JournalSequence, mark: string): number | undefined {
  for (const { first, end } of sequence.parts.toReversed()) {
    for (const stretch of between(sequence, first, end)) {
      for (const entry of entriesIn(stretch)) {
        if (isMark(entry) && idOf(entry) === mark) return entry.index;
      }
    }
  }
  return undefined;
}

function isMark({ words, at }: JournalEntry): boolean {
  return (words[at + MESSAGE.payloadBytes] & MARK) !== 0;
}

function idOf({ words, at }: JournalEntry): string {
  const series = words[at + MESSAGE.series];
  return messageId({
    session: words[at + MESSAGE.session],
    entryGroup: entryGroupOf(series),
    number: numberIn(series, words[at + MESSAGE.number]),
  });
}

function save(
  config: ClusterConfig,
  directory: string,
  takenAt: string,
  { era, identity, groups }: Marked,
): Backup {
  const { clusterId } = identity;
  const disk = journalIn(directory);
  writeCluster(disk, journaledClusterOf(config));
  copyJournal(disk, { ...identity, host: HOST_OF_BACKUP }, groups);
  const folders = Array.from({ length: config.hosts }, (_, host) =>
    basename(journalFolder(config, host)!),
  );
  const bytes = writeManifest(directory, {
    ...{ takenAt, clusterId, era, folders },
    ends: groups.map(({ below }) => below),
  });
  return { directory, takenAt, era, bytes };
}

/** What was looked for is not in a journal, or is there no longer. */
class NotThere extends Error {}

/** May it succeed with another mark, because the journal has changed while it was read? */
function isPassing(error: unknown): boolean {
  if (error instanceof TramError) return error.code === 'TRAM_CORRUPT';
  return error instanceof NotThere || (error as NodeJS.ErrnoException).code === 'ENOENT';
}
