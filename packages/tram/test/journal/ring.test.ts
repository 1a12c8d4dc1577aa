/** The ring to the journal thread: records come out as they went in, also across its end and across 2³¹ positions. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HostJournal } from '../../src/journal/host-journal.js';
import { JournalRing, KIND, type RingRecord } from '../../src/journal/ring.js';
import { LINE_WORDS } from '../../src/memory/words.js';

const GROUPS = 3;
const RING_WORDS = 64;

function pair(ringWords = RING_WORDS): { producer: JournalRing; consumer: JournalRing } {
  const words = new Int32Array(JournalRing.wordsFor(GROUPS, ringWords));
  return {
    producer: new JournalRing(words, GROUPS, true),
    consumer: new JournalRing(words, GROUPS, true),
  };
}

const EMPTY: RingRecord = { kind: 0, group: 0, index: 0, words: 0, position: 0 };

/** Nothing but a snapshot. */
const has = (index: number) => ({ snapshotIndex: index, end: index, lastMark: 0, pending: [] });

/** The next record and its contents, which are taken. */
function taken(
  ring: JournalRing,
): { group: number; index: number; contents: number[] } | undefined {
  const record = { ...EMPTY };
  if (!ring.peek(record)) return undefined;
  const contents = new Int32Array(record.words);
  ring.copyOut(record.position, contents, 0, record.words);
  ring.take(record);
  return { group: record.group, index: record.index, contents: Array.from(contents) };
}

test('a ring behaves as a queue with limited room', () => {
  const action = fc.oneof(
    fc.record({
      group: fc.nat(GROUPS - 1),
      index: fc.maxSafeNat(),
      contents: fc.array(fc.integer(), { maxLength: 40 }),
    }),
    fc.constant('take' as const),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const { producer, consumer } = pair();
      const queue: unknown[] = [];
      for (const one of actions) {
        if (one === 'take') {
          expect(taken(consumer)).toEqual(queue.shift());
          continue;
        }
        if (!producer.hasRoom(one.contents.length, 1)) continue;
        const words = Int32Array.from([0, ...one.contents]);
        producer.put(KIND.piece, one.group, one.index, words, 1, one.contents.length);
        queue.push(one);
      }
      while (queue.length > 0) expect(taken(consumer)).toEqual(queue.shift());
      expect(taken(consumer)).toBeUndefined();
      expect(producer.hasRoom(RING_WORDS - 7, 1)).toBe(true);
    }),
  );
});

test('a full ring has no room until something is taken', () => {
  const { producer, consumer } = pair();
  const contents = new Int32Array(20);
  while (producer.hasRoom(20, 1)) producer.put(KIND.piece, 0, 0, contents, 0, 20);
  expect(producer.isQuarterFull).toBe(true);
  taken(consumer);
  expect(producer.hasRoom(20, 1)).toBe(true);
  while (taken(consumer) !== undefined);
  expect(producer.isQuarterFull).toBe(false);
});

test('nothing is put where there is no room', () => {
  const { producer } = pair();
  const contents = new Int32Array(20);
  while (producer.hasRoom(20, 1)) producer.put(KIND.piece, 0, 0, contents, 0, 20);
  expect(() => producer.put(KIND.piece, 0, 0, contents, 0, 20)).toThrow('there is room');
});

test('small records find the room that is kept for them, whatever all groups put before', () => {
  const actions = [
    'entries',
    'leave out',
    'stable',
    'mark',
    'complete',
    'begin',
    'begin at mark',
    'piece',
    'end',
    'drop',
    'take',
  ] as const;
  const step = fc.record({
    action: fc.constantFrom(...actions),
    group: fc.nat(GROUPS - 1),
    words: fc.integer({ min: 2, max: 32 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 1000 }), (steps) => {
      const { producer, consumer } = pair(256);
      const options = { isAwaited: true, snapshotBytes: 1, recordWordsMax: 32 };
      const starts = Array.from({ length: GROUPS }, (_, group) => ({ group, has: has(1) }));
      const journal = new HostJournal(producer, options, starts);
      const taking = new Set<number>();
      let news = 0;
      for (const { action, group, words } of steps) {
        const part = journal.group(group);
        const isTaking = taking.has(group);
        const begin = (isAtMark: boolean): void => {
          part.beginSnapshot(part.next, ++news, isAtMark);
          taking.add(group);
        };
        const end = (ends: () => void): void => {
          if (taking.delete(group)) ends();
        };
        const entry = new Int32Array(words).fill(words);
        if (action === 'entries' && part.hasRoom(words)) part.add(part.next, entry, 0, words);
        else if (action === 'leave out') part.leaveOut();
        else if (action === 'stable') part.stable(++news);
        else if (action === 'mark') part.mark(part.next, ++news);
        else if (action === 'complete') part.complete(++news);
        else if (action === 'begin at mark' && part.wantsMark) {
          part.complete(++news);
          begin(true);
        } else if (action === 'begin' && !isTaking && part.hasRoomForPiece(32)) begin(false);
        else if (action === 'piece' && isTaking && part.hasRoomForPiece(words))
          part.addPiece(entry);
        else if (action === 'end') end(() => part.endSnapshot());
        else if (action === 'drop') end(() => part.dropSnapshot());
        else if (action === 'take') taken(consumer);
      }
    }),
    { numRuns: 300 },
  );
});

