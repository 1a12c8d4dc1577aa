import { describe, expect, it } from 'vitest';
import { requireSound } from '../../src/sim/eras.js';
import { Sent } from '../../src/sim/ledger.js';

const PARENTS = [-1, 0, 0];
const NOTHING = new Uint8Array(0);

function message(ordinal: number, entryGroup: number, ...destinations: number[]): Sent {
  const low = destinations.reduce((mask, group) => mask | (1 << group), 0);
  return new Sent('c1', entryGroup, ordinal, low, 0, NOTHING);
}

const root = message(0, 0, 0);
const both = message(1, 0, 1, 2);
const later = message(2, 0, 1, 2);
const single = message(3, 1, 1);

describe('a recovery is sound', () => {
  it('if it keeps a prefix of each group', () => {
    const before = [[root], [single, both], [both]];
    requireSound(PARENTS, before, [[root], [single], []], [1, 1, 0]);
  });

  it('if a group gets again, from its parent, what it has lost', () => {
    const before = [[root], [both, single], [both]];
    requireSound(PARENTS, before, [[root], [both], [both]], [1, 0, 1]);
    requireSound(PARENTS, [[], [single, both], []], [[], [both], [both]], [0, 0, 0]);
  });
});

describe('a recovery is not sound', () => {
  const attempt =
    (before: Sent[][], after: Sent[][], required = [0, 0, 0]) =>
    () =>
      requireSound(PARENTS, before, after, required);

  it('if it loses what must not be lost', () => {
    expect(attempt([[root], [], []], [[], [], []], [1, 0, 0])).toThrow('has lost c1:0.0');
  });

  it('if it puts something else before what must not be lost', () => {
    const before = [[], [single, both], [both]];
    expect(attempt(before, [[], [both, single], [both]], [0, 1, 0])).toThrow('has lost c1:1.3');
  });

  it('if one destination has a message and another one does not', () => {
    const before = [[], [both], [both]];
    expect(attempt(before, [[], [both], []])).toThrow('group 2 lacks it');
  });

  it('if a group has a message twice', () => {
    expect(attempt([[], [single], []], [[], [single, single], []])).toThrow('twice');
  });

  it('if a message of its own comes back without those before it', () => {
    const before = [[], [both, single], [both]];
    expect(attempt(before, [[], [single], []])).toThrow('behind the 0 messages');
  });

  it('if groups have two messages in different orders', () => {
    const before = [[], [both, later], [later, both]];
    expect(attempt(before, before)).toThrow('contradict each other');
  });
});
