/** The identity of a host's journal, and the marks of eras that were opened or joined: small files that are replaced as a whole. */
import { TramError } from '../errors.js';
import type { Disk } from './disk.js';
import {
  decodeIdentity,
  encodeIdentity,
  eraFolder,
  eraOf,
  FORMAT_VERSION,
  FormatError,
  IDENTITY_FILE,
  identityDraftPath,
  type JournalIdentity,
  openedPath,
} from './format.js';

/**
 * @internal Undefined if there is no journal yet.
 * @param title  as errors name the file
 * @throws TRAM_CORRUPT, TRAM_VERSION_MISMATCH
 */
export function readIdentity(
  disk: Disk,
  title: string = IDENTITY_FILE,
): JournalIdentity | undefined {
  if (!disk.list('').includes(IDENTITY_FILE)) return undefined;
  const words = readWords(disk, IDENTITY_FILE);
  return checked(title, 0, () => decodeIdentity(words));
}

/** @internal It is durable when this returns. */
export function writeIdentity(disk: Disk, identity: JournalIdentity): void {
  const draft = identityDraftPath();
  disk.remove(draft);
  writeDurably(disk, draft, encodeIdentity(identity));
  disk.rename(draft, IDENTITY_FILE);
  disk.syncFolder('');
}

/** @internal Marks an era as open. */
export function markOpened(disk: Disk, era: number): void {
  const folder = eraFolder(era);
  if (disk.list(folder).some((name) => `${folder}/${name}` === openedPath(era))) return;
  writeDurably(disk, openedPath(era), new Uint8Array(0));
  disk.syncFolder(folder);
}

/**
 * @internal A host joins an open era. Its journal may be new, or of an older era, or may have promised a later one in a
 * recovery that was not completed. The host *withdraws* such a promise: it promises one era more, which nobody has asked for,
 * so it never opens the later era. Then it removes what it has of that.
 *
 * The caller makes sure that a quorum of each group of this host runs in the era it joins. So a recovery that has counted on
 * the promise can't have got f+1 others, and nothing is lost (docs/protocol.md, "A withdrawn promise does no harm").
 */
export function joinEra(disk: Disk, host: number, era: number, clusterId: string): void {
  const identity = readIdentity(disk);
  const promised = identity?.promisedEra ?? 0;
  if (promised !== era) {
    const promisedEra = promised < era ? era : promised + 1;
    writeIdentity(disk, { ...identity, clusterId, host, promisedEra });
  }
  for (const name of disk.list('')) if ((eraOf(name) ?? 0) > era) disk.remove(name);
  disk.makeFolder(eraFolder(era));
  disk.syncFolder('');
  markOpened(disk, era);
}

function writeDurably(disk: Disk, path: string, bytes: Uint8Array): void {
  const file = disk.open(path, 'create');
  try {
    if (bytes.length > 0) file.write(0, bytes);
    file.sync();
  } finally {
    file.close();
  }
}

/**
 * @internal A whole file. An incomplete word at its end is left out.
 * @param buffer  is used if it is large enough
 */
export function readWords(disk: Disk, path: string, buffer?: ArrayBuffer): Int32Array {
  const file = disk.open(path, 'read');
  try {
    const { size } = file;
    const into = buffer !== undefined && buffer.byteLength >= size ? buffer : new ArrayBuffer(size);
    const bytes = file.read(0, new Uint8Array(into, 0, size));
    return new Int32Array(into, 0, bytes >> 2);
  } finally {
    file.close();
  }
}

/** @internal What a file contains. @throws TRAM_CORRUPT, TRAM_VERSION_MISMATCH */
export function checked<T>(path: string, offset: number, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    if (error.version === undefined) throw corrupt(path, offset, error.message);
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `the journal file ${path} has format ${error.version}, and this version of TRAM has format ${FORMAT_VERSION}`,
      {
        hint: 'Use the version of TRAM that has written the journal; docs/upgrading.md explains upgrades.',
      },
    );
  }
}

/** @internal @param what  completes "the journal file … at byte …" */
export function corrupt(path: string, offset: number, what: string): TramError {
  return new TramError(
    'TRAM_CORRUPT',
    `the journal file ${path} is corrupt at byte ${offset}: it ${what}`,
    {
      hint:
        'The disk has lost or changed data that was durable. Move the folder of this host away, replace the disk if it is ' +
        'broken, and start again: the host gets the state from the other members of its groups.',
    },
  );
}
