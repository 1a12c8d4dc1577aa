/** A client that behaves well: it knows what its keys hold, and how long its requests take. */

/** @typedef {import('../soak/clients.mjs').Client} Client */

const KEYS = Array.from({ length: 8 }, (_, i) => `witness${i}`);

/** @typedef {{ requests: number, p50Ms: number, p99Ms: number, longestMs: number, longestAfterMs: number }} Latencies  the longest, and when it began */

export class Witness {
  #round = 0;

  /** @param {Client} client */
  constructor(client) {
    this.client = client;
  }

  /** Makes requests until this has come true. @param {Promise<unknown>} end @returns {Promise<Latencies>} */
  async watch(end) {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    end.then(over, over);
    /** @type {number[]} */
    const times = [];
    const start = performance.now();
    let longest = { ms: 0, began: start };
    while (!isOver) {
      for (const request of this.#requests()) {
        const began = performance.now();
        await request();
        const ms = performance.now() - began;
        times.push(ms);
        if (ms > longest.ms) longest = { ms, began };
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    times.sort((a, b) => a - b);
    const at = (/** @type {number} */ part) => {
      const ms = times[Math.min(times.length - 1, Math.floor(times.length * part))];
      return Math.round(ms * 100) / 100;
    };
    const longestAfterMs = Math.round(longest.began - start);
    return {
      requests: times.length,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      longestMs: at(1),
      longestAfterMs,
    };
  }

  #requests() {
    const { client } = this;
    const value = `value ${++this.#round}`;
    const [a, b] = [KEYS[this.#round % KEYS.length], KEYS[(this.#round + 1) % KEYS.length]];
    return [
      async () => this.#expect('SET', await client.run(['set', a, value]), 'OK'),
      async () => this.#expect('GET', await client.run(['get', a]), value),
      async () => this.#expect('MSET', await client.run(['mset', a, value, b, value]), 'OK'),
      async () => {
        const replies = await client.transaction([
          ['rename', a, b],
          ['get', b],
          ['get', a],
        ]);
        this.#expect('a transaction', replies, ['OK', value, null]);
      },
    ];
  }

  /** @param {string} what @param {unknown} found @param {unknown} expected */
  #expect(what, found, expected) {
    const texts = [found, expected].map((reply) => JSON.stringify(reply));
    if (texts[0] === texts[1]) return;
    this.client.experience.wrong(`${what} replies ${texts[0]} instead of ${texts[1]}`);
  }
}
