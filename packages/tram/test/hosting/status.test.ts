/** How a group is, by what is known of its members. */
import { expect, test } from 'vitest';
import { healthOf, type MemberState } from '../../src/hosting/status.js';

const up: MemberState = { isUp: true, isRecovering: false, delivered: 1000, needs: 0 };
const down: MemberState = { ...up, isUp: false };
const recovering: MemberState = { ...up, isRecovering: true, delivered: 0 };
/** Its log starts at 900, and it has lost what comes before. */
const lacking: MemberState = { ...up, delivered: 0, needs: 900 };
/** It has less than that, though its own log has all that it needs. */
const late: MemberState = { ...up, delivered: 100 };

test.each([
  ['ok', true, [up, up, up]],
  ['ok', true, [up, down, down]],
  ['ok', true, [up, up, recovering]],
  ['ok', true, [up, lacking, lacking]],
  // A row may be older than the log of the leader.
  ['ok', true, [late, lacking, lacking]],
  ['electing', false, [up, up, up]],
  ['electing', false, [up, up, down]],
  ['electing', false, [up, lacking, down]],
  ['electing', false, [up, lacking, lacking]],
  ['no-majority', false, [up, down, down]],
  ['no-majority', false, [up, recovering, down]],
  // The one that is down may have left a snapshot.
  ['no-majority', false, [lacking, lacking, down]],
  ['no-majority', false, [late, lacking, down]],
  ['state-lost', false, [lacking, lacking, lacking]],
  ['state-lost', false, [late, lacking, lacking]],
  ['state-lost', false, [lacking, lacking, recovering]],
  // Two that have forgotten everything can't recover with the help of one.
  ['state-lost', false, [up, recovering, recovering]],
  ['state-lost', true, [up, recovering, recovering]],
  ['state-lost', false, [down, recovering, recovering]],
  ['state-lost', false, [recovering, recovering, recovering]],
  ['no-majority', false, [down, down, { ...recovering, isUp: false }]],
  ['ok', true, [up, up, up, recovering, recovering]],
  ['state-lost', true, [up, up, recovering, recovering, recovering]],
  ['state-lost', false, [recovering]],
  ['state-lost', false, [lacking]],
  ['no-majority', false, [down]],
] as const)('%s (with a leader: %s): %j', (health, hasLeader, members) => {
  expect(healthOf(members, hasLeader)).toBe(health);
});
