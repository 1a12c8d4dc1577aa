import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SortedMap } from '../../src/engine/sorted-map.js';

type Pair = readonly [key: string, value: number];

function visited(map: SortedMap<number>, from: string, to: string, limit: number, down: boolean) {
  const found: Pair[] = [];
  const visit = (key: string, value: number) => found.push([key, value]) < limit;
  if (down) map.visitDown(from, to, visit);
  else map.visit(from, to, visit);
  return found;
}

test('keeps keys in order, in many blocks', () => {
  const range = fc.record({
    from: fc.nat(1_500),
    length: fc.nat(500),
    step: fc.constantFrom(1, 7, 1_009),
    remove: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 10 }), (ranges) => {
      const map = new SortedMap<number>();
      const twin = new Map<string, number>();
      for (const { from, length, step, remove } of ranges) {
        for (let i = 0; i < length; i++) {
          const key = String((from + i * step) % 2_003).padStart(4, '0');
          if (remove) expect(map.delete(key)).toBe(twin.delete(key));
          else {
            expect(map.set(key, i)).toBe(!twin.has(key));
            twin.set(key, i);
          }
        }
        const sorted = [...twin].sort(([a], [b]) => (a < b ? -1 : 1));
        expect(map.size).toBe(sorted.length);
        expect(map.first).toEqual(sorted[0]);
        expect(map.last).toEqual(sorted.at(-1));
        expect(visited(map, '', '9999', Infinity, false)).toEqual(sorted);
        expect(visited(map, '', '9999', Infinity, true)).toEqual(sorted.toReversed());
        const inside = sorted.filter(([key]) => key >= '0500' && key <= '1500');
        expect(visited(map, '0500', '1500', 7, false)).toEqual(inside.slice(0, 7));
        expect(visited(map, '0500', '1500', 7, true)).toEqual(inside.toReversed().slice(0, 7));
        for (const key of ['0000', '0700', '2002', '5000']) {
          expect(map.get(key)).toBe(twin.get(key));
          expect(map.has(key)).toBe(twin.has(key));
        }
      }
    }),
    { numRuns: 100 },
  );
});
