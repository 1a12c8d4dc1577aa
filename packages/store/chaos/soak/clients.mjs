/**
 * The two client libraries behind one interface, with the settings that they have by themselves. A lost connection or an error that
 * reaches the program counts as a mistake of the store: nothing that this test does to the store excuses it.
 */
import { Redis } from 'ioredis';
import { createClient, WatchError } from 'redis';

/** A reply that takes longer is missing. */
const REPLY_MS_MAX = 60_000;

/** @typedef {readonly [name: string, ...args: string[]]} Command */
/** @typedef {'ioredis' | 'redis'} Library */

/** What the clients have gone through. */
export class Experience {
  /** @type {string[]} */
  mistakes = [];
  replies = 0;
  connectionsLost = 0;
  /** Of a reply. Commands that wait do not count. */
  longestMs = 0;

  /** @param {string} mistake */
  wrong(mistake) {
    // The first ones tell what happened.
    if (this.mistakes.length < 100) this.mistakes.push(mistake);
  }
}

/**
 * @typedef {object} Connection
 * @property {(command: Command) => Promise<unknown>} send
 * @property {(commands: readonly Command[]) => Promise<readonly unknown[] | null>} transaction  null: a watched key has changed
 * @property {(channel: string, listener: (message: string) => void) => Promise<void>} subscribe
 * @property {() => void} close
 */

export class Client {
  /**
   * @param {Connection} connection
   * @param {string} name
   * @param {Experience} experience
   */
  constructor(connection, name, experience) {
    this.connection = connection;
    this.name = name;
    this.experience = experience;
  }

  /** @param {Library} library @param {string} socket @param {string} name @param {Experience} experience */
  static async connect(library, socket, name, experience) {
    const lost = () => {
      experience.connectionsLost++;
      experience.wrong(`${name} has lost its connection`);
    };
    const connection = await (library === 'ioredis' ? ofIoredis : ofRedis)(socket, lost);
    return new Client(connection, `${name} (${library})`, experience);
  }

  /** @param {Command} command  not one that waits */
  run(command) {
    return this.#timed(command[0], this.connection.send(command));
  }

  /** @param {Command} command  gives up by itself soon */
  wait(command) {
    return this.#answered(command[0], this.connection.send(command));
  }

  /** @param {readonly Command[]} commands */
  transaction(commands) {
    return this.#timed('a transaction', this.connection.transaction(commands));
  }

  close() {
    this.connection.close();
  }

  /** @template T @param {string} what @param {Promise<T>} reply */
  async #timed(what, reply) {
    const began = performance.now();
    const value = await this.#answered(what, reply);
    const { experience } = this;
    experience.longestMs = Math.max(experience.longestMs, performance.now() - began);
    return value;
  }

  /** @template T @param {string} what @param {Promise<T>} reply @returns {Promise<T>} */
  async #answered(what, reply) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const missing = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('there is no reply')), REPLY_MS_MAX);
    });
    try {
      const value = await Promise.race([reply, missing]);
      this.experience.replies++;
      return /** @type {T} */ (value);
    } catch (error) {
      throw new Error(`${what}: ${/** @type {Error} */ (error).message}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** @param {string} path @param {() => void} lost @returns {Promise<Connection>} */
async function ofIoredis(path, lost) {
  const redis = new Redis({ path, lazyConnect: true });
  redis.on('reconnecting', lost);
  redis.on('error', () => undefined);
  await redis.connect();
  return {
    send: ([name, ...args]) => redis.call(name, ...args),
    transaction: async (commands) => {
      const results = await redis.multi(commands.map((command) => [...command])).exec();
      return results?.map(([error, result]) => error ?? result) ?? null;
    },
    subscribe: async (channel, listener) => {
      redis.on('message', (from, message) => {
        if (from === channel) listener(message);
      });
      await redis.subscribe(channel);
    },
    close: () => redis.disconnect(),
  };
}

/** @param {string} path @param {() => void} lost @returns {Promise<Connection>} */
async function ofRedis(path, lost) {
  const redis = createClient({ socket: { path } });
  redis.on('reconnecting', lost);
  redis.on('error', () => undefined);
  await redis.connect();
  return {
    send: (command) => redis.sendCommand([...command]),
    transaction: async (commands) => {
      const multi = redis.multi();
      for (const command of commands) multi.addCommand([...command]);
      return multi.exec().catch((error) => {
        if (error instanceof WatchError) return null;
        throw error;
      });
    },
    subscribe: async (channel, listener) => {
      await redis.subscribe(channel, listener);
    },
    close: () => redis.destroy(),
  };
}
