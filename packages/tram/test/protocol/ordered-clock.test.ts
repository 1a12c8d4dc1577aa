/** The stamps of ticks, for wall clocks that are right and wrong. */
import { beforeEach, describe, expect, test } from 'vitest';
import { OrderedClock } from '../../src/protocol/data-path/ordered-clock.js';
import { NO_OBSERVER } from '../../src/protocol/edges.js';
import type { Member } from '../../src/protocol/member.js';

const BEGIN_US = 1_800_000_000_000_000;
const HOUR_US = 3_600_000_000;
const EVERY_US = 1000;
const SELF = 0;
const OTHER = 1;

/** What a clock needs of its member. */
let wallUs: number;
let monotonicUs: number;
let delivered: { orderedUs: number };
let log: { marker: number; writer: number } | undefined;
let clock: OrderedClock;

function newClock(): OrderedClock {
  const edges = {
    observer: NO_OBSERVER,
    wallClockUs: () => wallUs,
    monotonicUs: () => monotonicUs,
  };
  const member = { index: SELF, delivered, edges, log: { current: () => log } };
  return new OrderedClock(member as unknown as Member, EVERY_US);
}

beforeEach(() => {
  wallUs = BEGIN_US;
  monotonicUs = 0;
  delivered = { orderedUs: 0 };
  log = undefined;
  clock = newClock();
});

/** A leader's tick, if it is due. */
function tick(nowUs: number, stepTakesUs = 0): number | undefined {
  monotonicUs = nowUs + stepTakesUs;
  if (!clock.isDue(delivered.orderedUs, nowUs)) return undefined;
  const stampUs = clock.advance(delivered.orderedUs);
  delivered.orderedUs = stampUs;
  return stampUs;
}

/** The leader that this member follows has proposed this stamp. */
function follow(stampUs: number, nowUs: number): void {
  log = { marker: 7, writer: OTHER };
  delivered.orderedUs = stampUs;
  monotonicUs = nowUs + 1;
  clock.follow();
}

describe('a leader', () => {
  test('takes the wall clock for the first tick, at once', () => {
    expect(tick(5)).toBe(BEGIN_US);
  });

  test('proposes a tick when the time since the last one is over', () => {
    tick(5);
    expect(tick(5 + EVERY_US - 1)).toBeUndefined();
    wallUs += EVERY_US;
    expect(tick(5 + EVERY_US)).toBe(BEGIN_US + EVERY_US);
  });

  test('follows a wall clock that is right, however long ticks were delayed', () => {
    tick(0);
    wallUs += HOUR_US;
    expect(tick(HOUR_US)).toBe(BEGIN_US + HOUR_US);
  });

  test('counts from the proposal, not from the beginning of the step that proposed', () => {
    const stepTakesUs = 700_000;
    tick(0, stepTakesUs);
    wallUs += HOUR_US;
    expect(tick(stepTakesUs + EVERY_US)).toBe(BEGIN_US + 2 * EVERY_US);
  });

  test.each([
    ['jumps ahead by hours', 5 * HOUR_US, 2 * EVERY_US],
    ['jumps back by hours', -5 * HOUR_US, EVERY_US / 2],
    ['stands still', 0, EVERY_US / 2],
    ['runs a little fast', EVERY_US + 10, EVERY_US + 10],
    ['runs a little slow', EVERY_US - 10, EVERY_US - 10],
  ])('whose clock %s', (_, wallAdvanceUs, advanceUs) => {
    tick(0);
    wallUs += wallAdvanceUs;
    expect(tick(EVERY_US)).toBe(BEGIN_US + advanceUs);
  });
});

describe('a follower that takes over', () => {
  test('continues with the age of the last tick, and within bounds', () => {
    follow(BEGIN_US, 0);
    wallUs = BEGIN_US + HOUR_US;
    expect(tick(1 + EVERY_US)).toBe(BEGIN_US + 2 * EVERY_US);
  });

  test('lets time go on if its wall clock is behind', () => {
    follow(BEGIN_US, 0);
    wallUs = BEGIN_US - HOUR_US;
    expect(tick(1 + EVERY_US)).toBe(BEGIN_US + EVERY_US / 2);
  });

  test('knows nothing of the age of a tick that it had not delivered', () => {
    follow(BEGIN_US, 0);
    delivered.orderedUs = BEGIN_US + 5;
    wallUs = BEGIN_US + HOUR_US;
    expect(tick(HOUR_US)).toBeUndefined();
    expect(tick(HOUR_US + EVERY_US)).toBe(BEGIN_US + 5 + 2 * EVERY_US);
  });

  test('takes the wall clock, at once, if nobody has proposed a tick before', () => {
    follow(0, 0);
    expect(tick(1)).toBe(BEGIN_US);
  });
});

describe('a member that resumes', () => {
  beforeEach(() => {
    log = { marker: 3, writer: OTHER };
    delivered.orderedUs = BEGIN_US;
    clock = newClock();
    // It delivers again what its log has.
    clock.follow();
  });

  test('takes the wall clock if it leads: all may have been down for long', () => {
    wallUs = BEGIN_US + HOUR_US;
    expect(tick(1)).toBe(BEGIN_US + HOUR_US);
  });

  test('never goes back for that', () => {
    wallUs = BEGIN_US - HOUR_US;
    expect(tick(1)).toBe(BEGIN_US + 1);
    expect(tick(1 + EVERY_US)).toBe(BEGIN_US + 1 + EVERY_US / 2);
  });

  test('does not do so if it has followed another leader first', () => {
    follow(BEGIN_US + 10, 5);
    wallUs = BEGIN_US + HOUR_US;
    expect(tick(6 + EVERY_US)).toBe(BEGIN_US + 10 + 2 * EVERY_US);
  });
});
