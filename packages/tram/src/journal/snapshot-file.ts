/**
 * Writes and reads files of snapshots. A snapshot is written to a draft, made durable, and renamed. So a file with another
 * name than a draft's is complete.
 */
import type { Disk, DiskFile } from './disk.js';
import {
  bytesOf,
  checksumOf,
  decodeSnapshotHeader,
  encodeSnapshotHeader,
  eraFolder,
  SECTOR_BYTES,
  SECTOR_WORDS,
  type SnapshotHeader,
  type SnapshotName,
  snapshotPath,
} from './format.js';
import { checked, corrupt } from './identity.js';

/** @internal */
export type SnapshotSubject = Omit<SnapshotHeader, 'words' | 'crc'>;

/** @internal No mark of its era comes before it. */
export type OpeningSubject = Omit<SnapshotSubject, 'marks' | 'isAtMark'>;

/** @internal A snapshot that is being written. Each method makes one call to the disk. */
export class SnapshotDraft {
  /** Since the last sync. */
  unsyncedBytes = 0;
  private readonly file: DiskFile;
  private words = 0;
  private crc = 0;

  constructor(
    private readonly disk: Disk,
    readonly subject: SnapshotSubject,
    private readonly name: SnapshotName = subject.index,
  ) {
    this.file = disk.open(this.path('draft'), 'create');
  }

  add(piece: Int32Array): void {
    const bytes = bytesOf(piece);
    this.file.write(SECTOR_BYTES + this.words * 4, bytes);
    this.words += piece.length;
    this.crc = checksumOf(bytes, this.crc);
    this.unsyncedBytes += bytes.length;
  }

  writeHeader(): void {
    const { subject, words, crc } = this;
    this.file.write(0, encodeSnapshotHeader({ ...subject, words, crc }));
  }

  sync(): void {
    this.file.sync();
    this.unsyncedBytes = 0;
  }

  /** After `sync`. The new name is durable after a sync of the folder. */
  rename(state: 'pending' | 'snapshot'): void {
    this.file.close();
    this.disk.rename(this.path('draft'), this.path(state));
  }

  remove(): void {
    this.file.close();
    this.disk.remove(this.path('draft'));
  }

  close(): void {
    this.file.close();
  }

  private path(state: 'draft' | 'pending' | 'snapshot'): string {
    const { era, group } = this.subject;
    return snapshotPath(era, group, this.name, state);
  }
}

/**
 * @internal Writes the snapshot with which a group opens an era. It counts at once, and is durable when this returns.
 * @param words  none if the service starts as it is
 */
export function writeOpening(disk: Disk, subject: OpeningSubject, words?: Int32Array): void {
  const { era, group } = subject;
  disk.remove(snapshotPath(era, group, 'opening', 'draft'));
  const draft = new SnapshotDraft(disk, { ...subject, marks: 0, isAtMark: false }, 'opening');
  if (words !== undefined) draft.add(words);
  draft.writeHeader();
  draft.sync();
  draft.rename('snapshot');
  disk.syncFolder(eraFolder(era));
}

/** @internal @throws TRAM_CORRUPT */
export function readSnapshotHeader(disk: Disk, path: string): SnapshotHeader {
  const file = disk.open(path, 'read');
  try {
    const words = new Int32Array(SECTOR_WORDS);
    const bytes = file.read(0, bytesOf(words));
    return checked(path, 0, () => decodeSnapshotHeader(words.subarray(0, bytes >> 2)));
  } finally {
    file.close();
  }
}

/** @internal The whole state, or its first words. @throws TRAM_CORRUPT */
export function readSnapshotWords(
  disk: Disk,
  path: string,
  { words: size, crc }: SnapshotHeader,
  count: number = size,
): Int32Array {
  const file = disk.open(path, 'read');
  try {
    const words = new Int32Array(Math.min(count, size));
    const bytes = bytesOf(words);
    if (file.read(SECTOR_BYTES, bytes) < bytes.length) {
      throw corrupt(path, file.size, 'ends too early');
    }
    if (words.length === size && checksumOf(bytes) !== crc) {
      throw corrupt(path, SECTOR_BYTES, 'has a state with a wrong checksum');
    }
    return words;
  } finally {
    file.close();
  }
}
