/**
 * A snapshot: the state of a member after a prefix of the log, as words. It holds how far the member has delivered, its
 * counters, ordered time, the replies it keeps, which sessions have ended, which entries went to each child last, and the
 * application's own snapshot.
 * snapshots.ts takes it at one member, transfers it and restores it at another, or at a later incarnation of the same one.
 *
 * Invariant: delivery never goes back, so only a snapshot of a longer prefix is restored.
 */
import { wordsFor } from '../../memory/words.js';
import { assert } from '../assert.js';
import type { Application } from '../edges.js';
import type { Member } from '../member.js';
import { readWide, writeWide } from '../wide.js';

/** A snapshot's words: these, the counters of each client, `sentTo`, the kept replies, the application's bytes. */
const FIXED = {
  nextToDeliver: 0,
  nextPosition: 2,
  deliveries: 3,
  nextFromParent: 5,
  stateBytes: 7,
  ownEntries: 8,
  orderedUs: 10,
  words: 12,
} as const;

/** The size is one word. */
const STATE_BYTES_MAX = 0x7ffffffc;

const CLIENT = { session: 0, nextPosition: 1, nextNumber: 2, firstLive: 4, words: 5 } as const;

export function takeSnapshot(member: Member, application: Application): Int32Array {
  const { delivered, replies, waiting, sentTo } = member;
  const state = application.snapshot();
  if (state.length > STATE_BYTES_MAX) {
    throw new RangeError(
      `a snapshot has at most ${STATE_BYTES_MAX} bytes, and this one has ${state.length}`,
    );
  }
  const clients = delivered.session.length;
  const fixed = FIXED.words + clients * CLIENT.words + sentTo.length * 2;
  const words = new Int32Array(
    fixed + replies.words.length + replies.indexWords.length + wordsFor(state.length),
  );
  writeWide(words, FIXED.nextToDeliver, member.nextToDeliver);
  words[FIXED.nextPosition] = member.nextPosition;
  writeWide(words, FIXED.deliveries, member.deliveries);
  writeWide(words, FIXED.nextFromParent, delivered.nextFromParent);
  words[FIXED.stateBytes] = state.length;
  writeWide(words, FIXED.ownEntries, delivered.ownEntries);
  writeWide(words, FIXED.orderedUs, delivered.orderedUs);
  let at: number = FIXED.words;
  for (let client = 0; client < clients; client++, at += CLIENT.words) {
    words[at + CLIENT.session] = delivered.session[client];
    words[at + CLIENT.nextPosition] = delivered.nextPosition[client];
    writeWide(words, at + CLIENT.nextNumber, delivered.nextNumber[client]);
    words[at + CLIENT.firstLive] = waiting.firstLive[client];
  }
  for (let place = 0; place < sentTo.length; place++, at += 2) writeWide(words, at, sentTo[place]);
  words.set(replies.words, at);
  at += replies.words.length;
  words.set(replies.indexWords, at);
  at += replies.indexWords.length;
  new Uint8Array(words.buffer, at * 4, state.length).set(state);
  return words;
}

/** The first index that a snapshot does not include. */
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
  member.nextToDeliver = nextToDeliver;
  member.nextPosition = words[FIXED.nextPosition];
  member.deliveries = readWide(words, FIXED.deliveries);
  delivered.nextFromParent = readWide(words, FIXED.nextFromParent);
  delivered.ownEntries = readWide(words, FIXED.ownEntries);
  delivered.orderedUs = readWide(words, FIXED.orderedUs);
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
  application.restore(
    new Uint8Array(words.buffer, words.byteOffset + at * 4, words[FIXED.stateBytes]),
    delivered.orderedUs,
  );
}
