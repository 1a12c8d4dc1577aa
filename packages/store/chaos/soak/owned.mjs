/**
 * A client with keys of its own, on all shards. It draws commands and runs them at the store and at an engine in this process: the
 * replies have to be the same.
 */
import { CommandRunner } from '../../dist/commands/runner.js';
import { Channels } from '../../dist/engine/channels.js';
import { Keyspace } from '../../dist/engine/keyspace.js';
import { readReply } from '../../dist/resp/reader.js';
import { ReplyWriter } from '../../dist/resp/writer.js';

/** @typedef {import('./clients.mjs').Client} Client */
/** @typedef {import('./clients.mjs').Command} Command */
/** @typedef {import('../random.mjs').Random} Random */

const KEYS = 6;
const MEMBERS = Array.from({ length: 30 }, (_, i) => `member${i}`);
/** Their elements come in any order. */
const UNORDERED = new Set(['hvals', 'smembers', 'sinter', 'sunion', 'sdiff']);
/** Their replies have scores. A library that makes numbers of them shows large ones in other digits than the store. */
const SCORED = new Set(['zrange', 'zincrby', 'zpopmin']);

/** What reads everything of a key. @type {Record<string, (key: string) => Command>} */
const READS = {
  string: (key) => ['get', key],
  counter: (key) => ['get', key],
  hash: (key) => ['hgetall', key],
  list: (key) => ['lrange', key, '0', '-1'],
  set: (key) => ['smembers', key],
  zset: (key) => ['zrange', key, '0', '-1', 'WITHSCORES'],
};

/** @typedef {{ command: Command, expected: string }} Drawn  a command and the reply of the engine */

/** Moves the elements of one list to another, and counts what it has moved: keys of up to three shards. */
const MOVE_ALL = `
  local moved = 0
  while true do
    local value = redis.call('LPOP', KEYS[1])
    if not value then break end
    redis.call('RPUSH', KEYS[2], value)
    moved = moved + 1
  end
  redis.call('INCRBY', KEYS[3], moved)
  return {moved, redis.call('LLEN', KEYS[2])}`;

export class Owned {
  #seed = 0;
  #keyspace = new Keyspace({ changed: () => undefined });
  #engine = new CommandRunner(this.#keyspace, new Channels(), () => 0);
  #writer = new ReplyWriter();

  /** @param {Client} client @param {Random} random @param {string} prefix */
  constructor(client, random, prefix) {
    this.client = client;
    this.random = random;
    this.prefix = prefix;
  }

  async step() {
    const { client, random } = this;
    const draw = random.next();
    if (draw < 0.5) await this.#compare(this.#drawSeveral(1), sendAll(client));
    else if (draw < 0.75)
      await this.#compare(this.#drawSeveral(random.integer(2, 20)), sendAll(client));
    else {
      const drawn = this.#drawSeveral(random.integer(2, 6));
      await this.#compare(drawn, (commands) => client.transaction(commands));
    }
  }

  /** Compares everything that the keys hold. */
  async end() {
    const reads = [...this.#keyspace.entries.keys()].map((key) =>
      this.#run(READS[key.split(':')[1].replace(/\d+$/, '')](key)),
    );
    await this.#compare(reads, sendAll(this.client));
    this.client.close();
  }

  /** @param {number} count */
  #drawSeveral(count) {
    return Array.from({ length: count }, () => this.#run(this.#draw()));
  }

