/** Keys that expire: found to be gone at once, and removed in bounded steps. */

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Keyspace } from '../../src/engine/keyspace.js';

function newKeyspace() {
  const changed: string[] = [];
  return { keyspace: new Keyspace({ changed: (key) => changed.push(key) }), changed };
}

describe('expiry', () => {
  test('a key is gone at its time', () => {
    const { keyspace, changed } = newKeyspace();
    keyspace.set('a', '1', 100);
    keyspace.nowMs = 99;
    expect(keyspace.find('a')).toBeDefined();
    const version = keyspace.versionOf('a');
    keyspace.nowMs = 100;
    expect(keyspace.versionOf('a')).not.toBe(version);
    expect(keyspace.find('a')).toBeUndefined();
    expect(changed).toEqual(['a', 'a']);
    expect(keyspace.expiring).toBe(0);
  });

  test('ticks remove the first ones, as many as they may, and leave those that must stay', () => {
    const { keyspace } = newKeyspace();
    for (let i = 0; i < 10; i++) keyspace.set(`k${i}`, '', 100 - i);
    keyspace.nowMs = 1_000;
    expect(keyspace.expireSome(3, (key) => key === 'k8')).toBe(3);
    expect([...keyspace.entries.keys()].sort()).toEqual(['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k8']);
    expect(keyspace.expireSome(100, () => false)).toBe(7);
    expect(keyspace.expireSome(100, () => false)).toBe(0);
  });

  test('a key whose time has changed goes at the new time only', () => {
    const { keyspace } = newKeyspace();
    keyspace.set('a', '1', 100);
    keyspace.expireAt('a', 200);
    keyspace.set('b', '1', 100);
    keyspace.expireAt('b', Infinity);
    keyspace.nowMs = 150;
    expect(keyspace.expireSome(10, () => false)).toBe(0);
    keyspace.nowMs = 200;
    expect(keyspace.expireSome(10, () => false)).toBe(1);
    expect(keyspace.find('b')).toBeDefined();
  });

  test('behaves as a list that is searched', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const at = fc.integer({ min: 1, max: 40 });
    const action = fc.oneof(
      fc.record({ type: fc.constant('set' as const), key, at: fc.option(at) }),
      fc.record({ type: fc.constant('delete' as const), key }),
      fc.record({
        type: fc.constant('tick' as const),
        by: at,
        max: fc.integer({ min: 0, max: 3 }),
        skip: key,
      }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 1_000, size: 'max' }), (actions) => {
        const { keyspace } = newKeyspace();
        const model = new Map<string, number>();
        for (const one of actions) {
          if (one.type === 'set') {
            const expiresAtMs = one.at === null ? Infinity : keyspace.nowMs + one.at;
            keyspace.set(one.key, '', expiresAtMs);
            model.set(one.key, expiresAtMs);
          } else if (one.type === 'delete') {
            keyspace.delete(one.key);
            model.delete(one.key);
          } else {
            keyspace.nowMs += one.by;
            const due = [...model].filter(
              ([name, atMs]) => atMs <= keyspace.nowMs && name !== one.skip,
            );
            due.sort(([a, atA], [b, atB]) => atA - atB || (a < b ? -1 : 1));
            for (const [name] of due.slice(0, one.max)) model.delete(name);
            expect(keyspace.expireSome(one.max, (name) => name === one.skip)).toBe(
              Math.min(one.max, due.length),
            );
          }
          expect(new Set(keyspace.entries.keys())).toEqual(new Set(model.keys()));
          expect(keyspace.expiring).toBe(
            [...model.values()].filter((atMs) => atMs !== Infinity).length,
          );
        }
      }),
      { numRuns: 100 },
    );
  });
});
