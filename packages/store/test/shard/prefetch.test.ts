/** A prefetch goes through all calls of a batch, whatever they are, and changes nothing. */
import { expect, test } from 'vitest';
import { Keyspace, PREFETCH_MAX } from '../../src/engine/keyspace.js';
import type { Call } from '../../src/messages/contents.js';
import { Prefetch } from '../../src/shard/prefetch.js';

function call(name: string, ...args: string[]): Call {
  return { name, args, resp: 2, blockedAs: 0 };
}

/** A keyspace that notes what is prefetched. */
class NotingKeyspace extends Keyspace {
  readonly prefetched: string[][] = [];

  constructor() {
    super({ changed: () => undefined });
  }

  override prefetch(keys: readonly string[]): number {
    this.prefetched.push([...keys]);
    return super.prefetch(keys);
  }
}

test('takes the keys of calls, and no other arguments', () => {
  const keyspace = new NotingKeyspace();
  const calls = [
    call('set', 'a', '1'),
    call('mset', 'b', '2', 'c', '3'),
    call('object|encoding', 'd'),
    call('del', 'e', 'f'),
    call('smove', 'g', 'h', '4'),
    call('dbsize'),
    call('.versions', 'i'),
    call('eval', 'return 1', '0'),
  ];
  expect(new Prefetch(keyspace).run(calls, 0)).toBe(calls.length);
  expect(keyspace.prefetched).toEqual([['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']]);
});

test('takes the arguments that there are, if there are too few', () => {
  const keyspace = new NotingKeyspace();
  new Prefetch(keyspace).run(
    [call('get'), call('smove', 'a'), call('mset'), call('del', 'b', 'c')],
    0,
  );
  expect(keyspace.prefetched).toEqual([['a', 'b', 'c']]);
});

test('does nothing for two keys', () => {
  const keyspace = new NotingKeyspace();
  expect(new Prefetch(keyspace).run([call('get', 'a'), call('get', 'b')], 0)).toBe(2);
  expect(keyspace.prefetched).toEqual([]);
});

test('takes so many keys at a time, also of one call', () => {
  const keyspace = new NotingKeyspace();
  const prefetch = new Prefetch(keyspace);
  const keys = Array.from({ length: PREFETCH_MAX + 50 }, (_, i) => `key:${i}`);
  const calls = [...keys.map((key) => call('get', key)), call('del', ...keys), call('get', 'last')];
  let at = 0;
  const stops: number[] = [];
  while (at < calls.length) {
    at = prefetch.run(calls, at);
    stops.push(at);
  }
  expect(stops).toEqual([PREFETCH_MAX, PREFETCH_MAX + 51, PREFETCH_MAX + 52]);
  expect(keyspace.prefetched.map((taken) => taken.length)).toEqual([PREFETCH_MAX, PREFETCH_MAX]);
});

test('changes nothing: neither keys that have expired, nor usage, nor counts', () => {
  const keyspace = new NotingKeyspace();
  keyspace.nowMs = 1000;
  const keys = Array.from({ length: 100 }, (_, i) => `key:${i}`);
  for (const [i, key] of keys.entries()) keyspace.set(key, `v${i}`, i % 2 === 0 ? 1500 : Infinity);
  keyspace.put('list', { type: 'hash' } as never);
  keyspace.nowMs = 2000;
  keyspace.usage.advance(1e12);
  const stale = keys.map((key) => keyspace.stalenessOf(key));
  keyspace.countsLookups = true;
  new Prefetch(keyspace).run([call('del', ...keys, 'list', 'absent')], 0);
  expect(keyspace.entries.size).toBe(101);
  expect(keyspace.counts).toEqual({ expired: 0, hits: 0, misses: 0 });
  expect(keys.map((key) => keyspace.stalenessOf(key))).toEqual(stale);
});
