/**
 * A snapshot: the state of a member after a prefix of the log, as words. It holds how far the member has delivered, its
 * counters, ordered time, how many marks it has seen, the replies it keeps, which sessions have ended, which entries went to each child last, and the
 * application's own snapshot.
 * snapshots.ts takes it at one member, transfers it and restores it at another, or at a later incarnation of the same one;
 * journal-snapshots.ts hands it to the journal.
 *
 *   ┌───────┬─────────────────────────┬────────┬──────────────┬─────────────────────┬────────────┐
 *   │ FIXED │ counters of each client │ sentTo │ kept replies │ application's bytes │ their size │
 *   └───────┴─────────────────────────┴────────┴──────────────┴─────────────────────┴────────────┘
 *
 * The application may give its bytes in pieces, while deliveries go on. All words before them are copied when the snapshot
 * is begun, so all of it is the state at one index.
 *
 * Invariant: delivery never goes back, so only a snapshot of a longer prefix is restored.
 */
import { wordsFor } from '../../memory/words.js';
import { assert } from '../assert.js';
import type { Application } from '../edges.js';
import type { Member } from '../member.js';
import { readWide, writeWide } from '../wide.js';

const FIXED = {
  nextToDeliver: 0,
  nextPosition: 2,
  deliveries: 3,
  nextFromParent: 5,
  /** Where the application's bytes begin. */
  stateAt: 7,
  relayed: 8,
  orderedUs: 10,
  marks: 12,
  completeMark: 13,
  words: 14,
} as const;

const CLIENT = { session: 0, nextPosition: 1, nextNumber: 2, firstLive: 4, words: 5 } as const;

/** The size is one word. */
const STATE_BYTES_MAX = 0x7ffffffc;

/** At most so many pieces are asked for at a time: they may be empty. */
const PIECES_MAX = 256;
/** How much of a snapshot is taken at a time if it is taken at once. */
const WHOLE_CHUNK_WORDS = 2 ** 18;

/** A snapshot that is being taken, chunk by chunk. Each chunk but the last is full. */
export class SnapshotTaking {
  /** The first index that it does not include. */
  readonly index: number;
  private readonly pieces: Iterator<Uint8Array> | undefined;
  private stateBytes = 0;
  /** What has yet to be copied into chunks: the first part from `partAt` on, and the parts after it. */
  private readonly parts: Uint8Array[];
  private partAt = 0;
  /** Is the end of the snapshot among the parts, or was it? */
  private hasEnd = false;
  private readonly chunk: Uint8Array;
  private chunkBytes = 0;

  /** @throws if the service does */
  constructor(member: Member, application: Application, chunkWords: number) {
    this.index = member.nextToDeliver;
    this.chunk = new Uint8Array(chunkWords * 4);
    const state = application.snapshot();
    this.parts = [bytesOf(headOf(member))];
    if (state instanceof Uint8Array) {
      this.addPiece(state);
      this.addEnd();
    } else {
      this.pieces = state[Symbol.iterator]();
      // A generator runs up to its first piece now, where it can take its view of the state.
      this.pull();
    }
  }

  /** Have all chunks been taken? */
  get isDone(): boolean {
    return this.hasEnd && this.parts.length === 0;
  }

  /**
   * The next chunk, which is valid until the next call. Undefined if the pieces are so small that it takes too many of them
   * to fill it: then call it again in a later step.
   * @throws if the service does. Then the snapshot can't be continued.
   */
  take(): Int32Array | undefined {
    const { chunk, parts } = this;
    let pulled = 0;
    while (this.chunkBytes < chunk.length && !this.isDone) {
      if (parts.length > 0) this.fill();
      else if (pulled++ < PIECES_MAX) this.pull();
      else return undefined;
    }
    const words = new Int32Array(chunk.buffer, 0, this.chunkBytes >> 2);
    this.chunkBytes = 0;
    return words;
  }

  private fill(): void {
    const { chunk, parts, partAt, chunkBytes } = this;
    const [part] = parts;
    const count = Math.min(chunk.length - chunkBytes, part.length - partAt);
    chunk.set(part.subarray(partAt, partAt + count), chunkBytes);
    this.chunkBytes += count;
    this.partAt += count;
    if (this.partAt < part.length) return;
    parts.shift();
    this.partAt = 0;
  }

  private pull(): void {
    const { done, value } = this.pieces!.next();
    if (done) this.addEnd();
    else this.addPiece(value);
  }

  /** A copy: the application may change or reuse the piece. */
  private addPiece(piece: Uint8Array): void {
    this.stateBytes += piece.length;
    if (this.stateBytes > STATE_BYTES_MAX) {
      throw new RangeError(
        `a snapshot has at most ${STATE_BYTES_MAX} bytes, and this one has at least ${this.stateBytes}`,
      );
    }
    this.parts.push(piece.slice());
  }

  private addEnd(): void {
    const padding = wordsFor(this.stateBytes) * 4 - this.stateBytes;
    this.parts.push(new Uint8Array(padding), bytesOf(Int32Array.of(this.stateBytes)));
    this.hasEnd = true;
  }

