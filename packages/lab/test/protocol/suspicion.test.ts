/**
 * Partial partitions: some members cannot reach each other, but can reach others. No member waits for one that cannot
 * lead, and leadership does not alternate.
 */
import { describe, expect, test } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import { Random } from '../../src/sim/random.js';
import { Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

const SUSPECT_AFTER_US = 20_000;

function cluster(Stage: Subject['Stage'], replicas: number) {
  const stage = new Stage(`groups=1 replicas=${replicas} clients=1 payload=32`, {
    timing: { suspectAfterUs: SUSPECT_AFTER_US },
  });
  const members = stage.group(0);
  const [A, B, C] = members as [ReplicaHost, ReplicaHost, ReplicaHost];
  expect(A.replica.role).toBe('leader');
  return { stage, members, A, B, C };
}

function cut(stage: Stage, one: ReplicaHost, other: ReplicaHost): void {
  stage.hold(one, other);
  stage.hold(other, one);
}

/** How many campaigns there are in so many suspicion times. */
function attempts(stage: Stage, times: number): number {
  const { transitions } = stage.world.tally;
  const before = transitions.get('campaigned') ?? 0;
  stage.runFor(times * SUSPECT_AFTER_US);
  return (transitions.get('campaigned') ?? 0) - before;
}

const orderedIn = (stage: Stage): number => stage.world.ledger.orders[0].length;

describe('a member that is cut off from its leader', () => {
  attack(
    'follows while others hear it',
    { 'campaigns-against-followed': /'leader', 'leader', 'follower'/ },
    ({ Stage }) => {
      const { stage, members, A, B } = cluster(Stage, 3);
      const { promised } = A.replica.member;
      cut(stage, A, B);
      for (let i = 0; i < 20; i++) {
        stage.send(0, [0], 'm');
        stage.runFor(SUSPECT_AFTER_US);
      }
      expect(orderedIn(stage)).toBe(20);
      expect(members.map(({ replica }) => replica.role)).toEqual([
        'leader',
        'follower',
        'follower',
      ]);
      expect(A.replica.member.promised).toBe(promised);
      stage.release(A, B);
      stage.release(B, A);
      stage.settle();
      expect(B.replica.member.deliveries).toBe(20);
    },
  );

  attack('leads once the others do not hear it either', {}, ({ Stage }) => {
    const { stage, A, B, C } = cluster(Stage, 3);
    cut(stage, A, B);
    stage.runFor(3 * SUSPECT_AFTER_US);
    expect(B.replica.role).toBe('follower');
    cut(stage, A, C);
    const hasLeader = () => B.replica.role === 'leader' || C.replica.role === 'leader';
    stage.until(hasLeader, 2 * SUSPECT_AFTER_US);
  });

  attack(
    'does not campaign while it hears from fewer than a quorum',
    { 'campaigns-alone': /expected 1 to be \+0/ },
    ({ Stage }) => {
      const { stage, A, B, C } = cluster(Stage, 3);
      const { promised } = A.replica.member;
      cut(stage, A, C);
      cut(stage, B, C);
      stage.runFor(SUSPECT_AFTER_US / 2);
      expect(attempts(stage, 5)).toBe(0);
      for (const host of [A, B]) {
        stage.release(host, C);
        stage.release(C, host);
      }
      stage.runFor(SUSPECT_AFTER_US);
      expect(A.replica.role).toBe('leader');
      expect(A.replica.member.promised).toBe(promised);
    },
  );

  test.each<[string, (stage: Stage, A: ReplicaHost, B: ReplicaHost, C: ReplicaHost) => void]>([
    ['it was asked to lead', (stage, _, B) => stage.campaign(B)],
    [
      'the others paused for a while',
      (stage, _, __, C) => {
        stage.world.pause(C);
        stage.runFor(1.5 * SUSPECT_AFTER_US);
        stage.world.resume(C);
      },
    ],
    [
      'both believe that the other has ended',
      (_, A, B) => {
        for (const [one, other] of [[A, B] as const, [B, A] as const]) {
          one.memory.hasEnded = (participant) => participant === other.participant;
        }
      },
    ],
  ])('does not alternate with it as leader, even if %s', (_, disturb) => {
    const { stage, A, B, C } = cluster(Stage, 3);
    cut(stage, A, B);
    stage.runFor(3 * SUSPECT_AFTER_US);
    disturb(stage, A, B, C);
    stage.runFor(5 * SUSPECT_AFTER_US);
    expect(attempts(stage, 20)).toBe(0);
    stage.send(0, [0], 'm');
    stage.runFor(SUSPECT_AFTER_US);
    expect(orderedIn(stage)).toBe(1);
  });

  attack(
    'does not wait for a leader that others hear, but that hears no other member',
    { 'waits-for-lonely': STUCK },
    ({ Stage }) => {
      const { stage, A, B, C } = cluster(Stage, 3);
      cut(stage, A, B);
      stage.hold(A, C);
      stage.send(0, [0], 'm');
      stage.until(() => orderedIn(stage) === 1, 3 * SUSPECT_AFTER_US);
    },
  );

  attack(
    'does not wait for the longer timeouts of others',
    { 'tells-its-patience': STUCK },
    ({ Stage }) => {
      const { stage, A, B, C } = cluster(Stage, 3);
      for (let i = 0; i < 4; i++) {
        stage.hold(C, A);
        stage.until(() => !C.replica.suspicion.isLive(A.member), 40 * SUSPECT_AFTER_US);
        stage.release(C, A);
        stage.until(() => C.replica.suspicion.isLive(A.member), 40 * SUSPECT_AFTER_US);
        stage.runFor(300);
      }
      expect(C.replica.suspicion.patienceUs(A.member)).toBeGreaterThan(10 * SUSPECT_AFTER_US);
      stage.crashUnheard(A);
      stage.until(() => B.replica.role === 'leader', 2 * SUSPECT_AFTER_US);
    },
  );

  attack(
    'is not kept waiting by a patient member that it trusts',
    { 'waits-for-patient': STUCK },
    ({ Stage }) => {
      const { stage, A, B, C } = cluster(Stage, 3);
      for (let i = 0; i < 4; i++) {
        stage.hold(B, A);
        stage.until(() => !B.replica.suspicion.isLive(A.member), 40 * SUSPECT_AFTER_US);
        stage.release(B, A);
        stage.until(() => B.replica.suspicion.isLive(A.member), 40 * SUSPECT_AFTER_US);
        stage.runFor(300);
      }
      expect(B.replica.suspicion.patienceUs(A.member)).toBeGreaterThan(10 * SUSPECT_AFTER_US);
      expect(C.replica.suspicion.patienceUs(A.member)).toBe(SUSPECT_AFTER_US);
      stage.crashUnheard(A);
      stage.until(() => B.replica.role === 'leader', 2 * SUSPECT_AFTER_US);
    },
  );
});

test('a member that trusts nobody does not make others impatient', () => {
  // C's reads of others are held, so it is alone and trusts nobody, but A and B read its row. The leader pauses now and
  // then. The other one learns patience, and does not take over each time.
  const stage = new Stage('replicas=3 clients=1');
  const [A, B, C] = stage.group(0);
  const { suspectAfterUs } = stage.world.plan.timing;
  stage.hold(C, A, B);
  stage.runFor(10 * suspectAfterUs);
  const { transitions } = stage.world.tally;
  const before = transitions.get('campaigned') ?? 0;
  for (let i = 0; i < 20; i++) {
    const leader = [A, B].find(({ replica }) => replica.role === 'leader')!;
    stage.world.pause(leader);
    stage.runFor(2 * suspectAfterUs);
    stage.world.resume(leader);
    stage.runFor(2 * suspectAfterUs);
  }
  expect((transitions.get('campaigned') ?? 0) - before).toBeLessThan(10);
});

test.each([
  [3, 'both ways'],
  [5, 'both ways'],
  [7, 'both ways'],
  [3, 'one way'],
  [5, 'one way'],
])('of %d members, cut off from each other at random %s, one that can lead does', (count, ways) => {
  let runs = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed * 7919 + count);
    const chance = ways === 'both ways' ? 35 : 25;
    const isCut = Array.from({ length: count }, () => new Array<boolean>(count).fill(false));
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < i; j++) {
        isCut[i][j] = random.below(100) < chance;
        isCut[j][i] = ways === 'both ways' ? isCut[i][j] : random.below(100) < chance;
      }
    }
    const dead = random.below(3) === 0 ? random.below(count) : -1;
    if (!hasConnectedQuorum(isCut, (member) => member !== dead)) continue;
    runs++;
    const { stage, members } = cluster(Stage, count);
    stage.lead(members[random.below(count)]);
    stage.runFor(random.below(500));
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < count; j++) if (isCut[i][j]) stage.hold(members[i], members[j]);
    }
    stage.runFor(random.below(2 * SUSPECT_AFTER_US));
    if (dead >= 0) stage.crashUnheard(members[dead]);
    for (let messages = 1; messages <= 3; messages++) {
      stage.send(0, [0], 'm');
      stage.until(() => orderedIn(stage) === messages, 5 * SUSPECT_AFTER_US);
      stage.runFor(SUSPECT_AFTER_US);
    }
  }
  expect(runs).toBeGreaterThan(18);
});

