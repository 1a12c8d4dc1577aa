/** Clients with keys of their own that expire, or that are large. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** @typedef {import('./clients.mjs').Client} Client */
/** @typedef {import('../random.mjs').Random} Random */

/**
 * How late a key may expire: without a leader, the time of a shard stands still. Then it goes up to twice as fast, so a key that was set
 * meanwhile may also expire too early.
 */
const LATE_MS_MAX = 10_000;

export class Expiring {
  #last = 0;

  /** @param {Client} client @param {Random} random @param {string} prefix */
  constructor(client, random, prefix) {
    this.client = client;
    this.random = random;
    this.prefix = prefix;
  }

  async step() {
    const { client, random } = this;
    const key = `${this.prefix}:${++this.#last % 50}`;
    const ttlMs = random.integer(100, 1500);
    await client.run(['set', key, 'value', 'PX', String(ttlMs)]);
    const set = performance.now();
    for (;;) {
      const asked = performance.now();
      const value = await client.run(['get', key]);
      if (value !== null && asked - set > ttlMs + LATE_MS_MAX) {
        client.experience.wrong(`${key} is still there after ${asked - set} ms, not ${ttlMs}`);
      }
      if (value === null) return;
      await sleep(random.integer(1, 300));
    }
  }

  async end() {
    this.client.close();
  }
}

const LARGE_BYTES_MAX = 2_000_000;

export class Large {
  /** What the keys hold. @type {Map<string, string>} */
  #values = new Map();

  /** @param {Client} client @param {Random} random @param {string} prefix */
  constructor(client, random, prefix) {
    this.client = client;
    this.random = random;
    this.keys = Array.from({ length: 4 }, (_, i) => `${prefix}:large${i}`);
  }

  async step() {
    const { client, random } = this;
    const [a, b] = random.some(this.keys, 2);
    const draw = random.next();
    if (draw < 0.4) await this.#check(a);
    else if (draw < 0.7) {
      const value = this.#newValue();
      await client.run(['set', a, value]);
      this.#values.set(a, value);
    } else if (draw < 0.85) {
      const [first, second] = [this.#newValue(), this.#newValue()];
      await client.run(['mset', a, first, b, second]);
      this.#values.set(a, first).set(b, second);
    } else if (this.#values.has(a)) {
      await client.run(['rename', a, b]);
      this.#values.set(b, /** @type {string} */ (this.#values.get(a))).delete(a);
    }
    await sleep(100);
  }

  async end() {
    for (const key of this.keys) await this.#check(key);
    this.client.close();
  }

  /** @param {string} key */
  async #check(key) {
    const { client } = this;
    const value = await client.run(['get', key]);
    const expected = this.#values.get(key) ?? null;
    if (value !== expected) {
      client.experience.wrong(`${key} is ${digest(value)} instead of ${digest(expected)}`);
    }
  }

  #newValue() {
    const { random } = this;
    const block = `${random.next()} `.repeat(random.integer(1, 100));
    return block.repeat(Math.ceil(random.integer(1, LARGE_BYTES_MAX) / block.length));
  }
}

/** @param {unknown} value */
function digest(value) {
  if (typeof value !== 'string') return String(value);
  return `${value.length} bytes, ${createHash('sha1').update(value).digest('hex').slice(0, 8)}`;
}
