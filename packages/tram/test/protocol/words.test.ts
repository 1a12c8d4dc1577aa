/** Small things: ballots, keys and wide counts packed into words, and quorums; each against a naive twin. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OPEN, RETIRED } from '../../src/memory/contract.js';
import { extend } from '../../src/memory/record.js';
import { KEPT } from '../../src/protocol/layout.js';
import {
  describeBallot,
  makeBallot,
  memberOf,
  NO_BALLOT,
  roundOf,
} from '../../src/protocol/leadership/ballot.js';
import { Kept } from '../../src/protocol/leadership/kept.js';
import { isSince, keyAfter } from '../../src/protocol/leadership/key.js';
import { reachedBy } from '../../src/protocol/quorum.js';
import { readWide, writeWide } from '../../src/protocol/wide.js';

const MEMBERS = 8;
const ROUND_MAX = Math.floor(RETIRED / MEMBERS) - 1;

describe('ballots', () => {
  const ballots = fc.record({
    round: fc.integer({ min: 1, max: ROUND_MAX }),
    member: fc.nat(MEMBERS - 1),
  });

  test('tell round and member, and are positive words between none and retired', () => {
    fc.assert(
      fc.property(ballots, ({ round, member }) => {
        const ballot = makeBallot(round, member);
        expect([roundOf(ballot), memberOf(ballot)]).toEqual([round, member]);
        expect(describeBallot(ballot)).toBe(`${round}.${member}`);
        expect(ballot).toBe(ballot | 0);
        expect(ballot).toBeGreaterThan(NO_BALLOT);
        expect(ballot).toBeLessThan(RETIRED);
      }),
    );
  });

  test('are ordered by round, and only then by member', () => {
    fc.assert(
      fc.property(ballots, ballots, (a, b) => {
        const order = a.round - b.round || a.member - b.member;
        const difference = makeBallot(a.round, a.member) - makeBallot(b.round, b.member);
        expect(Math.sign(difference)).toBe(Math.sign(order));
      }),
    );
  });

  test('end: no round below the first, none that reaches what is retired', () => {
    const last = Math.floor(RETIRED / MEMBERS);
    expect(() => makeBallot(0, 1)).toThrow('positive words');
    expect(() => makeBallot(-1, 1)).toThrow('positive words');
    expect(makeBallot(last, MEMBERS - 2)).toBe(RETIRED - 1);
    expect(() => makeBallot(last, MEMBERS - 1)).toThrow('positive words');
    expect(() => makeBallot(last + 1, 0)).toThrow('positive words');
  });
});

describe('keys', () => {
  const KEYS = RETIRED - 1;
  const keys = fc.integer({ min: 1, max: KEYS });
  const counts = fc.oneof(fc.nat(1000), fc.nat(2 ** 31 - 1));

  test('are words, and neither open to all nor retired', () => {
    fc.assert(
      fc.property(keys, counts, (first, count) => {
        const key = keyAfter(first, count);
        expect(key).toBe(key | 0);
        expect(key).toBeGreaterThan(OPEN);
        expect(key).toBeLessThan(RETIRED);
      }),
    );
    expect([keyAfter(OPEN, 1), keyAfter(KEYS, 0), keyAfter(KEYS, 1)]).toEqual([1, KEYS, 1]);
  });

  test('differ unless all other keys were made in between', () => {
    fc.assert(
      fc.property(keys, counts, counts, (first, one, other) => {
        const isSame = (one - other) % KEYS === 0;
        expect(keyAfter(first, one) === keyAfter(first, other)).toBe(isSame);
      }),
    );
  });

  test('tell whether they were made since another one', () => {
    fc.assert(
      fc.property(keys, fc.nat(KEYS / 2 - 1), (first, count) => {
        expect(isSince(keyAfter(first, count), first)).toBe(true);
        expect(isSince(first, keyAfter(first, count + 1))).toBe(false);
      }),
    );
  });

  test('memory that was never written has a key of no time', () => {
    fc.assert(fc.property(keys, (first) => !isSince(OPEN, first)));
    expect(isSince(OPEN, KEYS)).toBe(false);
  });
});

describe('what is kept for the next life', () => {
  const AT = 3;

  test('is found again in the same words, and in no others', () => {
    const words = new Int32Array(AT + KEPT.words + 2).fill(-1);
    const kept = new Kept(words, AT);
    kept.begin(7);
    expect([kept.firstKey, kept.isMember, kept.promised, kept.keys]).toEqual([7, false, 0, 0]);
    kept.promised = makeBallot(4, 1);
    kept.keys++;
    kept.keys++;
    kept.becomeMember();
    const next = new Kept(words, AT);
    expect([next.firstKey, next.isMember, next.promised, next.keys]).toEqual([
      7,
      true,
      makeBallot(4, 1),
      2,
    ]);
    next.begin(9);
    expect([kept.firstKey, kept.isMember, kept.promised, kept.keys]).toEqual([9, false, 0, 0]);
    expect([...words.slice(0, AT), ...words.slice(-2)]).toEqual([-1, -1, -1, -1, -1]);
  });

  test('tells an index from its low word, if it lies in the log of that time', () => {
    const indices = fc.oneof(
      fc.integer({ min: 2 ** 31 - 5, max: 2 ** 31 + 5 }),
      fc.integer({ min: 2 ** 32 - 5, max: 2 ** 32 + 5 }),
      fc.integer({ min: 0, max: 2 ** 50 }),
    );
    const LOG_ENTRIES_MAX = 2 ** 27;
    fc.assert(
      fc.property(
        indices,
        fc.integer({ min: -LOG_ENTRIES_MAX, max: LOG_ENTRIES_MAX }),
        (index, away) => {
          fc.pre(index + away >= 0);
          const kept = new Kept(new Int32Array(KEPT.words), 0);
          kept.near = index;
          expect(extend(kept.near, (index + away) | 0)).toBe(index + away);
        },
      ),
    );
  });
});

describe('wide counts', () => {
  const counts = fc.oneof(
    fc.nat(10),
    fc.integer({ min: 2 ** 31 - 5, max: 2 ** 31 + 5 }),
    fc.integer({ min: 2 ** 32 - 5, max: 2 ** 32 + 5 }),
    fc.maxSafeNat(),
  );

  test('are read as they were written, in two words that nothing else shares', () => {
    fc.assert(
      fc.property(counts, fc.nat(4), fc.integer(), (value, at, rest) => {
        const words = new Int32Array(6).fill(rest);
        writeWide(words, at, value);
        expect(readWide(words, at)).toBe(value);
        const others = [...words].filter((_, i) => i !== at && i !== at + 1);
        expect(others).toEqual(new Array(4).fill(rest | 0));
      }),
    );
  });

  test('are the low word, then the high one', () => {
    fc.assert(
      fc.property(counts, (value) => {
        const words = new Int32Array(2);
        writeWide(words, 0, value);
        const [low, high] = words;
        expect(BigInt.asUintN(32, BigInt(value))).toBe(BigInt(low >>> 0));
        expect(BigInt(value) >> 32n).toBe(BigInt(high));
      }),
    );
  });
});

describe('quorums', () => {
  const values = fc.array(fc.oneof(fc.nat(5), fc.integer({ min: -1, max: 2 ** 40 })), {
    minLength: 1,
    maxLength: 7,
  });

  test('so many members reach a value, and no more reach a higher one', () => {
    fc.assert(
      fc.property(values, fc.nat(), (reached, drawn) => {
        const count = 1 + (drawn % reached.length);
        const sorted = [...reached].sort((a, b) => a - b);
        const given = Float64Array.from(reached);
        expect(reachedBy(given, count)).toBe(sorted[sorted.length - count]);
        expect([...given]).toEqual(reached);
      }),
    );
  });

  test('more than there are reach nothing', () => {
    expect(reachedBy(Float64Array.of(1, 2, 3), 4)).toBe(Number.NEGATIVE_INFINITY);
  });
});