test.each([3, 5])('whatever faults %d members had before, one that can lead does', (count) => {
  let runs = 0;
  for (let seed = 1; seed <= 70; seed++) {
    const { stage, members } = cluster(Stage, count);
    const random = new Random(seed * 104_729 + count);
    const isCut = Array.from({ length: count }, () => new Array<boolean>(count).fill(false));
    const cutAtRandom = (chance: number): void => {
      for (let i = 0; i < count; i++) {
        for (let j = 0; j < i; j++) {
          const [one, other] = [members[i], members[j]];
          const shallBeCut = random.below(100) < chance;
          if (shallBeCut && !isCut[i][j]) cut(stage, one, other);
          if (!shallBeCut && isCut[i][j]) {
            stage.release(one, other);
            stage.release(other, one);
          }
          isCut[i][j] = isCut[j][i] = shallBeCut;
        }
      }
    };
    for (let events = 3 + random.below(12); events > 0; events--) {
      disturb(stage, members, random, cutAtRandom);
      stage.runFor(random.below(random.below(4) === 0 ? 3 * SUSPECT_AFTER_US : 300));
    }
    for (const host of members) {
      if (host.state === 'paused') stage.world.resume(host);
      if (host.state === 'down' && host.leftMemory && random.below(2) === 0) stage.resume(host);
    }
    cutAtRandom(20 + random.below(25));
    const isAble = ({ state, replica }: ReplicaHost) => state === 'up' && replica.member.normal;
    if (!hasConnectedQuorum(isCut, (member) => isAble(members[member]))) continue;
    runs++;
    for (let i = 0; i < 3; i++) {
      const before = orderedIn(stage);
      stage.send(0, [0], 'm');
      stage.until(() => orderedIn(stage) > before, 5 * SUSPECT_AFTER_US);
      stage.runFor(SUSPECT_AFTER_US);
    }
  }
  expect(runs).toBeGreaterThan(28);
});