  /** Nobody wants the rest. The application may forget its view of the state. @throws if the service does */
  close(): void {
    if (!this.hasEnd) this.pieces?.return?.();
  }
}

/** Everything but the application's bytes. */
function headOf(member: Member): Int32Array {
  const { delivered, replies, waiting, sentTo } = member;
  const clients = delivered.session.length;
  const words = new Int32Array(stateAtOf(member));
  writeWide(words, FIXED.nextToDeliver, member.nextToDeliver);
  words[FIXED.nextPosition] = member.nextPosition;
  writeWide(words, FIXED.deliveries, member.deliveries);
  writeWide(words, FIXED.nextFromParent, delivered.nextFromParent);
  words[FIXED.stateAt] = words.length;
  writeWide(words, FIXED.relayed, member.relayed);
  writeWide(words, FIXED.orderedUs, delivered.orderedUs);
  words[FIXED.marks] = member.marks;
  words[FIXED.completeMark] = member.completeMark;
  let at: number = FIXED.words;
  for (let client = 0; client < clients; client++, at += CLIENT.words) {
    words[at + CLIENT.session] = delivered.session[client];
    words[at + CLIENT.nextPosition] = delivered.nextPosition[client];
    writeWide(words, at + CLIENT.nextNumber, delivered.nextNumber[client]);
    words[at + CLIENT.firstLive] = waiting.firstLive[client];
  }
  for (let place = 0; place < sentTo.length; place++, at += 2) writeWide(words, at, sentTo[place]);
  words.set(replies.words, at);
  words.set(replies.indexWords, at + replies.words.length);
  return words;
}

function stateAtOf({ delivered, replies, sentTo }: Member): number {
  const counters = delivered.session.length * CLIENT.words + sentTo.length * 2;
  return FIXED.words + counters + replies.words.length + replies.indexWords.length;
}

function bytesOf(words: Int32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** The whole snapshot at once. @throws if the service does */
export function takeSnapshot(member: Member, application: Application): Int32Array {
  const taking = new SnapshotTaking(member, application, WHOLE_CHUNK_WORDS);
  const chunks: Int32Array[] = [];
  while (!taking.isDone) {
    const chunk = taking.take();
    if (chunk !== undefined) chunks.push(chunk.slice());
  }
  return joined(chunks);
}

/** All chunks of a snapshot, put together. */
export function joined(chunks: readonly Int32Array[]): Int32Array {
  const words = new Int32Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    words.set(chunk, at);
    at += chunk.length;
  }
  return words;
}

/** The first index that a snapshot does not include. Its first words are enough. */
export function indexOf(words: Int32Array): number {
  return readWide(words, FIXED.nextToDeliver);
}

/** How many words of a snapshot it takes to read its fixed part. */
export const SNAPSHOT_HEAD_WORDS: number = FIXED.words;

/** `Counters.nextFromParent` at the snapshot. @param words  at least its first `SNAPSHOT_HEAD_WORDS` */
export function nextFromParentOf(words: Int32Array): number {
  return readWide(words, FIXED.nextFromParent);
}

export function restoreSnapshot(words: Int32Array, member: Member, application: Application): void {
  const { delivered, replies, waiting, sentTo } = member;
  const nextToDeliver = indexOf(words);
  assert(nextToDeliver > member.nextToDeliver, 'delivery never goes back');
  assert(
    words[FIXED.stateAt] === stateAtOf(member),
    'a snapshot is restored in a cluster of the same sizes',
  );
  member.nextToDeliver = nextToDeliver;
  member.nextPosition = words[FIXED.nextPosition];
  member.deliveries = readWide(words, FIXED.deliveries);
  member.relayed = readWide(words, FIXED.relayed);
  delivered.nextFromParent = readWide(words, FIXED.nextFromParent);
  delivered.orderedUs = readWide(words, FIXED.orderedUs);
  member.marks = words[FIXED.marks];
  member.completeMark = words[FIXED.completeMark];
  let at: number = FIXED.words;
  for (let client = 0; client < delivered.session.length; client++, at += CLIENT.words) {
    delivered.session[client] = words[at + CLIENT.session];
    delivered.nextPosition[client] = words[at + CLIENT.nextPosition];
    delivered.nextNumber[client] = readWide(words, at + CLIENT.nextNumber);
    waiting.firstLive[client] = words[at + CLIENT.firstLive];
  }
  for (let place = 0; place < sentTo.length; place++, at += 2) sentTo[place] = readWide(words, at);
  const indexAt = at + replies.words.length;
  const end = indexAt + replies.indexWords.length;
  replies.load(words.subarray(at, indexAt), words.subarray(indexAt, end));
  at = end;
  waiting.rebuild(replies);
  const stateBytes = words[words.length - 1];
  application.restore(
    new Uint8Array(words.buffer, words.byteOffset + at * 4, stateBytes),
    delivered.orderedUs,
  );
}
