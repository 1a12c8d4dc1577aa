/** Who gets room in a full ring: everybody in turn, whatever the others do. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JournalRing, KIND, type RingRecord } from '../../src/journal/ring.js';
import { Turn, Turns } from '../../src/journal/turns.js';

const RING_WORDS = 1024;
const RECORD: RingRecord = { kind: 0, group: 0, index: 0, words: 0, position: 0 };

/** A ring, and one that puts records of a fixed size there whenever it may. */
class Bench {
  private readonly words = new Int32Array(JournalRing.wordsFor(1, RING_WORDS));
  private readonly ring = new JournalRing(this.words, 1, true);
  private readonly disk = new JournalRing(this.words, 1, true);
  readonly turns = new Turns(this.ring, 4);

  /** Puts a record if there is room. */
  tries(turn: Turn, words: number): boolean {
    if (!this.turns.hasRoom(turn, words, 1)) return false;
    this.turns.use(turn);
    this.ring.put(KIND.piece, 0, 0, new Int32Array(words), 0, words);
    return true;
  }

  fill(turn: Turn, words: number): void {
    while (this.tries(turn, words));
  }

  /** The disk takes one record. */
  takes(): void {
    const record = { ...RECORD };
    if (this.disk.peek(record)) this.disk.take(record);
  }
}

test('a large piece finds room, although small ones come before it whenever there is room', () => {
  const bench = new Bench();
  const [small, large] = [new Turn(), new Turn()];
  bench.fill(small, 20);
  expect(bench.tries(large, 200)).toBe(false);
  let taken = 0;
  do {
    bench.takes();
    bench.fill(small, 20);
    taken++;
  } while (!bench.tries(large, 200));
  // Not before so many words were free, and not much later.
  expect(taken).toBeGreaterThanOrEqual(6);
  expect(taken).toBeLessThan(15);
});

test('those that wait have equal shares, whatever the size of what they put', () => {
  const bench = new Bench();
  const [small, large] = [new Turn(), new Turn()];
  const had = { small: 0, large: 0 };
  bench.fill(small, 20);
  for (let i = 0; i < 1000; i++) {
    bench.takes();
    while (bench.tries(large, 160)) had.large += 160;
    while (bench.tries(small, 20)) had.small += 20;
  }
  expect(had.large / had.small).toBeGreaterThan(0.8);
  expect(had.large / had.small).toBeLessThan(1.25);
});

test('as long as there is room for the first one too, others need not wait', () => {
  const bench = new Bench();
  const [one, other] = [new Turn(), new Turn()];
  bench.fill(one, 20);
  expect(one.isWaiting).toBe(true);
  expect(bench.tries(other, 20)).toBe(false);
  for (let i = 0; i < 10; i++) bench.takes();
  expect(bench.tries(other, 20)).toBe(true);
  expect(bench.tries(one, 20)).toBe(true);
});

describe('one that waits and does not come back', () => {
  test('keeps only so much room as it asked for', () => {
    const bench = new Bench();
    const [gone, other] = [new Turn(), new Turn()];
    bench.fill(other, 20);
    bench.turns.giveUp(other);
    expect(bench.tries(gone, 300)).toBe(false);
    for (let i = 0; i < 20; i++) bench.takes();
    expect(bench.tries(other, 300)).toBe(false);
    for (let i = 0; i < 20; i++) bench.takes();
    expect(bench.tries(other, 300)).toBe(true);
  });

  test('loses its turn once others have had as much room as the ring has', () => {
    const bench = new Bench();
    const [small, gone, large] = [new Turn(), new Turn(), new Turn()];
    bench.fill(small, 20);
    expect(bench.tries(gone, 200)).toBe(false);
    expect(bench.tries(large, 300)).toBe(false);
    for (let i = 0; !bench.tries(large, 300); i++) {
      expect(i).toBeLessThan(200);
      bench.takes();
      bench.fill(small, 20);
    }
    expect(gone.isWaiting).toBe(false);
  });

  test('gives others its turn at once if it needs no room any more', () => {
    const bench = new Bench();
    const [small, gone] = [new Turn(), new Turn()];
    bench.fill(small, 20);
    bench.turns.giveUp(small);
    expect(bench.tries(gone, 300)).toBe(false);
    bench.takes();
    expect(bench.tries(small, 20)).toBe(false);
    bench.turns.giveUp(gone);
    expect(bench.tries(small, 20)).toBe(true);
  });
});

test('each group gets room, although others stop, give up, or ask for something else', () => {
  const action = fc.record({
    who: fc.nat(4),
    words: fc.integer({ min: 1, max: 300 }),
    what: fc.constantFrom('tries', 'tries', 'tries', 'gives up', 'disk', 'disk'),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 300 }), fc.nat(4), (actions, tried) => {
      const bench = new Bench();
      const turns = Array.from({ length: 5 }, () => new Turn());
      for (const { who, words, what } of actions) {
        if (what === 'tries') bench.tries(turns[who], words);
        else if (what === 'gives up') bench.turns.giveUp(turns[who]);
        else bench.takes();
      }
      // From now on, one of the others puts whatever it can, and the rest never come back.
      const busy = turns[(tried + 1) % turns.length];
      for (let i = 0; !bench.tries(turns[tried], 300); i++) {
        expect(i).toBeLessThan(2000);
        bench.takes();
        bench.fill(busy, 10);
      }
    }),
  );
});
