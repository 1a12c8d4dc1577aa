/** Steps that are interrupted between two loads or stores, at one point after the other. */
import { LOG_CONTROL } from 'tram-multicast/internal/protocol/layout.js';
import { expect } from 'vitest';
import type { Stage } from '../../src/sim/stage.js';
import { interruptedAttack } from './attack.js';

/** Two clients that send entries of different lengths as fast as they can. @returns a function that ends this */
function floodUnevenly(stage: Stage): () => void {
  const ends = [stage.flood(0, [0], 'x'.repeat(300)), stage.flood(1, [0], 'y'.repeat(170))];
  return () => {
    for (const end of ends) end();
  };
}

const SMALLEST_LOG = 'replicas=3 clients=2 payload=400 rings=0';
/** More points than the step of a follower has that delivers what a smallest log holds. */
const DELIVERY_POINTS = 320;
const DELIVERY_POINTS_APART = 4;
/** More points than a candidate passes from its request to the copy of its log. */
const CAMPAIGN_POINTS = 700;
const CAMPAIGN_POINTS_APART = 12;

interruptedAttack(
  'a follower waits in the middle of a delivery while its log is truncated and overwritten',
  { 'delivers-while-overwritten': /continues its session's numbers|where another replica|payload/ },
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
