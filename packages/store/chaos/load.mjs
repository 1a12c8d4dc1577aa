/** Clients of Redis that run transactions on lists and registers, and keep a record of all replies. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const LISTS = 5;
const REGISTERS = 3;
/** After so many appends, other keys are used: the lists stay short. */
const APPENDS_OF_KEYS = 250;
const PAUSE_MS = 8;
/** A reply that takes longer is missing for ever. */
const REPLY_MS_MAX = 60_000;

/** @typedef {import('../dist/check/history.js').Transaction} Transaction */
/** @typedef {import('../dist/check/history.js').Operation} Operation */
/** @typedef {readonly [name: string, ...args: string[]]} Command */

export class Load {
  /** @type {Transaction[]} */
  history = [];
  /** What no fault explains. @type {string[]} */
  errors = [];
  counts = { ok: 0, failed: 0, unknown: 0 };
  #isOver = false;
  #appended = 0;
  #values = 0;

  /**
   * @param {() => number} random  0 <= x < 1
   * @param {{ pauseMs?: number }} [options]  about how long a client pauses between two transactions
   */
  constructor(random, { pauseMs = PAUSE_MS } = {}) {
    this.random = random;
    this.pauseMs = pauseMs;
  }

  end() {
    this.#isOver = true;
  }

  /** A client of this gateway, which connects again if it loses its connection. @param {string} socket @param {string} name */
  async run(socket, name) {
    for (let turn = 0; !this.#isOver; turn++) {
      const redis = connect(socket);
      try {
        await redis.connect();
        for (let i = 0; !this.#isOver; i++) {
          await this.#transaction(redis, `${name}.${turn}.${i}`);
          await sleep(this.random() * 2 * this.pauseMs);
        }
      } catch {
        await sleep(100);
      } finally {
        redis.disconnect();
      }
    }
  }

  /** Reads all lists. @param {string} socket */
  async readAll(socket) {
    const redis = connect(socket);
    await redis.connect();
    for (let from = 0; from <= this.#generation; from++) {
      const commands = Array.from({ length: LISTS }, (_, i) => read(`${from}:list${i}`));
      await this.#record(`the last read of ${from}`, commands, () => multi(redis, commands));
    }
    redis.disconnect();
  }

  get #generation() {
    return Math.floor(this.#appended / APPENDS_OF_KEYS);
  }

  /** @param {Redis} redis @param {string} name */
  async #transaction(redis, name) {
    const draw = this.random();
    if (draw < 0.25) {
      await this.#watch(redis, name);
      return;
    }
    const commands = Array.from({ length: 1 + this.#pick(4) }, () => this.#command());
    // Moves nothing, but needs what one shard has to be known to another: the transaction is coordinated.
    if (draw < 0.6) commands.push(['lmove', 'nothing1', 'nothing2', 'LEFT', 'LEFT']);
    await this.#record(name, commands, () =>
      commands.length === 1 ? single(redis, commands[0]) : multi(redis, commands),
    );
  }

  /** Reads two lists that it watches, and appends to two others if they have not changed. @param {Redis} redis @param {string} name */
  async #watch(redis, name) {
    const reads = [read(this.#list()), read(this.#list())];
    const appends = [this.#append(), this.#append()];
    const invoked = performance.now();
    await reply(redis.watch(reads.map(([, key]) => key)));
    const values = [];
    for (const command of reads) values.push((await single(redis, command))?.[0]);
    await this.#record(name, appends, () => multi(redis, appends), {
      invoked,
      before: reads.flatMap((command, i) => operationsOf(command, values[i])),
    });
  }

  /**
   * @param {string} name @param {readonly Command[]} commands
   * @param {() => Promise<readonly unknown[] | null>} run  returns null if nothing was carried out
   * @param {{ invoked?: number, before?: readonly Operation[] }} [more]  what was read before, by the same transaction
   */
  async #record(name, commands, run, { invoked = performance.now(), before = [] } = {}) {
    const written = commands.flatMap((command) => operationsOf(command, undefined));
    const at = this.history.length;
    this.history.push({
      name,
      operations: written,
      invoked,
      completed: Infinity,
      outcome: 'unknown',
    });
    try {
      const replies = await run();
      const completed = performance.now();
      const outcome = replies === null ? 'failed' : 'ok';
      const operations = replies
        ? [...before, ...commands.flatMap((command, i) => operationsOf(command, replies[i]))]
        : written;
      this.history[at] = { name, operations, invoked, completed, outcome };
      this.counts[outcome]++;
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (message.startsWith('TRYAGAIN')) {
        this.history[at] = { ...this.history[at], completed: performance.now(), outcome: 'failed' };
        this.counts.failed++;
        return;
      }
      this.counts.unknown++;
      if (!isLost(message)) this.errors.push(`${name}: ${message}`);
      throw error;
    }
  }

  /** @returns {Command} */
  #command() {
    const draw = this.random();
    if (draw < 0.4) return this.#append();
    if (draw < 0.8) return read(this.#list());
    return ['getset', `${this.#generation}:register${this.#pick(REGISTERS)}`, this.#newValue()];
  }

  /** @returns {Command} */
  #append() {
    const command = /** @type {const} */ (['rpush', this.#list(), this.#newValue()]);
    this.#appended++;
    return command;
  }

  #list() {
    return `${this.#generation}:list${this.#pick(LISTS)}`;
  }

  #newValue() {
    return `v${++this.#values}`;
  }

  /** @param {number} count */
  #pick(count) {
    return Math.floor(this.random() * count);
  }
}

/** @param {string} socket */
function connect(socket) {
  const redis = new Redis({
    path: socket,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => null,
  });
  // Its commands fail as well.
  redis.on('error', () => undefined);
  return redis;
}

/** @param {string} key @returns {Command} */
function read(key) {
  return ['lrange', key, '0', '-1'];
}

/** @param {Redis} redis @param {Command} command */
async function single(redis, [name, ...args]) {
  return [await reply(redis.call(name, ...args))];
}

/** @param {Redis} redis @param {readonly Command[]} commands @returns {Promise<readonly unknown[] | null>} null if a watched key has changed */
async function multi(redis, commands) {
  const results = await reply(redis.multi(commands.map((command) => [...command])).exec());
  if (results === null) return null;
  return results.map(([error, result]) => {
    if (error) throw error;
    return result;
  });
}

/** @template T @param {Promise<T>} promise @returns {Promise<T>} */
async function reply(promise) {
  const timer = new AbortController();
  const missing = sleep(REPLY_MS_MAX, undefined, { signal: timer.signal }).then(() => {
    throw new Error('there is no reply');
  });
  missing.catch(() => undefined);
  return Promise.race([promise, missing]).finally(() => timer.abort());
}

/** The connection was lost, or the gateway has lost the shards. @param {string} message */
function isLost(message) {
  return /Connection is closed|connection close|ECONN|EPIPE|ENOENT|Stream isn't writeable|it is not known whether/.test(
    message,
  );
}

/** None for what the checker does not know. @param {Command} command @param {unknown} result @returns {Operation[]} */
function operationsOf([name, key, value], result) {
  const isKnown = result !== undefined;
  if (name === 'rpush') return [{ type: 'append', key, value }];
  if (name === 'getset') {
    const before = /** @type {string | null} */ (result);
    return [{ type: 'swap', key, value, ...(isKnown && { before }) }];
  }
  if (name !== 'lrange') return [];
  return [{ type: 'read', key, ...(isKnown && { values: /** @type {string[]} */ (result) }) }];
}
