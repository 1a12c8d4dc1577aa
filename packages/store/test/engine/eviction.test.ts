import { describe, expect, test } from 'vitest';
import { Eviction, POLICIES, type Policy } from '../../src/engine/eviction.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import { Random } from '../../src/engine/random.js';
import { frequencyOf, idleSeconds } from '../../src/engine/usage.js';

const START_MS = 1_700_000_000_000;

/** A keyspace that has room for so many keys of the same size. */
class Cache {
  readonly changed: string[] = [];
  readonly keyspace = new Keyspace({ changed: (key) => this.changed.push(key) });
  readonly held = new Set<string>();
  readonly eviction = new Eviction(this.keyspace, (key) => this.held.has(key));
  nowMs = START_MS;

  constructor(
    policy: Policy,
    private readonly keys: number,
    samples = 5,
  ) {
    this.add('000000');
    const maxmemory = String(this.keyspace.memory * keys);
    this.keyspace.clear();
    const settings = { maxmemory, 'maxmemory-policy': policy };
    this.eviction.configure({ ...settings, 'maxmemory-samples': String(samples) }, 1);
  }

  wait(ms: number): void {
    this.nowMs += ms;
    this.keyspace.nowMs = this.nowMs;
    this.keyspace.usage.advance(this.nowMs);
  }

  /** As a command: it counts once. */
  add(key: string, expiresAtMs = Infinity): void {
    this.keyspace.usage.begin();
    this.keyspace.set(key, 'x', expiresAtMs);
    this.eviction.makeRoom();
  }

  /** @returns whether the key was there */
  use(key: string): boolean {
    this.keyspace.usage.begin();
    return this.keyspace.find(key) !== undefined;
  }

  fill(from = 0): void {
    for (let i = from; i < from + this.keys; i++) this.add(name(i));
  }

  /** How many of these keys are there. */
  count(from: number, to: number): number {
    let count = 0;
    for (let i = from; i < to; i++) if (this.keyspace.peek(name(i)) !== undefined) count++;
    return count;
  }
}

function name(i: number): string {
  return String(i).padStart(6, '0');
}

/** Key i is used about 1 / (i + 1) times as often as key 0. */
function zipfian(keys: number): () => string {
  const random = new Random(7);
  const sums: number[] = [];
  for (let i = 0; i < keys; i++) sums.push((sums.at(-1) ?? 0) + 1 / (i + 1));
  return () => {
    const drawn = random.next() * sums.at(-1)!;
    let [low, high] = [0, keys - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] < drawn) low = middle + 1;
      else high = middle;
    }
    return name(low);
  };
}

const KEYS = 1000;
const REQUESTS = 60_000;

/** The share of requests that find their key; others add it. */
function hitRatio(policy: Policy, draw: () => string, samples: number): number {
  const cache = new Cache(policy, KEYS, samples);
  let hits = 0;
  for (let i = 0; i < REQUESTS; i++) {
    cache.wait(10);
    const key = draw();
    if (cache.use(key)) hits++;
    else cache.add(key);
  }
  return hits / REQUESTS;
}

function hitRatioOfTrueLru(draw: () => string): number {
  const cache = new Set<string>();
  let hits = 0;
  for (let i = 0; i < REQUESTS; i++) {
    const key = draw();
    if (cache.delete(key)) hits++;
    else if (cache.size === KEYS) cache.delete(cache.values().next().value!);
    cache.add(key);
  }
  return hits / REQUESTS;
}

