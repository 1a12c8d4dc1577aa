/** A position table finds what a `Map` finds, whatever was added, moved and deleted before. */
import { describe, expect, it } from 'vitest';
import { IndexedMap } from '../../src/engine/indexed-map.js';
import { PositionTable } from '../../src/engine/position-table.js';
import { Random } from '../../src/engine/random.js';
import { usedBytes } from '../used-memory.js';

describe('a position table', () => {
  it('finds nothing when it is empty, and after it was cleared', () => {
    const keys: string[] = ['a'];
    const table = new PositionTable(keys);
    expect(table.get('a')).toBeUndefined();
    table.set('a', 0);
    expect(table.get('a')).toBe(0);
    table.clear();
    expect(table.get('a')).toBeUndefined();
  });

  it('ignores the deletion of a key that it does not have', () => {
    const keys: string[] = ['a'];
    const table = new PositionTable(keys);
    table.set('a', 0);
    table.delete('b');
    expect(table.get('a')).toBe(0);
  });

  it.each([5, 300, 20_000])('holds the same as a Map, with up to %i keys', (count) => {
    const random = new Random(count);
    const large = new IndexedMap<number>(true);
    const expected = new Map<string, number>();
    const below = (max: number): number => Math.floor(random.next() * max);
    for (let step = 0; step < 200_000; step++) {
      // Keys of all lengths, the empty one too, and bytes above 127.
      const n = below(count);
      const key = n === 0 ? '' : `${String.fromCharCode(n & 255)}${'x'.repeat(n % 40)}${n}`;
      // It grows and shrinks in turn.
      if (random.next() < (step % 50_000 < 25_000 ? 0.7 : 0.3)) {
        large.set(key, step);
        expected.set(key, step);
      } else {
        large.delete(key);
        expected.delete(key);
      }
      if (step % 25_000 === 0) expect(contentsOf(large)).toEqual(expected);
    }
    expect(contentsOf(large)).toEqual(expected);
    expect(large.has('absent')).toBe(false);
  });

  it('gives memory back when most keys are deleted', async () => {
    const keys = Array.from({ length: 300_000 }, (_, i) => `key:${i}`);
    const before = await bufferBytes();
    const table = tableOf(keys);
    expect((await bufferBytes()) - before).toBeGreaterThan(8_000_000);
    for (const key of keys.slice(1000)) table.delete(key);
    expect((await bufferBytes()) - before).toBeLessThan(200_000);
    expect(keys.slice(0, 1000).every((key, i) => table.get(key) === i)).toBe(true);
  });

  it('guesses where most of its keys are', () => {
    const keys = Array.from({ length: 1000 }, (_, i) => `key:${i}`);
    const table = tableOf(keys);
    const positions = new Int32Array(2000);
    table.guess([...keys, ...keys.map((key) => `absent ${key}`)], positions);
    expect(keys.filter((_, i) => positions[i] === i).length).toBeGreaterThan(600);
    expect(positions.slice(1000).filter((position) => position === -1).length).toBeGreaterThan(400);
    expect(positions.every((position) => position >= -1 && position < 1000)).toBe(true);
  });

  it('spreads keys that were chosen to have the same hash', () => {
    const [one, other] = colliding();
    const keys = Array.from({ length: 1024 }, (_, i) =>
      Array.from({ length: 10 }, (_, bit) => ((i >> bit) & 1 ? one : other)).join(''),
    );
    const positions = new Int32Array(keys.length);
    tableOf(keys).guess(keys, positions);
    expect(keys.filter((_, i) => positions[i] === i).length).toBeGreaterThan(600);
  });
});

function bufferBytes(): Promise<number> {
  return usedBytes(({ arrayBuffers }) => arrayBuffers);
}

function tableOf(keys: readonly string[]): PositionTable {
  const table = new PositionTable(keys);
  for (const [i, key] of keys.entries()) table.set(key, i);
  return table;
}

/**
 * Two texts after which FNV-1a is in the same state, whatever odd numbers it begins with and multiplies by. Of the bytes 0 and 1, each 1
 * adds 1 and takes 1 away in turn. So the states differ by a polynomial in the multiplier. Its signs are those of Thue and Morse, which
 * make it (1 - m)(1 - m^2)(1 - m^4)..., a multiple of 2^32.
 */
function colliding(): readonly [string, string] {
  const texts: [string, string] = ['', ''];
  for (let at = 0; at < 64; at++) {
    const isOdd = at.toString(2).replaceAll('0', '').length % 2 === 1;
    texts[0] += isOdd ? '\x01\x01' : '\x00\x00';
    texts[1] += isOdd ? '\x00\x00' : '\x01\x01';
  }
  return texts;
}

/** What it finds for each of its keys. */
function contentsOf(map: IndexedMap<number>): Map<string, number | undefined> {
  return new Map(map.keys().map((key) => [key, map.get(key)]));
}
