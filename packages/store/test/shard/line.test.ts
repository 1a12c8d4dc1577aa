import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Line } from '../../src/shard/line.js';

interface Waiting {
  readonly item: number;
  readonly claim: readonly string[] | undefined;
}

/** Compares each one with all before it. */
function isFirst(line: readonly Waiting[], at: number): boolean {
  const { claim } = line[at];
  return !line
    .slice(0, at)
    .some((other) => !claim || !other.claim || other.claim.some((key) => claim.includes(key)));
}

describe('the line in front of keys', () => {
  test('knows who is first, as a naive one does', () => {
    const claim = fc.option(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 }), {
      nil: undefined,
      freq: 6,
    });
    const actions = fc.array(fc.record({ claim, leaves: fc.boolean(), which: fc.nat() }), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(actions, (drawn) => {
        const line = new Line<number>();
        const naive: Waiting[] = [];
        let last = 0;
        for (const { claim, leaves, which } of drawn) {
          if (leaves && naive.length > 0) {
            const at = which % naive.length;
            const { item } = naive[at];
            const before = new Set(naive.filter((_, i) => isFirst(naive, i)).map((w) => w.item));
            naive.splice(at, 1);
            const now = naive.filter((_, i) => isFirst(naive, i)).map((waiting) => waiting.item);
            expect(line.leave(item).sort()).toEqual(now.filter((i) => !before.has(i)).sort());
          } else {
            naive.push({ item: ++last, claim });
            expect(line.join(last, claim)).toBe(isFirst(naive, naive.length - 1));
          }
          for (const [i, { item }] of naive.entries()) {
            expect(line.isFirst(item)).toBe(isFirst(naive, i));
          }
          for (const key of ['a', 'b', 'c', 'd']) {
            const isClaimed = naive.some(({ claim }) => !claim || claim.includes(key));
            expect(line.isClaimed(key)).toBe(isClaimed);
          }
          expect([...line.items()]).toEqual(naive.map(({ item }) => item));
        }
      }),
    );
  });
});
