/** Snapshots that are taken chunk by chunk. */
import { describe, expect, test } from 'vitest';
import type { Application } from '../../../src/protocol/edges.js';
import { joined, SnapshotTaking } from '../../../src/protocol/leadership/snapshot.js';
import { begun } from './one-replica.js';

const CHUNK_WORDS = 16;

function applicationOf(snapshot: Application['snapshot']): Application & { restored: number[] } {
  const restored: number[] = [];
  return {
    restored,
    deliver: () => undefined,
    tick: () => undefined,
    snapshot,
    restore: (bytes) => restored.splice(0, restored.length, ...bytes),
  };
}

function takingOf(snapshot: Application['snapshot']): SnapshotTaking {
  const application = applicationOf(snapshot);
  const { member } = begun(application, { opensEra: true });
  return new SnapshotTaking(member, application, CHUNK_WORDS);
}

function chunksOf(taking: SnapshotTaking): Int32Array[] {
  const chunks: Int32Array[] = [];
  while (!taking.isDone) {
    const chunk = taking.take();
    if (chunk !== undefined) chunks.push(chunk.slice());
  }
  return chunks;
}

/** What a member that begins with the snapshot restores. */
function restored(snapshot: Int32Array): number[] {
  const application = applicationOf(() => new Uint8Array(0));
  begun(application, { snapshot, opensEra: false });
  return application.restored;
}

const bytes = (count: number): number[] => Array.from({ length: count }, (_, i) => i & 0xff);

test('a snapshot tells how many marks there were, and which of them was complete', () => {
  const application = applicationOf(() => new Uint8Array(0));
  const { member } = begun(application, { opensEra: true });
  member.marks = 4;
  member.completeMark = 3;
  const snapshot = joined(chunksOf(new SnapshotTaking(member, application, CHUNK_WORDS)));
  const other = begun(application, { snapshot, opensEra: false }).member;
  expect([other.marks, other.completeMark]).toEqual([4, 3]);
});

describe.each([0, 1, 3, 4, 59, 60, 61, 64, 100])('a state of %i bytes', (count) => {
  const whole = joined(chunksOf(takingOf(() => Uint8Array.from(bytes(count)))));

  test('is restored', () => {
    expect(restored(whole)).toEqual(bytes(count));
  });

  test.each([1, 3, 64, 1000])('is the same in pieces of %i bytes', (size) => {
    const pieces = takingOf(function* () {
      const buffer = new Uint8Array(size);
      for (let at = 0; at < count; at += size) {
        const piece = bytes(count).slice(at, at + size);
        // All pieces are in one buffer.
        buffer.set(piece);
        yield buffer.subarray(0, piece.length);
      }
    });
    const chunks = chunksOf(pieces);
    expect(joined(chunks)).toEqual(whole);
    for (const chunk of chunks.slice(0, -1)) expect(chunk).toHaveLength(CHUNK_WORDS);
  });
});

test('the first piece is asked for at once, the others when they are needed', () => {
  let asked = 0;
  const taking = takingOf(function* () {
    for (let i = 0; i < 4; i++) {
      asked++;
      yield new Uint8Array(CHUNK_WORDS * 4);
    }
  });
  expect(asked).toBe(1);
  taking.take();
  expect(asked).toBe(1);
  chunksOf(taking);
  expect(asked).toBe(4);
});

test('a service that gives nothing but empty pieces does not stop its replica', () => {
  const taking = takingOf(function* () {
    for (;;) yield new Uint8Array(0);
  });
  while (taking.take() !== undefined) {
    // What is there already.
  }
  expect(taking.take()).toBeUndefined();
  expect(taking.isDone).toBe(false);
});

test('an iterator is told if the rest of its pieces is not needed', () => {
  let isClosed = false;
  const taking = takingOf(function* () {
    try {
      for (;;) yield new Uint8Array(1);
    } finally {
      isClosed = true;
    }
  });
  taking.close();
  expect(isClosed).toBe(true);
});
