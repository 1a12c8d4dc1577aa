/** How a group is, by what is known of its members. */
import { expect, test } from 'vitest';
import { healthOf, type MemberState } from '../../src/hosting/status.js';

const up: MemberState = { isUp: true, isNormal: true, delivered: 1000, needs: 0, seesLoss: false };
const down: MemberState = { ...up, isUp: false };
const recovering: MemberState = { ...up, isNormal: false, delivered: 0 };
/** It has published no row yet. */
const unknown: MemberState = { ...up, isNormal: undefined, delivered: 0 };
/** Its log starts at 900, and it has lost what comes before. */
const lacking: MemberState = { ...up, delivered: 0, needs: 900 };
/** It has less than that, though its own log has all that it needs. */
const late: MemberState = { ...up, delivered: 100 };
const seeing: MemberState = { ...lacking, seesLoss: true };

test.each([
  ['ok', true, [up, up, up]],
  ['ok', true, [up, down, down]],
  ['ok', true, [up, up, recovering]],
  ['ok', true, [up, lacking, lacking]],
  // Only a host that has looked twice may say that a state is lost.
  ['ok', true, [up, recovering, recovering]],
  // A row may be older than the log of the leader.
  ['ok', true, [late, lacking, lacking]],
  ['electing', false, [up, up, up]],
  ['electing', false, [up, up, down]],
  ['electing', false, [up, lacking, down]],
  ['electing', false, [up, lacking, lacking]],
  ['electing', false, [unknown, unknown, unknown]],
  ['electing', false, [up, unknown, down]],
  ['no-majority', false, [up, down, down]],
  ['no-majority', false, [up, recovering, down]],
  // The one that is down may have left a snapshot.
  ['no-majority', false, [lacking, lacking, down]],
  ['no-majority', false, [late, lacking, down]],
  ['no-majority', false, [lacking, lacking, lacking]],
  ['no-majority', false, [up, recovering, recovering]],
  ['no-majority', false, [down]],
  ['state-lost', false, [lacking, seeing, lacking]],
  ['state-lost', true, [up, recovering, { ...recovering, seesLoss: true }]],
  // It said so before it ended.
  ['no-majority', false, [{ ...seeing, isUp: false }, lacking, lacking]],
] as const)('%s (with a leader: %s): %j', (health, hasLeader, members) => {
  expect(healthOf(members, hasLeader)).toBe(health);
});
