/** What the journals of hosts have, for `tram journal show`. Only reads, so the hosts may run meanwhile. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, TramError } from '../errors.js';
import { FileDisk } from '../journal/disk.js';
import { eraFolder, eraOf, IDENTITY_FILE, type JournalIdentity } from '../journal/format.js';
import { JournalReader } from '../journal/reader.js';

/** @internal The journal of one host. */
export interface JournalContents extends Partial<JournalIdentity> {
  readonly folder: string;
  readonly eras: readonly EraContents[];
  /** The first thing that is wrong with it. Later eras were not read. */
  readonly error?: { readonly code: ErrorCode; readonly message: string };
}

/** @internal */
export interface EraContents {
  readonly era: number;
  readonly isOpened: boolean;
  /** The size of all its files. */
  readonly bytes: number;
  readonly segments: number;
  /** The groups that have a snapshot that counts: its index, and the index after the last entry. */
  readonly groups: readonly {
    readonly group: number;
    readonly snapshotIndex: number;
    readonly end: number;
  }[];
  /** Snapshots that do not count yet. The mark is 0 for a snapshot that was not taken at a mark. */
  readonly pending: readonly {
    readonly group: number;
    readonly snapshotIndex: number;
    readonly mark: number;
  }[];
}

/** A host that runs may rename or remove a file while it is being read. Then the journal is read again, so many times. */
const ATTEMPTS = 5;

/** @internal @param directory  of the journals, or of one host @throws TRAM_NOT_FOUND */
export function contentsOfJournals(directory: string): JournalContents[] {
  if (isJournal(directory)) return [contentsOf(directory)];
  const folders = new FileDisk(directory).list('').map((name) => join(directory, name));
  const journals = folders.filter(isJournal);
  if (journals.length > 0) return journals.map(contentsOf);
  throw new TramError('TRAM_NOT_FOUND', `there is no journal in ${directory}`, {
    hint: 'Give the directory of the option "journal", or the folder of a host in it.',
  });
}

function isJournal(folder: string): boolean {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return false;
  const names = readdirSync(folder);
  return names.some((name) => name === IDENTITY_FILE || eraOf(name) !== undefined);
}

function contentsOf(folder: string): JournalContents {
  const files = (): string => readdirSync(folder, { recursive: true }).join();
  for (let attempt = 1; ; attempt++) {
    const before = files();
    const contents = read(folder);
    if (contents.error === undefined || attempt === ATTEMPTS || files() === before) return contents;
  }
}

function read(folder: string): JournalContents {
  const eras: EraContents[] = [];
  let identity: JournalIdentity | undefined;
  try {
    const reader = new JournalReader(new FileDisk(folder));
    identity = reader.identity;
    for (const era of reader.eras) eras.push(readEra(folder, reader, era));
    return { folder, ...identity, eras };
  } catch (error) {
    const { message } = error as Error;
    const code = error instanceof TramError ? error.code : 'TRAM_SYSTEM';
    return { folder, ...identity, eras, error: { code, message } };
  }
}

function readEra(folder: string, reader: JournalReader, era: number): EraContents {
  const names = readdirSync(join(folder, eraFolder(era)));
  const groups = reader.groups(era).map((group) => {
    const sequence = reader.sequence(era, group)!;
    // Reads it, so that a wrong checksum is found.
    sequence.readSnapshot();
    return { group, snapshotIndex: sequence.snapshotIndex, end: sequence.end };
  });
  const pending = reader.pendingSnapshots(era).map((snapshot) => {
    snapshot.readSnapshot();
    return { group: snapshot.group, snapshotIndex: snapshot.snapshotIndex, mark: snapshot.mark };
  });
  return {
    era,
    isOpened: reader.isOpened(era),
    bytes: names.reduce((sum, name) => sum + sizeOf(join(folder, eraFolder(era), name)), 0),
    segments: reader.segments(era).segments.length,
    groups,
    pending,
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
