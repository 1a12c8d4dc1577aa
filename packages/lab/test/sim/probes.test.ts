/** Clients read what a reply must have shown. `seeds.test.ts` shows that this finds violations of real-time order. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Ledger, type Sent } from '../../src/sim/ledger.js';
import { drawPlan } from '../../src/sim/plan.js';
import { drawProbe } from '../../src/sim/probes.js';
import { Random } from '../../src/sim/random.js';

describe('the group to read', () => {
  const DRAWS = 100;
  let ledger: Ledger;
  let number: number;

  beforeEach(() => {
    const plan = drawPlan(1, { tree: [-1, 0, 0, 0] });
    number = plan.sizes.firstIndex;
    ledger = new Ledger(plan, false, true, () => 0);
  });

  function multicast(...groups: readonly number[]): Sent {
    const destinationsLow = groups.reduce((set, group) => set | (1 << group), 0);
    const message = {
      entryGroup: 0,
      destinationsLow,
      destinationsHigh: 0,
      payload: new Uint8Array(),
    };
    return ledger.multicast(1, number++, message);
  }

  /** All groups that are read after `group` has replied to `sent`. */
  function probesOf(sent: Sent, group: number): Set<number | undefined> {
    const random = new Random(1);
    return new Set(Array.from({ length: DRAWS }, () => drawProbe(random, ledger, sent, group)));
  }

  test('is another destination of the message', () => {
    const message = multicast(1, 2, 3);
    ledger.orders[1].push(message);
    expect(probesOf(message, 1)).toEqual(new Set([2, 3]));
  });

  test('is a destination of a message that the group has delivered before', () => {
    const before = multicast(1, 2);
    const message = multicast(1);
    const after = multicast(1, 3);
    ledger.orders[1].push(before, message, after);
    expect(probesOf(message, 1)).toEqual(new Set([2]));
  });

  test('is found through a third group', () => {
    const lacking = multicast(2, 3);
    const between = multicast(1, 2);
    ledger.orders[2].push(lacking, between);
    ledger.orders[1].push(between);
    expect(probesOf(between, 1)).toContain(3);
  });

  test('is none if all that the reply shows is for its group alone', () => {
    const message = multicast(1);
    ledger.orders[1].push(message);
    expect(probesOf(message, 1)).toEqual(new Set([undefined]));
  });
});
