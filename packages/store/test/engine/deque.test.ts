import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Deque } from '../../src/engine/deque.js';

/** Changes a deque and an array in the same way. @returns the array */
type Step = (deque: Deque, twin: string[]) => string[];

const element = fc.constantFrom('', 'a', 'bb', 'ccc');
const fraction = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

const pushed = fc.tuple(element, fc.boolean()).map(
  ([element, left]): Step =>
    (deque, twin) => {
      if (left) deque.pushLeft(element);
      else deque.pushRight(element);
      return left ? [element, ...twin] : [...twin, element];
    },
);

const popped = fc.boolean().map(
  (left): Step =>
    (deque, twin) => {
      expect(left ? deque.popLeft() : deque.popRight()).toBe(left ? twin[0] : twin.at(-1));
      return left ? twin.slice(1) : twin.slice(0, -1);
    },
);

const inserted = fc.tuple(fraction, element).map(
  ([at, element]): Step =>
    (deque, twin) => {
      const index = Math.floor(at * (twin.length + 1));
      deque.insert(index, element);
      return twin.toSpliced(index, 0, element);
    },
);

const replaced = fc.tuple(fraction, element).map(
  ([at, element]): Step =>
    (deque, twin) => {
      if (twin.length === 0) return twin;
      const index = Math.floor(at * twin.length);
      deque.set(index, element);
      return twin.with(index, element);
    },
);

const trimmed = fc.tuple(fraction, fraction).map(
  ([a, b]): Step =>
    (deque, twin) => {
      const from = Math.floor(a * (twin.length + 1));
      const to = from + Math.floor(b * (twin.length - from + 1));
      deque.trim(from, to);
      return twin.slice(from, to);
    },
);

const removed = fc.tuple(element, fc.integer({ min: 1, max: 5 }), fc.boolean()).map(
  ([element, limit, fromRight]): Step =>
    (deque, twin) => {
      let left = limit;
      const rest = (fromRight ? twin.toReversed() : twin).filter(
        (other) => other !== element || left-- <= 0,
      );
      expect(deque.remove(element, limit, fromRight)).toBe(twin.length - rest.length);
      return fromRight ? rest.reverse() : rest;
    },
);

const step = fc.oneof(
  { weight: 6, arbitrary: pushed },
  { weight: 4, arbitrary: popped },
  inserted,
  replaced,
  trimmed,
  removed,
);

test('does what an array does', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      const deque = new Deque();
      let twin: string[] = [];
      for (const step of steps) {
        twin = step(deque, twin);
        expect(deque.slice(0, deque.length)).toEqual(twin);
        expect(deque.bytes).toBe(twin.join('').length);
        const half = twin.length >> 1;
        expect(deque.slice(half, twin.length)).toEqual(twin.slice(half));
        if (half < twin.length) expect(deque.at(half)).toBe(twin[half]);
      }
    }),
    { numRuns: 500 },
  );
});