describe('the journal thread is woken', () => {
  /** As `ring.ts` has it: 1 while the journal thread sleeps. */
  const IS_ASLEEP = 2 * LINE_WORDS;

  function asleep(isEager: boolean) {
    const words = new Int32Array(JournalRing.wordsFor(GROUPS, RING_WORDS));
    const ring = new JournalRing(words, GROUPS, isEager);
    words[IS_ASLEEP] = 1;
    const put = (kind: number, count = 0): void =>
      ring.put(kind, 0, 1, new Int32Array(count), 0, count);
    return { ring, put, isAsleep: () => words[IS_ASLEEP] === 1 };
  }

  test('with `always`: at the end of a turn in which something was put', () => {
    const { ring, put, isAsleep } = asleep(true);
    ring.wakeConsumer();
    expect(isAsleep()).toBe(true);
    put(KIND.entries, 2);
    put(KIND.stable);
    expect(isAsleep()).toBe(true);
    ring.wakeConsumer();
    expect(isAsleep()).toBe(false);
  });

  test('not for news that nobody waits for', () => {
    const { ring, put, isAsleep } = asleep(true);
    put(KIND.stable);
    ring.wakeConsumer();
    expect(isAsleep()).toBe(true);
  });

  test('with `everySecond`: as soon as a quarter of the ring is full', () => {
    const { ring, put, isAsleep } = asleep(false);
    put(KIND.entries, 2);
    ring.wakeConsumer();
    expect(isAsleep()).toBe(true);
    put(KIND.entries, 2);
    ring.wakeConsumer();
    expect(isAsleep()).toBe(false);
  });

  test('to flush, and to end', () => {
    for (const end of ['askToFlush', 'close'] as const) {
      const { ring, isAsleep } = asleep(false);
      ring[end]();
      expect(isAsleep()).toBe(false);
    }
  });
});

test('published indices may be beyond 2³²', () => {
  const { producer, consumer } = pair();
  const start = 2 ** 32 - 2;
  const options = { isAwaited: true, snapshotBytes: 4096, recordWordsMax: 32 };
  const starts = [{ group: 1, has: has(start) }];
  consumer.publishDurable(1, start);
  const journal = new HostJournal(producer, options, starts).group(1);
  expect(journal.durable).toBe(start);
  consumer.publishDurable(1, start + 5);
  expect(journal.durable).toBe(start + 5);
});