/** Apply a random fault to one member, or cut links at random. At most f members lose their memory. */
function disturb(
  stage: Stage,
  members: readonly ReplicaHost[],
  random: Random,
  cutAtRandom: (chance: number) => void,
): void {
  const host = members[random.below(members.length)];
  const { state } = host;
  const isNormal = state === 'up' && host.replica.member.normal;
  const hasForgotten = (other: ReplicaHost): boolean =>
    other.state === 'down' ? !other.leftMemory : !other.replica.member.normal;
  const forgetful = members.filter(hasForgotten).length;
  switch (random.below(8)) {
    case 0:
      if (state === 'up') stage.kill(host);
      break;
    case 1:
    case 2:
      if (state === 'down' && host.leftMemory) stage.resume(host);
      break;
    case 3:
      if (!isNormal || forgetful >= members.length >> 1) break;
      stage.crashUnheard(host);
      stage.runFor(random.below(2 * SUSPECT_AFTER_US));
      stage.restart(host);
      break;
    case 4:
      if (state === 'up') stage.world.pause(host);
      else if (state === 'paused') stage.world.resume(host);
      break;
    case 5:
    case 6:
      if (state === 'up') stage.campaign(host);
      break;
    default:
      cutAtRandom(random.below(60));
  }
}

/** Is there a quorum of able members that all reach each other? */
function hasConnectedQuorum(
  isCut: readonly (readonly boolean[])[],
  isAble: (member: number) => boolean,
): boolean {
  const count = isCut.length;
  const able = isCut.map((_, member) => member).filter(isAble);
  for (let set = 0; set < 1 << count; set++) {
    const chosen = able.filter((member) => ((set >> member) & 1) === 1);
    if (chosen.length < (count >> 1) + 1) continue;
    if (chosen.every((i) => chosen.every((j) => !isCut[i][j]))) return true;
  }
  return false;
}
