/** When the state of a group is lost for good, by what the rows of its members tell. */
import { expect, test } from 'vitest';
import { isStateLost, type Standing } from '../../../src/protocol/leadership/state-loss.js';

const BALLOT = 20;
const full: Standing = {
  ...{ incarnation: 1, beats: 0, normal: true, promised: BALLOT, logBallot: BALLOT },
  ...{ delivered: 1000, needs: 0 },
};
/** It has lost its memory. */
const forgotten: Standing = { ...full, normal: false, promised: 0, logBallot: 0, delivered: 0 };
/** It has, too, but it has found a leader, and fetches what it lacks. */
const fetching: Standing = { ...forgotten, promised: BALLOT };
/** Its log starts at 900, and it has lost what comes before. */
const lacking: Standing = { ...full, delivered: 0, needs: 900 };
/** It has delivered less than that, and its own log has what follows: it is as new, or older. */
const late: Standing = { ...full, delivered: 100 };
const old: Standing = { ...late, logBallot: BALLOT - 8 };
const down = undefined;

test.each([
  [false, [full, full, full]],
  [false, [full, down, down]],
  [false, [full, full, forgotten]],
  [false, [full, lacking, lacking]],
  [false, [full, forgotten, down]],
  [false, [full, forgotten, fetching]],
  [false, [down, forgotten, fetching]],
  [true, [full, forgotten, forgotten]],
  [true, [down, forgotten, forgotten]],
  [true, [forgotten, forgotten, forgotten]],
  [true, [forgotten]],
  [false, [full, full, full, forgotten, forgotten]],
  [true, [full, full, forgotten, forgotten, forgotten]],
  // One that is down may have left a snapshot.
  [false, [lacking, lacking, down]],
  [true, [lacking, lacking, lacking]],
  [true, [lacking]],
  [true, [lacking, lacking, forgotten]],
  [false, [lacking, lacking, fetching]],
  // Its log may be adopted.
  [false, [lacking, lacking, late]],
  [false, [lacking, { ...lacking, logBallot: BALLOT - 8 }, old]],
  // Any two members have a newer log than this one, which starts too late.
  [true, [lacking, lacking, old]],
  [false, [lacking, old, old]],
  [true, [lacking, lacking, lacking, old, old]],
  [false, [lacking, lacking, old, old, old]],
  // Nothing was ever dropped.
  [false, [{ ...full, delivered: 0 }, { ...full, delivered: 0 }, forgotten]],
] as const)('%s: %j', (isLost, members) => {
  expect(isStateLost(members)).toBe(isLost);
});