describe('the journal of a group', () => {
  function journalOf(snapshotBytes = 400): { journal: HostJournal; ring: JournalRing } {
    const { producer, consumer } = pair(1024);
    const options = { isAwaited: true, snapshotBytes, recordWordsMax: 32 };
    const journal = new HostJournal(producer, options, [{ group: 0, has: has(2) }]);
    return { journal, ring: consumer };
  }

  /** So many entries of ten words. */
  function entries(count: number): Int32Array {
    return Int32Array.from({ length: 10 * count }, (_, i) => (i % 10 === 0 ? 10 : i));
  }

  test('is durable as far as it was, before the journal thread has run', () => {
    // From 2³¹ on, the low word of an index is nearer to the next multiple of 2³² than to 0.
    for (const end of [2, 2 ** 31 - 1, 3_000_000_000, 2 ** 32 + 5]) {
      const { producer } = pair(1024);
      const options = { isAwaited: true, snapshotBytes: 400, recordWordsMax: 32 };
      const starts = [{ group: 0, has: { ...has(2), end } }];
      expect(new HostJournal(producer, options, starts).group(0).durable).toBe(end);
    }
  });

  test('ignores entries that it has, from whichever replica they come', () => {
    const { journal, ring } = journalOf();
    const group = journal.group(0);
    group.add(2, entries(3), 0, 30);
    group.add(2, entries(3), 0, 30);
    group.add(3, entries(3), 0, 30);
    expect(group.next).toBe(6);
    expect(taken(ring)).toMatchObject({ index: 2, contents: { length: 30 } });
    expect(taken(ring)).toMatchObject({ index: 5, contents: { length: 10 } });
    expect(taken(ring)).toBeUndefined();
  });

  test('splits long stretches between entries', () => {
    const { journal, ring } = journalOf();
    journal.group(0).add(2, entries(7), 0, 70);
    expect(taken(ring)).toMatchObject({ index: 2, contents: { length: 30 } });
    expect(taken(ring)).toMatchObject({ index: 5, contents: { length: 30 } });
    expect(taken(ring)).toMatchObject({ index: 8, contents: { length: 10 } });
  });

  test('refuses a gap', () => {
    const { journal } = journalOf();
    expect(() => journal.group(0).add(4, entries(1), 0, 10)).toThrow('without a gap');
  });

  test('wants a snapshot after so many bytes, and no second one before the first counts', () => {
    const { journal, ring } = journalOf();
    const group = journal.group(0);
    group.add(2, entries(9), 0, 90);
    expect(group.wantsSnapshot).toBe(false);
    group.add(11, entries(1), 0, 10);
    expect(group.wantsSnapshot).toBe(true);
    group.beginSnapshot(12, 0, false);
    group.add(12, entries(10), 0, 100);
    expect(group.wantsSnapshot).toBe(false);
    group.endSnapshot();
    expect(group.wantsSnapshot).toBe(false);
    ring.publishSnapshot(0, 12);
    while (taken(ring) !== undefined);
    expect(group.wantsSnapshot).toBe(true);
  });

  test('wants a mark after entries were left out, and can begin its snapshot although the ring is full', () => {
    const { journal, ring } = journalOf();
    const group = journal.group(0);
    for (let index = 2; group.hasRoom(90); index += 9) group.add(index, entries(9), 0, 90);
    const { next } = group;
    expect(group.isBusy).toBe(true);
    group.leaveOut();
    // Entries that are left out need no room.
    expect(group.hasRoom(90)).toBe(true);
    group.add(next, entries(1), 0, 10);
    expect(group.next).toBe(next);
    // At each mark it begins a snapshot, and drops it, until there is no room for another one.
    let begun = 0;
    for (; group.wantsMark; begun++) {
      group.complete(begun + 1);
      group.beginSnapshot(next, begun + 2, true);
      group.dropSnapshot();
    }
    expect(begun).toBeGreaterThan(0);
    while (taken(ring) !== undefined);
    expect(group.isBusy).toBe(false);
    // It has grown too, but a snapshot of any state does not help.
    expect(group).toMatchObject({ wantsMark: true, wantsSnapshot: false });
    group.beginSnapshot(next + 5, 1, true);
    expect(group.next).toBe(next + 5);
    group.dropSnapshot();
    expect(group.wantsMark).toBe(true);
    group.add(next + 5, entries(1), 0, 10);
    expect(group.next).toBe(next + 5);
  });

  test('wants a snapshot later while the disk is behind', () => {
    const { journal, ring } = journalOf();
    const group = journal.group(0);
    group.add(2, entries(30), 0, 300);
    expect(group).toMatchObject({ isBusy: true, wantsSnapshot: false });
    group.add(32, entries(10), 0, 100);
    expect(group.wantsSnapshot).toBe(true);
    while (taken(ring) !== undefined);
    expect(group).toMatchObject({ isBusy: false, wantsSnapshot: true });
  });

  test('tells of a mark once, even if entries find no room; and not while entries are left out', () => {
    const { journal, ring } = journalOf();
    const group = journal.group(0);
    for (let index = 2; group.hasRoom(10); index++) group.add(index, entries(1), 0, 10);
    const { next } = group;
    // What is stable is told as long as there is room for it besides.
    for (let index = 1000; index < 1100; index++) group.stable(index);
    group.mark(next, 1);
    group.mark(next, 1);
    group.complete(1);
    group.complete(1);
    let found = taken(ring);
    while (found !== undefined && (found.contents.length >= 10 || found.index >= 1000))
      found = taken(ring);
    expect(found).toEqual({ group: 0, index: next, contents: [1] });
    expect(taken(ring)).toEqual({ group: 0, index: 1, contents: [] });
    expect(taken(ring)).toBeUndefined();
    group.leaveOut();
    group.mark(next + 1, 2);
    expect(taken(ring)).toBeUndefined();
  });

  test('can always end a snapshot, although entries find no room', () => {
    const { journal } = journalOf();
    const group = journal.group(0);
    group.beginSnapshot(2, 0, false);
    for (let index = 2; group.hasRoom(10); index++) group.add(index, entries(1), 0, 10);
    group.endSnapshot();
    group.beginSnapshot(3, 0, false);
    group.dropSnapshot();
  });
});
