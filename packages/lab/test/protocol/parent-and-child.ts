/** A cluster of two groups, one above the other, for attacks on what goes down the tree. */
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';

/** A leads the parent of the group that C leads, and has forwarded one message to it. */
export function parentAndChild(
  Stage: Subject['Stage'],
  prepare: (A: ReplicaHost) => void = () => undefined,
) {
  const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1 payload=32', {
    timing: { suspectAfterUs: 20_000 },
  });
  const { world } = stage;
  const [A] = stage.group(0);
  const [C] = stage.group(1);
  expect([A, C].map(({ replica }) => replica.role)).toEqual(['leader', 'leader']);
  prepare(A);
  stage.send(0, [0, 1], 'a'.repeat(32));
  stage.runFor(1500);
  expect(world.ledger.orders[1]).toHaveLength(1);
  return { stage, world, A, C };
}
