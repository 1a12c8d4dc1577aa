/** What a host without memory does next, given what the others say of themselves. */
import { describe, expect, test } from 'vitest';
import {
  nextStep,
  noteEra,
  publishStanding,
  type Standing,
  standingIn,
  type View,
} from '../../../src/hosting/machines/standing.js';
import type { ClusterShape } from '../../../src/journal/shape.js';
import { HOST, STAGE } from '../../../src/memory/arena.js';
import { Overlay } from '../../../src/protocol/overlay.js';

const CLUSTER_ID = '0123456789abcdef0123456789abcdef';
const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];

/** @param members  by group: its hosts */
function shapeOf(members: readonly (readonly number[])[]): ClusterShape {
  return {
    overlay: new Overlay(members.map((_, group) => group - 1)),
    replicas: members[0].length,
    hosts: Math.max(...members.flat()) + 1,
    hostsOf: (group) => members[group],
    nameOf: (host) => NAMES[host],
    firstIndex: 2,
  };
}

const THREE = shapeOf([
  [0, 1, 2],
  [1, 2, 0],
]);
const ALL = [0, 1];

const waiting = (journaled: readonly number[] = ALL) => standing(STAGE.waiting, 0, journaled);
const recovering = () => standing(STAGE.recovering, 0, ALL);
const running = (era: number, quorums: readonly number[]) => standing(STAGE.running, era, quorums);

function standing(stage: number, era: number, groups: readonly number[]): Standing {
  const line = new Int32Array(HOST.words);
  noteEra(line, { era, firstSession: era * 1000, clusterId: CLUSTER_ID });
  publishStanding(line, 0, stage, groups);
  return standingIn(line)!;
}

function step(standings: View['standings'], more: Partial<View> = {}) {
  const view = {
    self: 0,
    shape: THREE,
    isFresh: () => true,
    promisedEra: 0,
    openedEra: 0,
    acceptsLoss: false,
    ...more,
  };
  return nextStep({ ...view, standings });
}

test('groups up to the last one are published', () => {
  const { hasGroup } = standing(STAGE.waiting, 0, [0, 31, 32, 63]);
  expect([0, 1, 31, 32, 62, 63].map(hasGroup)).toEqual([true, false, true, true, false, true]);
});

describe('the cluster runs', () => {
  test('it joins if all its groups have a quorum', () => {
    expect(step([waiting(), running(7, ALL), running(7, ALL)])).toEqual({
      what: 'join',
      era: 7,
      firstSession: 7000,
      clusterId: CLUSTER_ID,
    });
  });

  test('bound to a later era, it joins only those that it sees running', () => {
    const promisedEra = 8;
    expect(step([waiting(), running(7, ALL), running(7, ALL)], { promisedEra })).toMatchObject({
      what: 'join',
    });
    // The second host says that the third one takes part. But the third one waits, and may be bound as well.
    for (const third of [waiting(), undefined]) {
      expect(step([waiting(), running(7, ALL), third], { promisedEra })).toMatchObject({
        what: 'wait',
        why: 'waits for more hosts that run in era 7',
      });
    }
    const isFresh = (host: number): boolean => host === 1;
    const seen = [waiting(), running(7, ALL), running(7, ALL)];
    expect(step(seen, { promisedEra, isFresh })).toMatchObject({ what: 'wait' });
  });

  test('the newest era counts', () => {
    const others = [running(6, ALL), running(7, ALL)];
    expect(step([waiting(), ...others])).toMatchObject({ what: 'join', era: 7 });
    expect(step([waiting(), running(6, ALL), running(7, [])])).toMatchObject({ what: 'recover' });
  });

  test('different hosts may see the quorums of different groups', () => {
    const shape = shapeOf([
      [0, 1, 2],
      [0, 3, 4],
    ]);
    const seen = [waiting(), running(7, [0]), undefined, running(7, [1]), undefined];
    expect(step(seen, { shape })).toMatchObject({ what: 'join' });
  });

  test('groups of other hosts need not run', () => {
    const shape = shapeOf([
      [0, 1, 2],
      [1, 2, 3],
    ]);
    const seen = [waiting([0]), running(7, [0]), running(7, [0]), waiting([1])];
    expect(step(seen, { shape })).toMatchObject({ what: 'join' });
    expect(step(seen, { shape, self: 3 })).toMatchObject({ what: 'recover', rank: 1 });
  });

  test('it starts with its opening snapshots if it was part of the recovery', () => {
    const seen = [waiting(), running(7, []), waiting()];
    expect(step(seen, { openedEra: 7 })).toMatchObject({ what: 'start', era: 7 });
    expect(step(seen, { openedEra: 6 })).toMatchObject({ what: 'recover' });
  });
});

describe('the cluster does not run', () => {
  test('the lowest-numbered waiting host recovers it, at once if all are there', () => {
    const seen = [waiting(), waiting(), waiting()];
    const recover = { what: 'recover', missing: 0, isInevitable: true };
    expect(step(seen)).toEqual({ ...recover, rank: 0 });
    expect(step(seen, { self: 2 })).toEqual({ ...recover, rank: 2 });
  });

  test('hosts that still run, without a quorum, do not recover it, and have journals', () => {
    const seen = [running(7, []), waiting(), undefined];
    expect(step(seen, { self: 1 })).toEqual({
      what: 'recover',
      rank: 0,
      missing: 1,
      isInevitable: false,
    });
  });

  test('if another one recovers it already, it waits for that', () => {
    expect(step([waiting(), undefined, recovering()])).toEqual({
      what: 'wait',
      why: 'waits for gamma, which recovers the cluster',
    });
  });

  test('it waits while journals are missing, and says for which hosts', () => {
    expect(step([waiting(), undefined, waiting([])])).toEqual({
      what: 'wait',
      why: 'waits for beta; gamma has no journal of them: recovery needs the journals of 2 of the 3 members of g0, g1',
    });
    expect(step([waiting(), undefined, waiting([1])])).toEqual({
      what: 'wait',
      why: 'waits for beta; gamma has no journal of them: recovery needs the journals of 2 of the 3 members of g0',
    });
  });

  test('unless an operator accepts the loss', () => {
    const seen = [waiting(), undefined, undefined];
    expect(step(seen)).toMatchObject({ what: 'wait' });
    expect(step(seen, { acceptsLoss: true })).toMatchObject({ what: 'recover', rank: 0 });
  });

  test('the first start needs all hosts', () => {
    expect(step([waiting([]), waiting([]), undefined])).toEqual({
      what: 'wait',
      why: 'waits for gamma: the first start needs all hosts, and no journal was found yet',
    });
    expect(step([waiting([]), waiting([]), waiting([])])).toMatchObject({ what: 'recover' });
  });
});