describe('eviction', () => {
  test('of the least recently used is nearly as good as if the order of all uses were known', () => {
    const perfect = hitRatioOfTrueLru(zipfian(10 * KEYS));
    const random = hitRatio('allkeys-random', zipfian(10 * KEYS), 5);
    expect(perfect - random).toBeGreaterThan(0.02);
    expect(hitRatio('allkeys-lru', zipfian(10 * KEYS), 5)).toBeGreaterThan(perfect - 0.004);
    expect(hitRatio('allkeys-lru', zipfian(10 * KEYS), 10)).toBeGreaterThan(perfect - 0.002);
  });

  test('of the least recently used spares what was used since', () => {
    const cache = new Cache('allkeys-lru', KEYS);
    cache.fill();
    cache.wait(1000);
    for (let i = 0; i < KEYS / 2; i++) cache.use(name(i));
    cache.wait(1000);
    for (let i = 0; i < KEYS / 2; i++) cache.add(name(KEYS + i));
    // At random, it would be half of each.
    expect(cache.count(0, KEYS / 2)).toBeGreaterThan(0.8 * (KEYS / 2));
    expect(cache.count(KEYS, KEYS + KEYS / 2)).toBeGreaterThan(0.99 * (KEYS / 2));
    expect(cache.eviction.evicted).toBe(KEYS / 2);
  });

  test('of the least frequently used keeps what is used often, although much else is used once', () => {
    const kept = (['allkeys-lfu', 'allkeys-lru'] as const).map((policy) => {
      const cache = new Cache(policy, KEYS);
      for (let i = 0; i < KEYS / 10; i++) cache.add(name(i));
      for (let round = 0; round < 20; round++) {
        for (let i = 0; i < KEYS / 10; i++) cache.use(name(i));
        cache.wait(100);
      }
      // A scan over three times as many keys as there is room for.
      for (let i = KEYS; i < 4 * KEYS; i++) {
        cache.add(name(i));
        cache.wait(8);
      }
      return cache.count(0, KEYS / 10) / (KEYS / 10);
    });
    expect(kept[0]).toBeGreaterThan(0.95);
    expect(kept[1]).toBeLessThan(0.3);
  });

  test('of the first to expire goes by their times', () => {
    const cache = new Cache('volatile-ttl', 11);
    for (let i = 0; i < 5; i++) cache.add(name(i));
    for (let i = 5; i < 10; i++) cache.add(name(i), START_MS + 100_000 - i);
    cache.held.add(name(9));
    for (let i = 10; i < 12; i++) cache.add(name(i));
    expect(cache.keyspace.entries.keys().toSorted()).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 9, 10, 11].map(name),
    );
  });

  test.each(['volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'] as const)(
    '%s evicts only what expires, and fails if nothing does',
    (policy) => {
      const cache = new Cache(policy, 10);
      for (let i = 0; i < 5; i++) cache.add(name(i));
      for (let i = 5; i < 10; i++) cache.add(name(i), START_MS + 100_000);
      for (let i = 10; i < 15; i++) cache.add(name(i));
      expect(cache.count(0, 5)).toBe(5);
      expect(cache.count(5, 10)).toBeLessThanOrEqual(1);
      for (let i = 15; i < 20; i++) cache.add(name(i));
      expect(cache.eviction.makeRoom()).toBe(false);
      expect(cache.count(0, 5) + cache.count(10, 20)).toBe(15);
    },
  );

  test.each(POLICIES)('%s leaves the keys alone while there is room, or no limit', (policy) => {
    const cache = new Cache(policy, 10);
    cache.fill();
    expect(cache.keyspace.entries.size).toBe(10);
    cache.eviction.configure({ maxmemory: '0' }, 1);
    cache.fill(10);
    expect(cache.eviction.makeRoom()).toBe(true);
    expect(cache.keyspace.entries.size).toBe(20);
  });

  test.each(POLICIES.filter((policy) => policy !== 'noeviction'))(
    '%s spares keys that are held, and finds the one that is not',
    (policy) => {
      const cache = new Cache(policy, 100);
      for (let i = 0; i < 100; i++) {
        if (i !== 57) cache.held.add(name(i));
        cache.add(name(i), START_MS + 100_000);
      }
      cache.held.add(name(100));
      cache.add(name(100), START_MS + 100_000);
      expect(cache.count(0, 101)).toBe(100);
      expect(cache.count(57, 58)).toBe(0);
      cache.held.add(name(101));
      cache.add(name(101), START_MS + 100_000);
      expect(cache.eviction.makeRoom()).toBe(false);
    },
  );

  test('changes the versions of keys', () => {
    const cache = new Cache('allkeys-random', 1);
    cache.add(name(0));
    const version = cache.keyspace.versionOf(name(0));
    cache.changed.length = 0;
    cache.held.add(name(1));
    cache.add(name(1));
    expect(cache.keyspace.versionOf(name(0))).not.toBe(version);
    expect(cache.changed).toContain(name(0));
  });

  test('of very many keys is done in steps', () => {
    const cache = new Cache('allkeys-lru', 3000);
    cache.fill();
    cache.eviction.configure({ maxmemory: '1' }, 1);
    expect(cache.eviction.makeRoom()).toBe(true);
    expect(cache.keyspace.entries.size).toBe(2000);
    while (cache.keyspace.entries.size > 0) cache.eviction.makeRoom();
    expect(cache.eviction.evicted).toBe(3000);
  });

  test('goes by a share of the memory of all shards', () => {
    const cache = new Cache('allkeys-lru', 100);
    cache.fill();
    cache.eviction.configure({ 'maxmemory-samples': '3' }, 4);
    cache.eviction.makeRoom();
    expect(cache.keyspace.entries.size).toBe(25);
  });
});

