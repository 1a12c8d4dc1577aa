/** Steps that are interrupted between two loads or stores, at one point after the other. */
import { expect } from 'vitest';
import { interruptedAttack } from './attack.js';

/** More points than the step of a follower has that delivers what a smallest log holds. */
const POINTS = 320;
const POINTS_APART = 4;

interruptedAttack(
  'a follower waits in the middle of a delivery while its log is truncated and overwritten',
  { 'delivers-while-overwritten': /continues its session's numbers|where another replica|payload/ },
  ({ Stage }) => {
    let overwritten = 0;
    for (let point = 1; point <= POINTS; point += POINTS_APART) {
      const stage = new Stage('replicas=3 clients=2 payload=400 rings=0');
      const [, F] = stage.group(0);
      const { member } = F.replica;
      const endFloods = [
        stage.flood(0, [0], 'x'.repeat(300)),
        stage.flood(1, [0], 'y'.repeat(170)),
      ];
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
      for (const end of endFloods) end();
      stage.settle();
    }
    expect(overwritten).toBeGreaterThan(POINTS / POINTS_APART / 2);
  },
);
