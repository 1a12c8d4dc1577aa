/**
 * Interleavings that once broke the protocol, told as in `attacks.test.ts`: writes that stop half-way for
 * ever, and members that die while their memory lives on.
 */
import { expect, test } from 'vitest';
import { FRAME_WORDS, HEAD_WORDS } from '../../src/memory/window.js';
import { Stage } from './stage.js';

test('half a message in the feed of one who died does not hide the whole one in another', () => {
  // 1. A leads the parent group and forwards m. Of what it writes to C, the child's leader, both ends
  //    of the record land, and not what is between them. A dies.
  // 2. B leads the parent group and writes m into its own feed at C.
  //    Harm: C looks at A's feed first, finds it framed, copies it, finds it torn, and looks there again.
  const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1 payload=32', {
    timing: { suspectAfterUs: 2000 },
  });
  const { world } = stage;
  const [A] = stage.group(0);
  const [C] = stage.group(1);
  const { layout, fabric } = world;
  expect([A, C].map(({ replica }) => replica.role)).toEqual(['leader', 'leader']);

  stage.hold(A, C);
  stage.send(0, [0, 1], 'm'.repeat(32));
  stage.until(() => A.replica.member.deliveries === 1);
  const feed = layout.feedRing(A.member);
  const oldest = layout.feedOldest(A.member);
  const { operations } = fabric['link'](A.process, C.process);
  const writes = operations.filter(({ isRead, at }) => !isRead && (at === oldest || at === feed));
  expect(writes.map(({ at }) => at)).toEqual([oldest, feed]);
  for (const { at, data, dataAt, count } of writes) {
    for (let i = 0; i < count; i++) {
      if (at === feed && i >= HEAD_WORDS && i < HEAD_WORDS + FRAME_WORDS) continue;
      C.memory.own[at + i] = data[dataAt + i];
    }
  }
  stage.crashUnheard(A);
  stage.settle();
  expect(world.ledger.orders[1]).toHaveLength(1);
});
