/** Steps that are interrupted between two loads or stores, at one point after the other. */
import { HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import { LOG_CONTROL, MESSAGE } from 'tram-multicast/internal/protocol/layout.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Stage } from '../../src/sim/stage.js';
import { DIVERGED, interruptedAttack } from './attack.js';

/** Two clients that send entries of different lengths as fast as they can. @returns a function that ends this */
function floodUnevenly(stage: Stage): () => void {
  const ends = [stage.flood(0, [0], 'x'.repeat(300)), stage.flood(1, [0], 'y'.repeat(170))];
  return () => {
    for (const end of ends) end();
  };
}

/**
 * On shared memory, the first member has decided a message in a quick step, which not all members have, and the next message
 * is there.
 */
function quickStage(
  StageOf: typeof Stage,
  replicas: number,
): { stage: Stage; members: ReplicaHost[] } {
  const timing = { heartbeatUs: 500, restUs: 500, quickUs: 500, suspectAfterUs: 5000 };
  const stage = new StageOf(`replicas=${replicas} clients=2`, { memory: 'shared', timing });
  const members = stage.group(0);
  const { replica } = members[0];
  stage.until(() => replica.rows.dueUs > stage.world.nowUs + 400);
  stage.send(1, [0], 'first');
  stage.until(() => replica.member.deliveries === 1);
  stage.send(1, [0], 'second');
  return { stage, members };
}

const SMALLEST_LOG = 'replicas=3 clients=2 payload=400 rings=0';
/** More points than the step of a follower has that delivers what a smallest log holds. */
const DELIVERY_POINTS = 320;
const DELIVERY_POINTS_APART = 4;
/** More points than a candidate passes from its request to the copy of its log. */
const CAMPAIGN_POINTS = 700;
const CAMPAIGN_POINTS_APART = 12;

const OVERWRITTEN = /continues its session's numbers|where another replica|payload/;

interruptedAttack(
  'a follower waits in the middle of a delivery while its log is truncated and overwritten',
  {
    'delivers-while-overwritten': OVERWRITTEN,
    'follower-delivers-in-place': OVERWRITTEN,
  },
  ({ Stage }) => {
    let overwritten = 0;
    for (let point = 1; point <= DELIVERY_POINTS; point += DELIVERY_POINTS_APART) {
      const stage = new Stage(SMALLEST_LOG);
      const [, F] = stage.group(0);
      const { member } = F.replica;
      const endFlood = floodUnevenly(stage);
      stage.runFor(200);
      // It has some entries to deliver when it continues.
      stage.world.pause(F);
      stage.runFor(60);
      stage.interrupt(F, point, () => {
        const log = member.log.under(member.promised, member.promisedMember)!;
        const next = member.nextPosition;
        const wordAt = (i: number) => log.words[log.at + ((next + i) & log.mask)];
        const words = Array.from({ length: wordAt(0) }, (_, i) => wordAt(i));
        const isOverwritten = () => words.some((word, i) => wordAt(i) !== word);
        stage.hopeFor(isOverwritten, 8000);
        if (isOverwritten()) overwritten++;
      });
      stage.world.resume(F);
      stage.runFor(100);
      endFlood();
      stage.settle();
    }
    expect(overwritten).toBeGreaterThan(DELIVERY_POINTS / DELIVERY_POINTS_APART / 2);
  },
);

/** More points than a leader passes from the begin of a step until it has copied the message of a client. */
const TAKING_POINTS = 240;
/** Fewer than it passes while it copies four words. */
const TAKING_POINTS_APART = 3;

interruptedAttack(
  'the last word of a message lands while the leader copies the message',
  { 'hashes-again': /payload/ },
  ({ Stage }) => {
    let landed = 0;
    for (let point = 1; point <= TAKING_POINTS; point += TAKING_POINTS_APART) {
      const stage = new Stage('replicas=3 clients=1 payload=64');
      const { world } = stage;
      const [L] = stage.group(0);
      const [client] = world.clients;
      stage.hold(client, L);
      stage.send(0, [0], 'm'.repeat(64));
      const { operations } = stage.linkOf(client, L);
      const inbox = world.layout.inboxRing(0);
      const posts = () => operations.filter(({ isRead }) => !isRead);
      stage.until(() => posts().some(({ at }) => at === inbox));
      const missing = inbox + HEAD_WORDS + MESSAGE.payload + 6;
      for (const { at, data, dataAt, count } of posts()) {
        for (let i = 0; i < count; i++)
          if (at + i !== missing) L.memory.own[at + i] = data[dataAt + i];
      }
      const taken = L.replica.replication.endIndex;
      stage.interrupt(L, point, () => {
        if (L.replica.replication.endIndex === taken) landed++;
        stage.release(client, L);
        stage.until(() => posts().length === 0);
      });
      stage.runFor(100);
      stage.settle();
    }
    expect(landed).toBeGreaterThan(TAKING_POINTS / TAKING_POINTS_APART / 2);
  },
);

/** More points than a leader passes from the begin of a quick step until it has decided what it orders there. */
const QUICK_POINTS = 180;
const QUICK_POINTS_APART = 6;

interruptedAttack(
  'a leader waits in the middle of a quick step while another member takes over and orders another message first',
  { 'at-once-unpermitted': DIVERGED, 'at-once-permission-first': DIVERGED },
  ({ Stage }) => {
    for (const replicas of [3, 5]) {
      for (let point = 1; point <= QUICK_POINTS; point += QUICK_POINTS_APART) {
        const { stage, members } = quickStage(Stage, replicas);
        const last = members[replicas - 1];
        stage.interrupt(members[0], point, () => {
          stage.send(0, [0], 'another');
          stage.lead(last);
          stage.runFor(300);
        });
        stage.runFor(300);
        stage.settle();
      }
    }
  },
);

interruptedAttack(
  'a leader dies in a quick step, and of those that hold what it has decided, so many that just one is left',
  {},
  ({ Stage }) => {
    let lacking = 0;
    for (const replicas of [3, 5]) {
      for (let point = 1; point <= 2 * QUICK_POINTS; point += QUICK_POINTS_APART) {
        const { stage, members } = quickStage(Stage, replicas);
        const [A, B] = members;
        const last = members[replicas - 1];
        stage.interrupt(A, point, () => {
          const isDecided = A.replica.replication.decided === 2;
          if (isDecided && last.replica.member.sealLog().endIndex < 2) lacking++;
          stage.send(0, [0], 'another');
          stage.kill(A);
          if (replicas === 5) stage.kill(B);
          stage.lead(last);
          stage.runFor(300);
          // They come back without their memory.
          stage.restart(A);
          if (replicas === 5) stage.restart(B);
        });
        stage.runFor(300);
        stage.settle();
      }
    }
    expect(lacking).toBeGreaterThan(QUICK_POINTS / QUICK_POINTS_APART / 2);
  },
);

interruptedAttack(
  'late writes of a deposed leader drop and overwrite entries of a log while it is sealed and copied',
  { 'adopts-overwritten': /a sealed log stays whole/ },
  ({ Stage }) => {
    let dropped = 0;
    for (let point = 1; point <= CAMPAIGN_POINTS; point += CAMPAIGN_POINTS_APART) {
      const stage = new Stage(SMALLEST_LOG);
      const [L, F, G] = stage.group(0);
      const { layout } = stage.world;
      const { member } = F.replica;
      const endFlood = floodUnevenly(stage);
      stage.runFor(300);
      const log = member.log.under(member.promised, member.promisedMember)!;
      const base = layout.logControl(log.writer, log.ringIndex) + LOG_CONTROL.base;
      // The leader drops entries, and overwrites them. Nobody knows yet.
      const isDropping = (to: typeof F) =>
        stage.linkOf(L, to).operations.some(({ isRead, at }) => !isRead && at === base);
      stage.until(() => isDropping(F) && isDropping(G));
      stage.hold(L, F, G);
      stage.runFor(100);
      stage.world.pause(L);
      const before = log.base;
      stage.interrupt(F, point, () => {
        stage.withRefusedWrites('landing', () => {
          stage.release(L, F);
          stage.runFor(6);
        });
        if (log.base !== before) dropped++;
      });
      stage.campaign(F);
      stage.until(() => F.replica.role === 'leader');
      endFlood();
      stage.world.resume(L);
      stage.settle();
    }
    expect(dropped).toBeGreaterThan(CAMPAIGN_POINTS / CAMPAIGN_POINTS_APART / 2);
  },
);
