/** When the first member of a group asks to lead it again, with a clock of the test. */
import { describe, expect, test } from 'vitest';
import { LeaderReturn, leastWaitUs, type Sight } from '../../src/hosting/leader-return.js';

const SUSPECT_AFTER_US = 500_000;
const LEAST_US = leastWaitUs(SUSPECT_AFTER_US);
const LOOK_US = 100_000;
const HOUR_US = 3_600_000_000;

const FOLLOWS: Sight = { leads: false, canReplaceLeader: true, situation: 1 };
const LEADS: Sight = { leads: true, canReplaceLeader: false, situation: 2 };

/** A first member and its clock. */
class Stage {
  nowUs = 0;
  readonly policy: LeaderReturn;

  constructor({ group = 0, keptWaitUs = 0 } = {}) {
    this.policy = new LeaderReturn(group, SUSPECT_AFTER_US, keptWaitUs, this.nowUs);
  }

  /** Looks at what it sees for so long. Returns how often it asks to lead. */
  see(sight: Sight, us: number): number {
    let asked = 0;
    for (const endUs = this.nowUs + us; this.nowUs < endUs; this.nowUs += LOOK_US) {
      if (this.policy.look(sight, this.nowUs)) asked++;
    }
    return asked;
  }

  /** How long it sees the same until it asks to lead. */
  untilAsked(sight: Sight): number {
    const fromUs = this.nowUs;
    for (let looks = 0; looks < 1e6; looks++) {
      const isAsking = this.policy.look(sight, this.nowUs);
      this.nowUs += LOOK_US;
      if (isAsking) return this.nowUs - fromUs;
    }
    throw new Error('it never asks');
  }
}

test('asks after nothing has changed for the least wait', () => {
  const stage = new Stage();
  expect(stage.see(FOLLOWS, LEAST_US)).toBe(0);
  expect(stage.see(FOLLOWS, 2 * LOOK_US)).toBe(1);
});

test('waits longer than four suspicions take', () => {
  expect(leastWaitUs(10_000_000)).toBe(40_000_000);
  expect(leastWaitUs(1000)).toBe(leastWaitUs(0));
});

test('does not ask while it cannot replace the leader, and then waits as long', () => {
  const stage = new Stage();
  expect(stage.see({ ...FOLLOWS, canReplaceLeader: false }, 10 * LEAST_US)).toBe(0);
  expect(stage.see(FOLLOWS, LEAST_US - LOOK_US)).toBe(0);
  expect(stage.see(FOLLOWS, 2 * LOOK_US)).toBe(1);
});

test('does not ask while something changes', () => {
  const stage = new Stage();
  for (let situation = 10; situation < 20; situation++) {
    expect(stage.see({ ...FOLLOWS, situation }, LEAST_US)).toBe(0);
  }
});

test('groups ask one after the other', () => {
  const asked = [0, 1, 2, 63].map((group) => new Stage({ group }).untilAsked(FOLLOWS));
  const [first, second, third, last] = asked;
  expect(second - first).toBeGreaterThanOrEqual(2 * LOOK_US);
  expect(third - second).toBeGreaterThanOrEqual(2 * LOOK_US);
  expect(last - first).toBeLessThan(20_000_000);
});

describe('waits longer', () => {
  test('after each attempt that fails', () => {
    const stage = new Stage();
    const waits = [1, 2, 3].map(() => stage.untilAsked(FOLLOWS));
    expect(waits[1]).toBeGreaterThan(1.9 * waits[0]);
    expect(waits[2]).toBeGreaterThan(1.9 * waits[1]);
  });

  test('each time it loses the lead soon: a slow host leads ever more rarely', () => {
    const stage = new Stage();
    let before = 0;
    for (let times = 0; times < 4; times++) {
      const wait = stage.untilAsked(FOLLOWS);
      expect(wait).toBeGreaterThan(3 * before);
      before = wait;
      stage.see(LEADS, 2_000_000);
    }
  });

  test('so that a slow host leads only a few times a day', () => {
    const stage = new Stage();
    const DAY_US = 24 * HOUR_US;
    let times = 0;
    while (stage.nowUs < DAY_US) {
      stage.untilAsked(FOLLOWS);
      stage.see(LEADS, 2_000_000);
      times++;
    }
    expect(times).toBeLessThan(35);
  });

  test('at most for an hour', () => {
    const stage = new Stage();
    for (let times = 0; times < 40; times++)
      stage.see({ ...LEADS, leads: times % 2 === 0 }, LOOK_US);
    expect(stage.policy.waitUs).toBe(HOUR_US);
  });

  test('and no longer once it has led for ten times as long', () => {
    const stage = new Stage();
    stage.untilAsked(FOLLOWS);
    stage.see(LEADS, LOOK_US);
    const { waitUs } = stage.policy;
    expect(waitUs).toBe(4 * LEAST_US);
    stage.see(LEADS, 9 * waitUs);
    expect(stage.policy.waitUs).toBe(waitUs);
    stage.see(LEADS, 2 * waitUs);
    expect(stage.policy.waitUs).toBe(LEAST_US);
  });

  test('also in its next incarnation: a host that crashes whenever it leads', () => {
    const before = new Stage();
    before.untilAsked(FOLLOWS);
    before.see(LEADS, LOOK_US);
    const { waitUs } = before.policy;
    expect(new Stage({ keptWaitUs: waitUs }).see(FOLLOWS, waitUs)).toBe(0);
  });
});
