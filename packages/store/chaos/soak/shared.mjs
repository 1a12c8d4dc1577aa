/** Clients that use the same keys. What they see has to fit together. */

/** @typedef {import('./clients.mjs').Client} Client */
/** @typedef {import('../random.mjs').Random} Random */

const ACCOUNTS = Array.from({ length: 12 }, (_, i) => `account${i}`);
const BALANCE = 1000;

const TRANSFER = `
  local balance = tonumber(redis.call('GET', KEYS[1]))
  if balance < tonumber(ARGV[1]) then return 0 end
  redis.call('DECRBY', KEYS[1], ARGV[1])
  redis.call('INCRBY', KEYS[2], ARGV[1])
  return 1`;

/** Moves money between accounts of different shards. The sum is the same at any time. */
export class Bank {
  /** @param {Client} client @param {Random} random */
  constructor(client, random) {
    this.client = client;
    this.random = random;
  }

  /** @param {Client} client */
  static async open(client) {
    await client.run(['mset', ...ACCOUNTS.flatMap((account) => [account, String(BALANCE)])]);
  }

  async step() {
    const { client, random } = this;
    const [from, to] = random.some(ACCOUNTS, 2);
    const amount = random.integer(1, 50);
    const draw = random.next();
    if (draw < 0.3) await this.#audit();
    else if (draw < 0.5) {
      await client.transaction([
        ['decrby', from, String(amount)],
        ['incrby', to, String(amount)],
      ]);
    } else if (draw < 0.75) await client.run(['eval', TRANSFER, '2', from, to, String(amount)]);
    else await this.#transferIfUnchanged(from, to, amount);
  }

  async end() {
    await this.#audit();
    this.client.close();
  }

  /** @param {string} from @param {string} to @param {number} amount */
  async #transferIfUnchanged(from, to, amount) {
    const { client } = this;
    await client.run(['watch', from, to]);
    const balances = /** @type {string[]} */ (await client.run(['mget', from, to])).map(Number);
    await client.transaction([
      ['set', from, String(balances[0] - amount)],
      ['set', to, String(balances[1] + amount)],
    ]);
  }

  async #audit() {
    const { client, random } = this;
    const reply = random.chance(0.5)
      ? await client.run(['mget', ...ACCOUNTS])
      : await client.transaction(ACCOUNTS.map((account) => ['get', account]));
    const balances = /** @type {string[]} */ (reply).map(Number);
    const sum = balances.reduce((a, b) => a + b);
    if (sum !== ACCOUNTS.length * BALANCE) {
      client.experience.wrong(`${client.name}: the sum of all accounts is ${sum}: ${balances}`);
    }
  }
}

const QUEUES = ['queue0', 'queue1', 'queue2', 'queue3'];

/** Producers and consumers. Each value is taken once, and those of one producer in their order. */
export class Jobs {
  /** Values that were put, and are not taken yet. @type {Set<string>} */
  #open = new Set();

  /** @param {Client} client @param {Random} random @param {string} name */
  producer(client, random, name) {
    let last = 0;
    return {
      step: async () => {
        const queue = random.pick(QUEUES);
        const value = `${name} ${queue} ${++last}`;
        // It may be taken before the reply is here.
        this.#open.add(value);
        await client.run(['rpush', queue, value]);
      },
      end: async () => client.close(),
    };
  }

  /** @param {Client} client @param {Random} random @param {string} name */
  consumer(client, random, name) {
    /** The last one of each producer and queue. @type {Map<string, number>} */
    const last = new Map();
    const take = async () => {
      const queues = random.some(QUEUES, random.integer(1, QUEUES.length));
      const reply = /** @type {[string, string] | null} */ (
        await client.wait(['blpop', ...queues, '0.5'])
      );
      if (reply === null) return false;
      const [producer, queue, number] = reply[1].split(' ');
      if (!this.#open.delete(reply[1])) client.experience.wrong(`${name} takes ${reply[1]} again`);
      const from = `${producer} ${queue}`;
      if (Number(number) < (last.get(from) ?? 0)) {
        client.experience.wrong(`${name} takes ${reply[1]} after ${last.get(from)}`);
      }
      last.set(from, Number(number));
      return true;
    };
    return { step: take, end: async () => client.close() };
  }

  /** Once nobody puts or takes any more. @param {Client} client */
  async end(client) {
    const left = [];
    for (const queue of QUEUES) left.push(await client.run(['lrange', queue, '0', '-1']));
    for (const value of left.flat()) this.#open.delete(String(value));
    const lost = [...this.#open];
    if (lost.length > 0) client.experience.wrong(`lost: ${lost.slice(0, 10)}`);
  }
}

/** A publisher and its subscribers: they get all messages in their order. */
export class Channel {
  #sent = 0;
  #longest = 'x'.repeat(20_000);

  /** @param {Client} client @param {Random} random @param {readonly Client[]} subscribers @param {string} name */
  constructor(client, random, subscribers, name) {
    this.client = client;
    this.random = random;
    this.subscribers = subscribers;
    this.name = name;
    /** The last message of each. */
    this.received = subscribers.map(() => 0);
  }

  async begin() {
    for (const [i, { name, connection, experience }] of this.subscribers.entries()) {
      await connection.subscribe(this.name, (message) => {
        const number = Number(message.split(' ')[0]);
        if (number !== this.received[i] + 1) {
          experience.wrong(`${name} gets message ${number} after ${this.received[i]}`);
        }
        this.received[i] = number;
      });
    }
  }

  async step() {
    const { client, random, name, subscribers } = this;
    const text = random.chance(0.1) ? this.#longest : 'text';
    const receivers = await client.run(['publish', name, `${++this.#sent} ${text}`]);
    if (Number(receivers) !== subscribers.length) {
      client.experience.wrong(`${receivers} clients get a message of ${name}`);
    }
  }

  async end() {
    const deadline = performance.now() + 10_000;
    const isMissing = () => this.received.some((number) => number < this.#sent);
    while (isMissing() && performance.now() < deadline) await new Promise(setImmediate);
    if (isMissing()) {
      this.client.experience.wrong(`${this.name}: of ${this.#sent} come ${this.received}`);
    }
    for (const client of [this.client, ...this.subscribers]) client.close();
  }
}
