/**
 * How much memory the keys of a shard may take, and which keys are evicted when they take more. All replicas evict the same keys: this
 * depends on the state and on the order of commands alone.
 *
 * Redis keeps the best candidates of earlier evictions in a pool. Here an eviction looks at twice as many keys instead, and leaves
 * nothing behind. `test/engine/eviction.test.ts` compares this with exact LRU.
 */

import type { Bytes } from '../resp/reply.js';
import type { Keyspace } from './keyspace.js';

/** In the order in which Redis names them. */
export const POLICIES = [
  'volatile-lru',
  'volatile-lfu',
  'volatile-random',
  'volatile-ttl',
  'allkeys-lru',
  'allkeys-lfu',
  'allkeys-random',
  'noeviction',
] as const;

export type Policy = (typeof POLICIES)[number];

/** As CONFIG names and prints them. They are those of all shards together. */
export interface MemorySettings {
  readonly maxmemory: string;
  readonly 'maxmemory-policy': string;
  readonly 'maxmemory-samples': string;
  readonly 'lfu-log-factor': string;
  readonly 'lfu-decay-time': string;
}

export const MEMORY_DEFAULTS: MemorySettings = {
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
  'maxmemory-samples': '5',
  'lfu-log-factor': '10',
  'lfu-decay-time': '1',
};

/** What a command evicts at most. The next one goes on, or the next tick. */
const EVICTED_AT_ONCE = 1000;

/** How many keys are looked at, for each of `maxmemory-samples`. */
const LOOKED_AT_PER_SAMPLE = 2;

export interface EvictionState {
  readonly settings: MemorySettings;
  readonly bytesMax: number;
  readonly evicted: number;
}

export class Eviction {
  #settings = MEMORY_DEFAULTS;
  #policy: Policy = 'noeviction';
  /** What the keys of this shard may take; 0: any number. */
  #bytesMax = 0;
  #lookedAt = 0;
  #evicted = 0;

  /** @param isHeld  whether a key has to stay for now */
  constructor(
    private readonly keyspace: Keyspace,
    private readonly isHeld: (key: Bytes) => boolean = () => false,
  ) {
    this.#apply();
  }

  get settings(): MemorySettings {
    return this.#settings;
  }

  /** How many keys were evicted. */
  get evicted(): number {
    return this.#evicted;
  }

  get state(): EvictionState {
    return { settings: this.#settings, bytesMax: this.#bytesMax, evicted: this.#evicted };
  }

  /** After the keyspace was restored. */
  restore({ settings, bytesMax, evicted }: EvictionState): void {
    this.#settings = settings;
    this.#bytesMax = bytesMax;
    this.#evicted = evicted;
    this.#apply();
  }

  /** @param shards  that share the memory evenly */
  configure(changes: Partial<MemorySettings>, shards: number): void {
    this.#settings = { ...this.#settings, ...changes };
    this.#bytesMax = Math.ceil(Number(this.#settings.maxmemory) / shards);
    this.#apply();
  }

  /**
   * Evicts keys if they take more than they may.
   * @param mayEvict  false if all keys have to stay for now
   * @returns false if memory is short: there are no keys that may be evicted
   */
  makeRoom(mayEvict = true): boolean {
    if (!this.#isFull) return true;
    if (!mayEvict) return false;
    for (let left = EVICTED_AT_ONCE; this.#isFull && left > 0; left--) {
      const key = this.#next();
      if (key === undefined) return false;
      this.keyspace.delete(key);
      this.#evicted++;
    }
    return true;
  }

  get #isFull(): boolean {
    return this.#bytesMax > 0 && this.keyspace.memory > this.#bytesMax;
  }

  #apply(): void {
    const { settings } = this;
    this.#policy = settings['maxmemory-policy'] as Policy;
    const isRandom = this.#policy.endsWith('-random');
    this.#lookedAt = isRandom ? 1 : LOOKED_AT_PER_SAMPLE * Number(settings['maxmemory-samples']);
    this.keyspace.usage.count(
      this.#policy.endsWith('-lfu') ? 'frequency' : 'recency',
      this.keyspace.entries.size,
      {
        logFactor: Number(settings['lfu-log-factor']),
        decayMinutes: Number(settings['lfu-decay-time']),
      },
    );
  }

  /** @returns the key to evict; undefined if there is none */
  #next(): Bytes | undefined {
    const { entries, expiryQueue } = this.keyspace;
    if (this.#policy === 'noeviction') return undefined;
    if (this.#policy === 'volatile-ttl') return this.keyspace.firstToExpire(this.isHeld);
    return this.#policy.startsWith('allkeys-')
      ? this.#stalest(entries, (at) => at)
      : this.#stalest(expiryQueue, (at) => entries.positionOf(expiryQueue.keyAt(at))!);
  }

  /** @returns of some keys the one that is most stale */
  #stalest(
    keys: { readonly size: number; keyAt(at: number): Bytes },
    positionOf: (at: number) => number,
  ): Bytes | undefined {
    const { size } = keys;
    const { usage } = this.keyspace;
    const areAll = size <= this.#lookedAt;
    let stalest: Bytes | undefined;
    let staleness = -1;
    let at = 0;
    for (let i = 0; i < (areAll ? size : this.#lookedAt); i++) {
      at = areAll ? i : Math.floor(usage.random.next() * size);
      const own = usage.staleness(positionOf(at));
      if (own <= staleness || this.isHeld(keys.keyAt(at))) continue;
      stalest = keys.keyAt(at);
      staleness = own;
    }
    // If all that it has looked at are held: the next one that is not.
    for (let i = 1; stalest === undefined && i < size; i++) {
      const key = keys.keyAt((at + i) % size);
      if (!this.isHeld(key)) stalest = key;
    }
    return stalest;
  }
}
