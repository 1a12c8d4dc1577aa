/**
 * The snapshots that the replicas of a host leave when it stops in an orderly way, for its next start. A host that ends in
 * another way leaves none, and the older ones stay: an old snapshot is still right, and saves the state of a group if all
 * its hosts crash before its log has dropped entries after it.
 *
 * Processes and machines keep each snapshot in a file beside the arena. It is written under another name first, so it is
 * there as a whole or not at all. Its header binds it to its cluster and replica. Threads hand snapshots to the thread that
 * has started them (`starters.ts`).
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { ARENA } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import { leftSnapshotPath } from '../memory/processes/arena-file.js';

export interface LeftSnapshots {
  /** What the replica left last; undefined if it left nothing, or nothing that can be used. */
  find(participant: ParticipantId): Int32Array | undefined;
  /** @throws if there is no room for it; then the one before stays */
  keep(participant: ParticipantId, snapshot: Int32Array): void;
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
  participant: 2,
  /** How many words the snapshot has. */
  words: 3,
  /** A hash of the cluster's description. */
  cluster: 4,
  /** Over all of the above, and the snapshot. */
  checksum: 12,
  size: 20,
} as const;

export class LeftFiles implements LeftSnapshots {
  private readonly cluster: Int32Array;

  /**
   * @param path  the path of the arena
   * @param words  the words of the arena
   * @param complain  is told why a file can't be used
   */
  constructor(
    private readonly path: string,
    words: Int32Array,
    private readonly complain: (text: string) => void,
  ) {
    const bytes = words[ARENA.descriptionBytes];
    const start = words.byteOffset + ARENA.description * 4;
    this.cluster = hashOf(new Uint8Array(words.buffer, start, bytes).slice());
  }

  find(participant: ParticipantId): Int32Array | undefined {
    const path = leftSnapshotPath(this.path, participant);
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
      const cluster = header.subarray(HEADER.cluster, HEADER.cluster + HASH_WORDS);
      if (!areEqual(cluster, this.cluster) || header[HEADER.participant] !== participant) {
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

  keep(participant: ParticipantId, snapshot: Int32Array): void {
    const path = leftSnapshotPath(this.path, participant);
    const draft = `${path}.draft`;
    const header = new Int32Array(HEADER.size);
    header[HEADER.magic] = MAGIC;
    header[HEADER.version] = VERSION;
    header[HEADER.participant] = participant;
    header[HEADER.words] = snapshot.length;
    header.set(this.cluster, HEADER.cluster);
    header.set(checksumOf(header, snapshot), HEADER.checksum);
    const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants;
    const descriptor = openSync(draft, O_CREAT | O_NOFOLLOW | O_TRUNC | O_WRONLY, 0o600);
    try {
      writeWords(descriptor, header);
      writeWords(descriptor, snapshot);
      renameSync(draft, path);
    } catch (error) {
      unlinkSync(draft);
      throw error;
    } finally {
      closeSync(descriptor);
    }
  }

  discard(participant: ParticipantId): void {
    try {
      unlinkSync(leftSnapshotPath(this.path, participant));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

function checksumOf(header: Int32Array, snapshot: Int32Array): Int32Array {
  return hashOf(bytesOf(header.subarray(0, HEADER.checksum)), bytesOf(snapshot));
}

function hashOf(...parts: Uint8Array[]): Int32Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Int32Array(new Uint8Array(hash.digest()).buffer);
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function areEqual(a: Int32Array, b: Int32Array): boolean {
  return a.every((word, i) => word === b[i]);
}

/** A call of the system moves at most 2 GiB, and may move less. */
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
