/**
 * The files of a backup:
 *
 *   DIRECTORY/
 *     journal/       a journal (journal/format.ts) that has all groups, each up to the mark
 *     backup.json    the manifest, written last: what the journal must have, and a checksum of each of its files
 *
 * The journal alone can't tell that its end is missing. The manifest can.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TramError } from '../errors.js';
import { FileDisk } from '../journal/disk.js';

/** Incremented whenever the manifest changes its meaning. */
const MANIFEST_VERSION = 1;
const MANIFEST = 'backup.json';
const JOURNAL = 'journal';

export interface Manifest {
  readonly version: number;
  /** When the mark was sent, in ISO 8601. */
  readonly takenAt: string;
  /** The cluster and the era that were saved. */
  readonly clusterId: string;
  readonly era: number;
  /** By host: the name of its journal folder. */
  readonly folders: readonly string[];
  /** By group: the index of the mark, below which all entries are saved. */
  readonly ends: readonly number[];
  /** By path below `journal`. */
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

/** The journal of a backup. */
export function journalIn(directory: string): FileDisk {
  return new FileDisk(join(directory, JOURNAL));
}

/** Makes an empty directory, durably. @throws TRAM_EXISTS, TRAM_SYSTEM */
export function makeEmpty(directory: string, what: string): void {
  try {
    if (existsSync(directory) && readdirSync(directory).length > 0) throw notEmpty(directory, what);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    new FileDisk(dirname(directory)).syncFolder('');
  } catch (cause) {
    if (cause instanceof TramError) throw cause;
    const { message } = cause as Error;
    throw new TramError('TRAM_SYSTEM', `can't use ${directory} for ${what}: ${message}`, { cause });
  }
}

function notEmpty(directory: string, what: string): TramError {
  return new TramError('TRAM_EXISTS', `${directory} is not empty, and can't be used for ${what}`, {
    hint: 'Choose a directory that does not exist or is empty.',
  });
}

/** With the files that the backup has now. The backup is complete when this returns: the size of its files. */
export function writeManifest(
  directory: string,
  manifest: Omit<Manifest, 'version' | 'files'>,
): number {
  const files = checksumsIn(join(directory, JOURNAL));
  const text = `${JSON.stringify({ version: MANIFEST_VERSION, ...manifest, files }, null, 2)}\n`;
  const disk = new FileDisk(directory);
  const draft = `${MANIFEST}.draft`;
  const file = disk.open(draft, 'create');
  try {
    file.write(0, new TextEncoder().encode(text));
    file.sync();
  } finally {
    file.close();
  }
  disk.rename(draft, MANIFEST);
  disk.syncFolder('');
  return Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The manifest of a backup, after a check of all files. @throws TRAM_NOT_FOUND, TRAM_CORRUPT, TRAM_VERSION_MISMATCH */
export function readManifest(directory: string): Manifest {
  const path = join(directory, MANIFEST);
  if (!existsSync(path)) throw noBackup(directory);
  const manifest = parseManifest(path);
  if (manifest.version !== MANIFEST_VERSION) {
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `the backup ${directory} has format ${manifest.version}, and this version of TRAM has format ${MANIFEST_VERSION}`,
      { hint: 'Use the version of TRAM that has made the backup.' },
    );
  }
  const found = checksumsIn(join(directory, JOURNAL));
  for (const [name, { bytes, sha256 }] of Object.entries(manifest.files)) {
    if (found[name] === undefined) throw damaged(directory, `${name} is missing`);
    if (found[name].bytes !== bytes || found[name].sha256 !== sha256) {
      throw damaged(directory, `${name} has changed`);
    }
  }
  return manifest;
}

function parseManifest(path: string): Manifest {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  } catch (cause) {
    throw damaged(dirname(path), `${MANIFEST} can't be read`, cause);
  }
}

function noBackup(directory: string): TramError {
  const isIncomplete = existsSync(join(directory, JOURNAL));
  return new TramError(
    'TRAM_NOT_FOUND',
    isIncomplete
      ? `the backup ${directory} is incomplete: it has no ${MANIFEST}`
      : `${directory} is no backup: it has no ${MANIFEST}`,
    { hint: isIncomplete ? 'Use another backup: this one was interrupted.' : 'Check the path.' },
  );
}

export function damaged(directory: string, what: string, cause?: unknown): TramError {
  return new TramError('TRAM_CORRUPT', `the backup ${directory} is damaged: ${what}`, {
    hint: 'Use another backup, or another copy of this one.',
    cause,
  });
}

function checksumsIn(folder: string): Manifest['files'] {
  const paths = existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
    : [];
  const files = paths.filter((path) => statSync(join(folder, path)).isFile());
  return Object.fromEntries(
    files.map((path) => {
      const contents = readFileSync(join(folder, path));
      const sha256 = createHash('sha256').update(contents).digest('hex');
      return [path, { bytes: contents.length, sha256 }];
    }),
  );
}