  /** At the engine. @param {Command} command @returns {Drawn} */
  #run(command) {
    const [name, ...args] = command;
    this.#writer.clear();
    this.#writer.write(this.#engine.start(name, args, ++this.#seed, false), 2);
    return { command, expected: shown(command, readReply(this.#writer.written())) };
  }

  /**
   * @param {readonly Drawn[]} drawn
   * @param {(commands: readonly Command[]) => Promise<readonly unknown[] | null>} run
   */
  async #compare(drawn, run) {
    const replies = (await run(drawn.map(({ command }) => command))) ?? [];
    for (const [i, { command, expected }] of drawn.entries()) {
      const found = shown(command, replies[i]);
      if (found === expected) continue;
      const texts = [JSON.stringify(command), expected, found].map((text) => text.slice(0, 300));
      const { name, experience } = this.client;
      experience.wrong(`${name}: ${texts[0]} replies ${texts[2]} instead of ${texts[1]}`);
    }
  }

  /** @returns {Command} */
  #draw() {
    const { random } = this;
    const type = random.pick(['string', 'hash', 'list', 'set', 'zset', 'counter']);
    const [a, b, c] = random.some(this.#keysOf(type), 3);
    const member = random.pick(MEMBERS);
    const value = `value ${random.integer(0, 1e9)}`;
    const number = String(random.integer(-100, 100));
    return random.pick(
      /** @type {Record<string, Command[]>} */ ({
        string: [
          ['set', a, value],
          ['set', a, value, 'EX', '100000'],
          ['get', a],
          ['getset', a, value],
          ['setrange', a, '3', value],
          ['getrange', a, '2', '9'],
          ['strlen', a],
          ['mset', a, value, b, value, c, value],
          ['mget', a, b, c],
          ['msetnx', a, value, b, value],
          this.#keyspace.entries.has(a) ? ['rename', a, b] : ['get', a],
          ['copy', a, b, 'REPLACE'],
          ['del', a, b],
          ['exists', a, b, c],
          ['persist', a],
        ],
        hash: [
          ['hset', a, member, value],
          ['hset', a, member, value, 'other', number],
          ['hget', a, member],
          ['hgetall', a],
          ['hincrby', a, 'sum', number],
          ['hdel', a, member],
          ['hlen', a],
          ['hvals', a],
          ['copy', a, b],
        ],
        list: [
          ['rpush', a, value, number],
          ['lpush', a, value],
          ['lpop', a],
          ['rpop', a, '2'],
          ['lrange', a, '0', '-1'],
          ['ltrim', a, '0', '30'],
          ['lmove', a, b, 'LEFT', 'RIGHT'],
          ['lmpop', '3', a, b, c, 'LEFT', 'COUNT', '2'],
          ['llen', a],
          ['eval', MOVE_ALL, '3', a, b, this.#keysOf('counter')[0]],
        ],
        set: [
          ['sadd', a, member, random.pick(MEMBERS)],
          ['srem', a, member],
          ['smembers', a],
          ['sismember', a, member],
          ['smove', a, b, member],
          ['sinter', a, b],
          ['sunion', a, b, c],
          ['sinterstore', a, b, c],
          ['sdiffstore', a, b, c],
          ['scard', a],
        ],
        zset: [
          ['zadd', a, number, member, '1.5', random.pick(MEMBERS)],
          ['zincrby', a, number, member],
          ['zrange', a, '0', '-1', 'WITHSCORES'],
          ['zrangebyscore', a, '-20', '20'],
          ['zrem', a, member],
          ['zpopmin', a],
          ['zunionstore', a, '2', b, c],
          ['zinterstore', a, '2', b, c],
          ['zcard', a],
        ],
        counter: [
          ['incr', a],
          ['incrby', a, number],
          ['decrby', a, number],
          ['get', a],
          ['mget', a, b, c],
        ],
      })[type],
    );
  }

  /** @param {string} type */
  #keysOf(type) {
    return Array.from({ length: KEYS }, (_, i) => `${this.prefix}:${type}${i}`);
  }
}

/** As a pipeline. @param {Client} client @returns {(commands: readonly Command[]) => Promise<readonly unknown[]>} */
function sendAll(client) {
  return (commands) => Promise.all(commands.map((command) => client.run(command)));
}

/** A reply as text: that of the engine, or what a library makes of it. @param {Command} command @param {unknown} reply */
function shown([name], reply) {
  const texts = flat(reply);
  const elements = SCORED.has(name) ? texts.map(ofScore) : texts;
  if (name === 'hgetall') {
    const pairs = elements.flatMap((field, i) => (i % 2 === 0 ? [[field, elements[i + 1]]] : []));
    return JSON.stringify(pairs.sort());
  }
  return JSON.stringify(UNORDERED.has(name) ? elements.sort() : elements);
}

/** A score in the digits of JavaScript; a member as it is. @param {string} text */
function ofScore(text) {
  const score = Number(text);
  return Number.isNaN(score) ? text : String(score);
}

/** @param {unknown} reply @returns {string[]} */
function flat(reply) {
  if (reply === null || reply === undefined) return ['(nil)'];
  if (typeof reply !== 'object') return [String(reply)];
  if (reply instanceof Error) return [`(error) ${reply.message}`];
  if (Array.isArray(reply)) return reply.flatMap(flat);
  if (reply instanceof Map || reply instanceof Set) return [...reply].flatMap(flat);
  // A simple string, or a null array, of the engine.
  if (reply.constructor.name === 'Simple') return [/** @type {{ text: string }} */ (reply).text];
  if (reply.constructor.name === 'NullArray') return ['(nil)'];
  return Object.entries(reply).flatMap(flat);
}
