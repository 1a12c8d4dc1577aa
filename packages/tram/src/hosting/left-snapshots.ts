/**
 * The snapshots that the replicas of a host leave when it stops in an orderly way, for its next start. A host that ends in
 * another way leaves none, and the older ones stay: an old snapshot is still right, and saves the state of a group if all
 * its hosts crash before its log has dropped entries after it.
 *
 * Processes and machines keep each snapshot in a file beside the arena. It is written under another name first, so it is
 * there as a whole or not at all. Its header binds it to its replica and to this very arena, not to another that was at
 * the same path: a state of an earlier life of the cluster is wrong. Threads hand snapshots to the thread that has
 * started them (`starters.ts`).
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ARENA, ARENA_VERSION, LIFE_WORDS } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import {
  type ArenaFile,
  leftSnapshotPath,
  removeIfThere,
  space,
} from '../memory/processes/arena-file.js';

export interface LeftSnapshots {
  /** What the replica left last; undefined if it left nothing, or nothing that can be used. */
  find(participant: ParticipantId): Int32Array | undefined;
  /**
   * Returns false if the memory was removed meanwhile, and nothing is kept.
   * @throws if there is no room for it; then the one before stays
   */
  keep(participant: ParticipantId, snapshot: Int32Array): boolean;
  /** The replica begins with empty memory: what it left belongs to memory that is gone. */
  discard(participant: ParticipantId): void;
}

/** "LEFT" */
const MAGIC = 0x5446454c;
/** Incremented whenever the header or the words of a snapshot change their meaning. */
const VERSION = 1;
const HASH_WORDS = 8;

/** The header. The words of the snapshot follow it. */
const HEADER = {
  magic: 0,
  version: 1,
  /** How many words the snapshot has. */
  words: 2,
  /** A hash of what binds it: the arena's life, its version, and the replica. */
  origin: 3,
  /** Over all of the above, and the snapshot. */
  checksum: 11,
  size: 19,
} as const;

export class LeftFiles implements LeftSnapshots {
  /** @param complain  is told why a file can't be used */
  constructor(
    private readonly arena: Pick<ArenaFile, 'path' | 'words' | 'isAtPath'>,
    private readonly complain: (text: string) => void,
  ) {}

  find(participant: ParticipantId): Int32Array | undefined {
    const path = leftSnapshotPath(this.arena.path, participant);
    // A host that was killed while it left a snapshot has not finished it.
    removeIfThere(draftOf(path));
    try {
      return this.read(path, participant);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') this.complain(`${path} is ignored: ${message}`);
      return undefined;
    }
  }

  private read(path: string, participant: ParticipantId): Int32Array {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { size } = fstatSync(descriptor);
      if (size < HEADER.size * 4 || size % 4 !== 0) throw new Error(`it has ${size} bytes`);
      const header = readWords(descriptor, HEADER.size, 0);
      if (header[HEADER.magic] !== MAGIC) throw new Error('it is not a snapshot');
      if (header[HEADER.version] !== VERSION) {
        throw new Error(`it has format ${header[HEADER.version]}, and this is format ${VERSION}`);
      }
      if (header[HEADER.words] !== size / 4 - HEADER.size) throw new Error('it is incomplete');
      const origin = header.subarray(HEADER.origin, HEADER.origin + HASH_WORDS);
      if (!areEqual(origin, this.originOf(participant))) {
        throw new Error('another cluster or replica left it');
      }
      const snapshot = readWords(descriptor, header[HEADER.words], HEADER.size);
      const checksum = header.subarray(HEADER.checksum, HEADER.checksum + HASH_WORDS);
      if (!areEqual(checksum, checksumOf(header, snapshot))) throw new Error('it is corrupt');
      return snapshot;
    } finally {
      closeSync(descriptor);
    }
  }

  keep(participant: ParticipantId, snapshot: Int32Array): boolean {
    const path = leftSnapshotPath(this.arena.path, participant);
    const draft = draftOf(path);
    removeIfThere(draft);
    this.makeRoom(path, HEADER.size * 4 + snapshot.byteLength);
    const header = new Int32Array(HEADER.size);
    header[HEADER.magic] = MAGIC;
    header[HEADER.version] = VERSION;
    header[HEADER.words] = snapshot.length;
    header.set(this.originOf(participant), HEADER.origin);
    header.set(checksumOf(header, snapshot), HEADER.checksum);
    const { O_CREAT, O_EXCL, O_WRONLY } = constants;
    const descriptor = openSync(draft, O_CREAT | O_EXCL | O_WRONLY, 0o600);
    try {
      writeWords(descriptor, header);
      writeWords(descriptor, snapshot);
      renameSync(draft, path);
    } catch (error) {
      removeIfThere(draft);
      throw error;
    } finally {
      closeSync(descriptor);
    }
    // The process that removes the arena first removes the files that are beside it. This one may have come too late for that.
    if (this.arena.isAtPath()) return true;
    removeIfThere(path);
    return false;
  }

  /**
   * A write that can't succeed would take all free space from others before it fails, so look first. If there is no room
   * for the old file and the new one together, the old one goes first. If the host is killed at that moment, it has left
   * neither. But otherwise it would not leave the new one for certain, and the older a snapshot is, the less probable is a
   * log that continues it.
   */
  private makeRoom(path: string, bytes: number): void {
    const { freeBytes } = space(dirname(path));
    const oldBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > freeBytes + oldBytes) {
      throw new Error(`it takes ${bytes} bytes, and ${dirname(path)} has ${freeBytes} free`);
    }
    if (bytes > freeBytes) removeIfThere(path);
  }

  discard(participant: ParticipantId): void {
    const path = leftSnapshotPath(this.arena.path, participant);
    removeIfThere(draftOf(path));
    removeIfThere(path);
  }

  private originOf(participant: ParticipantId): Int32Array {
    const life = this.arena.words.slice(ARENA.life, ARENA.life + LIFE_WORDS);
    return hashOf(Int32Array.of(ARENA_VERSION, participant, ...life));
  }
}

function draftOf(path: string): string {
  return `${path}.draft`;
}

function checksumOf(header: Int32Array, snapshot: Int32Array): Int32Array {
  return hashOf(header.subarray(0, HEADER.checksum), snapshot);
}

function hashOf(...parts: Int32Array[]): Int32Array {
  const hash = createHash('sha256');
  for (const part of parts) {
    const bytes = bytesOf(part);
    for (let done = 0; done < bytes.length; done += PIECE_BYTES) {
      hash.update(bytes.subarray(done, done + PIECE_BYTES));
    }
  }
  return new Int32Array(new Uint8Array(hash.digest()).buffer);
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function areEqual(a: Int32Array, b: Int32Array): boolean {
  return a.every((word, i) => word === b[i]);
}

/** A call moves or hashes less than 2 GiB. One of the system may move even less than it was asked to. */
const PIECE_BYTES = 2 ** 30;

function readWords(descriptor: number, count: number, at: number): Int32Array {
  const words = new Int32Array(count);
  const bytes = bytesOf(words);
  for (let done = 0; done < bytes.length; ) {
    const piece = Math.min(PIECE_BYTES, bytes.length - done);
    const read = readSync(descriptor, bytes, done, piece, at * 4 + done);
    if (read === 0) throw new Error('it is incomplete');
    done += read;
  }
  return words;
}

function writeWords(descriptor: number, words: Int32Array): void {
  const bytes = bytesOf(words);
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(descriptor, bytes, done, Math.min(PIECE_BYTES, bytes.length - done));
  }
}