describe('how keys are used', () => {
  const idleOf = ({ keyspace }: Cache): number => idleSeconds(keyspace.stalenessOf('000000'));
  const frequency = ({ keyspace }: Cache): number => frequencyOf(keyspace.stalenessOf('000000'));

  test('idle times grow until a key is used, or changed', () => {
    const cache = new Cache('allkeys-lru', 10);
    cache.wait(0);
    cache.add('000000');
    cache.wait(90_000);
    cache.keyspace.peek('000000');
    expect(idleOf(cache)).toBe(90);
    cache.use('000000');
    expect(idleOf(cache)).toBe(0);
    cache.wait(90 * 24 * 3600 * 1000);
    expect(idleOf(cache)).toBe(90 * 24 * 3600);
    cache.keyspace.rename('000000', '000001');
    cache.keyspace.rename('000001', '000000');
    expect(idleOf(cache)).toBe(90 * 24 * 3600);
    cache.add('000000');
    expect(idleOf(cache)).toBe(0);
  });

  test('frequencies grow slower and slower, and fall with time', () => {
    const cache = new Cache('allkeys-lfu', 10);
    cache.wait(0);
    cache.add('000000');
    expect(frequency(cache)).toBe(5);
    const reached = [100, 1000, 100_000].map((uses) => {
      for (let i = 0; i < uses; i++) cache.use('000000');
      return frequency(cache);
    });
    // As the documentation of Redis has it for a factor of 10: 10, 18, 142.
    expect(reached[0]).toBeGreaterThan(6);
    expect(reached[0]).toBeLessThan(14);
    expect(reached[1]).toBeLessThan(26);
    expect(reached[2]).toBeGreaterThan(110);
    expect(reached[2]).toBeLessThan(180);
    cache.wait(50 * 60_000);
    expect(frequency(cache)).toBe(reached[2] - 50);
    cache.eviction.configure({ 'lfu-decay-time': '0' }, 1);
    cache.wait(50 * 60_000);
    expect(frequency(cache)).toBe(reached[2]);
  });

  test('a command counts once, however often it looks at a key', () => {
    const cache = new Cache('allkeys-lfu', 10);
    cache.eviction.configure({ 'lfu-log-factor': '0' }, 1);
    cache.add('000000');
    cache.keyspace.usage.begin();
    for (let i = 0; i < 10; i++) cache.keyspace.find('000000');
    expect(frequency(cache)).toBe(6);
  });

  test('all keys begin anew when the policy counts in the other way', () => {
    const cache = new Cache('allkeys-lru', 10);
    cache.add('000000');
    cache.wait(10_000);
    cache.eviction.configure({ 'maxmemory-policy': 'volatile-lfu' }, 1);
    expect(frequency(cache)).toBe(5);
    cache.eviction.configure({ 'maxmemory-policy': 'noeviction' }, 1);
    expect(idleOf(cache)).toBe(0);
  });
});
