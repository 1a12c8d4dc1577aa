/** Slots: each whole record is seen once, and seen as it was when it was whole. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Memory } from '../../../src/memory/contract.js';
import { FRAME_WORDS, HEAD_WORDS } from '../../../src/memory/record.js';
import { SlotReader, SlotWriter } from '../../../src/protocol/leadership/slots.js';
import { writeWide } from '../../../src/protocol/wide.js';

const AT = 5;
const BODY_WORDS_MAX = 6;

interface Post {
  peer: number;
  to: number;
  words: Int32Array;
}

/** A memory that keeps what is posted, for the test to land as it likes. */
class Postbox {
  readonly posts: Post[] = [];

  get memory(): Memory {
    const write: Memory['write'] = (peer, to, source, from, count) => {
      this.posts.push({ peer, to, words: source.slice(from, from + count) });
    };
    return { write } as Memory;
  }
}

interface RecordDraw {
  body: number[];
  epoch: number;
  number: number;
}

function recordWords({ body, epoch, number }: RecordDraw): Int32Array {
  const postbox = new Postbox();
  const writer = new SlotWriter(BODY_WORDS_MAX);
  writer.body.set(body);
  writer.post(postbox.memory, 0, AT, body.length, epoch, number);
  return postbox.posts[0].words;
}

function newSlot() {
  const memory = new Int32Array(AT + BODY_WORDS_MAX + FRAME_WORDS);
  return { memory, reader: new SlotReader(memory, AT, BODY_WORDS_MAX) };
}

const RECORD = { body: [10, 20, 30], epoch: 4, number: 1 };

describe('a reader', () => {
  test('sees nothing in an empty slot, and a record once', () => {
    const { memory, reader } = newSlot();
    expect(reader.poll()).toBe(false);
    memory.set(recordWords(RECORD), AT);
    expect(reader.poll()).toBe(true);
    expect([0, 1, 2].map((field) => reader.body(field))).toEqual(RECORD.body);
    expect(reader.epoch).toBe(4);
    expect(reader.poll()).toBe(false);
  });

  test('sees the same words again under another number or epoch', () => {
    const { memory, reader } = newSlot();
    for (const name of [{}, { number: 2 }, { epoch: 5 }, { epoch: 5, number: 2 }]) {
      memory.set(recordWords({ ...RECORD, ...name }), AT);
      expect(reader.poll()).toBe(true);
      expect(reader.poll()).toBe(false);
    }
  });

  test('keeps what it saw until it looks again, whatever happens in the slot', () => {
    const { memory, reader } = newSlot();
    memory.set(recordWords(RECORD), AT);
    reader.poll();
    memory.set(recordWords({ ...RECORD, body: [7, 7, 7], number: 2 }), AT);
    expect([0, 1, 2].map((field) => reader.body(field))).toEqual(RECORD.body);
    expect(reader.epoch).toBe(4);
  });

  test('sees a record again once it has been told to forget', () => {
    const { memory, reader } = newSlot();
    memory.set(recordWords(RECORD), AT);
    reader.poll();
    reader.forget();
    expect(reader.poll()).toBe(true);
  });

  test('does not read past its slot, whatever a head says', () => {
    for (const words of [-1, 0, FRAME_WORDS - 1, BODY_WORDS_MAX + FRAME_WORDS + 1, 0x7fffffff]) {
      const { memory, reader } = newSlot();
      memory.set(recordWords(RECORD), AT);
      memory[AT] = words;
      expect(reader.poll()).toBe(false);
    }
  });

  test('reads counts beyond 32 bits', () => {
    for (const value of [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 45 + 7]) {
      const { memory, reader } = newSlot();
      const body = new Int32Array(3);
      writeWide(body, 1, value);
      memory.set(recordWords({ ...RECORD, body: [...body] }), AT);
      expect(reader.poll()).toBe(true);
      expect(reader.wide(1)).toBe(value);
    }
  });
});

test('a writer posts one write of the whole record, and what it posted stays as it was', () => {
  const postbox = new Postbox();
  const writer = new SlotWriter(BODY_WORDS_MAX);
  writer.body.set([1, 2]);
  writer.post(postbox.memory, 3, AT, 2, 1, 1);
  writer.body.set([3, 4]);
  writer.post(postbox.memory, 4, AT, 2, 1, 2);
  expect(postbox.posts.map(({ peer, to }) => [peer, to])).toEqual([
    [3, AT],
    [4, AT],
  ]);
  const bodies = postbox.posts.map(({ words }) => [...words.slice(HEAD_WORDS, -1)]);
  expect(bodies).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

/** Records land one after the other, each from the left or from the right; at any point the reader looks. */
test('a reader and its naive twin see the same records', () => {
  const words = fc.oneof(fc.nat(12), fc.integer());
  const steps = fc.array(
    fc.oneof(
      fc.record({
        land: fc.record({
          body: fc.array(words, { maxLength: BODY_WORDS_MAX }),
          // A writer's lives, and counts that go on within each.
          epoch: fc.integer({ min: 1, max: 3 }),
          number: fc.integer({ min: 1, max: 4 }),
        }),
        /** How much of it, in hundredths. */
        share: fc.oneof(fc.constant(100), fc.nat(100)),
        isBackward: fc.boolean(),
      }),
      fc.constantFrom('poll' as const, 'poll' as const, 'forget' as const),
    ),
    { maxLength: 40, size: 'max' },
  );
  let seen = 0;
  fc.assert(
    fc.property(steps, (drawn) => {
      const { memory, reader } = newSlot();
      const records: RecordDraw[] = [];
      let last: RecordDraw | undefined;
      const standing = () =>
        records.find((record) => recordWords(record).every((word, i) => memory[AT + i] === word));
      for (const step of drawn) {
        if (step === 'forget') {
          reader.forget();
          last = undefined;
        } else if (step === 'poll') {
          const record = standing();
          const isNews = record?.epoch !== last?.epoch || record?.number !== last?.number;
          const expected = record !== undefined && isNews;
          expect(reader.poll()).toBe(expected);
          if (!expected) continue;
          last = record;
          seen++;
          expect(record.body.map((_, i) => reader.body(i))).toEqual(record.body);
        } else {
          const image = recordWords(step.land);
          records.push(step.land);
          const landed = Math.round((image.length * step.share) / 100);
          const skip = step.isBackward ? image.length - landed : 0;
          memory.set(image.slice(skip, skip + landed), AT + skip);
        }
      }
    }),
    { numRuns: 1000 },
  );
  expect(seen).toBeGreaterThan(500);
});
