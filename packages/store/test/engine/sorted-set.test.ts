import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SortedSet } from '../../src/engine/sorted-set.js';

type Pair = readonly [member: string, score: number];

/** The same by sorting an array each time. */
class Twin {
  readonly scores = new Map<string, number>();

  sorted(): Pair[] {
    return [...this.scores].sort(([a, s], [b, t]) => s - t || (a < b ? -1 : 1));
  }
}

function pairsOf(set: SortedSet, from: number, to: number, down = false): Pair[] {
  const pairs: Pair[] = [];
  const visit = (member: string, score: number) => pairs.push([member, score]);
  if (down) set.visitDown(from, to, visit);
  else set.visit(from, to, visit);
  return pairs;
}

function compare(set: SortedSet, twin: Twin, scoreMax: number): void {
  const sorted = twin.sorted();
  expect(set.size).toBe(sorted.length);
  expect(pairsOf(set, 0, set.size)).toEqual(sorted);
  expect(pairsOf(set, 0, set.size, true)).toEqual([...sorted].reverse());
  sorted.forEach(([member, score], rank) => {
    expect(set.rank(member)).toBe(rank);
    expect(set.score(member)).toBe(score);
  });
  for (let score = -1; score <= scoreMax; score += Math.max(1, Math.floor(scoreMax / 5))) {
    expect(set.countBelow(score, false)).toBe(sorted.filter(([, s]) => s < score).length);
    expect(set.countBelow(score, true)).toBe(sorted.filter(([, s]) => s <= score).length);
  }
  const third = Math.floor(sorted.length / 3);
  expect(pairsOf(set, third, 2 * third)).toEqual(sorted.slice(third, 2 * third));
  expect(pairsOf(set, third, 2 * third, true)).toEqual(sorted.slice(third, 2 * third).reverse());
}

test('keeps the order of scores and members, in many blocks', () => {
  const phase = fc.record({
    // Members that are added, and members that are removed: both as ranges, so that blocks fill and empty.
    from: fc.nat(1_500),
    length: fc.nat(600),
    remove: fc.boolean(),
    scoreMax: fc.constantFrom(0, 3, 1_000_000),
    salt: fc.nat(1_000),
  });
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 12 }), (phases) => {
      const set = new SortedSet();
      const twin = new Twin();
      for (const { from, length, remove, scoreMax, salt } of phases) {
        for (let i = from; i < from + length; i++) {
          const member = `m${(i * 7919) % 2_003}`;
          if (remove) {
            expect(set.delete(member)).toBe(twin.scores.delete(member));
          } else {
            const score = scoreMax === 0 ? i : (i * 104_729 + salt) % scoreMax;
            expect(set.set(member, score)).toBe(!twin.scores.has(member));
            twin.scores.set(member, score);
          }
        }
        compare(set, twin, 3_000);
      }
    }),
    { numRuns: 60 },
  );
});

test('one score orders by the bytes of members', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ unit: 'binary-ascii', maxLength: 3 }), { maxLength: 400 }),
      fc.string({ unit: 'binary-ascii', maxLength: 3 }),
      (members, bound) => {
        const set = new SortedSet();
        for (const member of members) set.set(member, 1);
        expect(set.countBeforeMember(bound, false)).toBe(members.filter((m) => m < bound).length);
        expect(set.countBeforeMember(bound, true)).toBe(members.filter((m) => m <= bound).length);
      },
    ),
  );
});

test('ranks stay right while blocks are not added or removed', () => {
  const set = new SortedSet();
  const twin = new Twin();
  for (let i = 0; i < 1_000; i++) {
    set.set(`m${i}`, i % 10);
    twin.scores.set(`m${i}`, i % 10);
  }
  for (let i = 0; i < 200; i++) {
    const member = `m${(i * 37) % 1_000}`;
    set.set(member, (i * 3) % 10);
    twin.scores.set(member, (i * 3) % 10);
    const sorted = twin.sorted();
    const rank = (i * 53) % 1_000;
    expect(pairsOf(set, rank, rank + 1)).toEqual([sorted[rank]]);
    expect(set.rank(sorted[rank][0])).toBe(rank);
  }
});

test('a member that is not there has neither rank nor score', () => {
  const set = new SortedSet();
  expect(set.rank('a')).toBeUndefined();
  expect(set.score('a')).toBeUndefined();
  expect(set.delete('a')).toBe(false);
  expect(set.countBelow(1, true)).toBe(0);
  expect(pairsOf(set, 0, 0)).toEqual([]);
});
