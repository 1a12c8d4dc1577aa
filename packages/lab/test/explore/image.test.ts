/** An image finds what has changed, whatever changed it, and the journal puts it back. */
import { expect, test } from 'vitest';
import { Fingerprint } from '../../src/explore/fingerprint.js';
import { Image } from '../../src/explore/image.js';
import { Journal } from '../../src/explore/journal.js';

class Inner {
  words = new Int32Array(2);
  list: (object | undefined)[] = [undefined, undefined];
  queue: object[] = [];
}

class Outer {
  count = 0;
  ratio = 0.5;
  name = 'a';
  inner = new Inner();
}

function setUp() {
  const journal = new Journal();
  const print = new Fingerprint();
  const root = new Outer();
  const surroundings = { objects: new Set<object>(), region: new ArrayBuffer(4), unobserved: {} };
  const image = new Image(root, 1, surroundings, journal, print);
  return { journal, print, root, image };
}

const CHANGES: [string, (root: Outer) => void][] = [
  ['a number', (root) => root.count++],
  ['a fraction', (root) => (root.ratio += 0.25)],
  ['a text', (root) => (root.name = 'b')],
  ['a word', (root) => (root.inner.words[1] = 7)],
  ['a new object', (root) => (root.inner.list[1] = { a: 1 })],
];

test.each(CHANGES)('%s', (_, change) => {
  const { journal, print, root, image } = setUp();
  const before = JSON.stringify(root);
  const { low, high } = print;
  change(root);
  image.update();
  expect([print.low, print.high]).not.toEqual([low, high]);
  journal.undo(0);
  expect(JSON.stringify(root)).toBe(before);
});

test('a field of an object that was created later', () => {
  const { journal, print, root, image } = setUp();
  const created = { a: 1, deep: { b: 2 } };
  root.inner.list[0] = created;
  image.update();
  const { mark } = journal;
  const { low, high } = print;
  created.deep.b = 3;
  image.update();
  expect([print.low, print.high]).not.toEqual([low, high]);
  journal.undo(mark);
  expect(created.deep.b).toBe(2);
});

test('an array that was empty grows, and shrinks at either end', () => {
  const { journal, print, root, image } = setUp();
  const { queue } = root.inner;
  const empty = { low: print.low, high: print.high };
  queue.push({ a: 1 }, { a: 2 }, { a: 3 });
  image.update();
  const { mark } = journal;
  const full = { low: print.low, high: print.high };
  expect(full).not.toEqual(empty);
  queue.shift();
  queue.pop();
  image.update();
  expect({ low: print.low, high: print.high }).not.toEqual(full);
  journal.undo(mark);
  expect(queue).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
  journal.undo(0);
  expect(queue).toEqual([]);
});

test('the way to a state does not matter', () => {
  const one = setUp();
  const other = setUp();
  one.root.count = 1;
  one.image.update();
  one.root.name = 'b';
  one.image.update();
  other.root.name = 'b';
  other.root.count = 1;
  other.image.update();
  expect([one.print.low, one.print.high]).toEqual([other.print.low, other.print.high]);
});

test('a field that is added later is an error, not overlooked', () => {
  const { root } = setUp();
  expect(() => Object.assign(root, { more: 1 })).toThrow(TypeError);
});
