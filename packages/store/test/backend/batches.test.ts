/** Which requests share a message, and what they wait for. */
import type { Deferred, ServiceContext } from 'tram-multicast';
import { expect, test } from 'vitest';
import { Batches } from '../../src/backend/batches.js';
import { Postman } from '../../src/backend/postman.js';
import type { Sent, Wire } from '../../src/backend/wire.js';
import { ByteWriter } from '../../src/engine/bytes.js';
import type { ShardCall } from '../../src/gateway/shards.js';
import { readCalls } from '../../src/messages/contents.js';
import { KIND, readMessage, writeInlineReply } from '../../src/messages/message.js';
import { Shard } from '../../src/shard/shard.js';

const SHARDS = 8;
const DEFERRED: Deferred = Symbol('deferred') as unknown as Deferred;

/** Keeps what is multicast, and replies with the keys of the calls. */
class EchoWire implements Wire {
  /** Of each message: for each shard, the keys of its calls. */
  readonly messages: Record<number, string[]>[] = [];

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    const keys: Record<number, string[]> = {};
    for (const group of groups) {
      keys[group] = [];
      const calls = readCalls(readMessage(payload, group).content as Uint8Array);
      for (const { args } of calls) keys[group].push(args[0]);
    }
    this.messages.push(keys);
    for (const group of groups) {
      const replies = new ByteWriter();
      for (const key of keys[group]) replies.bytes(`${key}@${group}`);
      sent.replied(group, writeInlineReply(new ByteWriter(), replies.written(), false));
    }
    sent.answered();
  }
}

/** Runs requests in one turn. Each is a list of shards and arguments. @returns the messages, and the replies to each request */
async function run(requests: readonly (readonly (readonly [number, ...string[]])[])[]) {
  const wire = new EchoWire();
  const batches = new Batches(SHARDS, new Postman(wire, wire, () => 0, SHARDS));
  const replies = requests.map(
    (request) =>
      new Promise<string[]>((resolve, reject) => {
        const calls = request.map(
          ([shard, ...args]): ShardCall => ({ shard, command: { name: 'get' }, args, resp: 2 }),
        );
        batches.run(calls, (all) => resolve(all.map(String)), reject);
      }),
  );
  return { replies: await Promise.all(replies), messages: wire.messages };
}

test('requests to the same shard share a message', async () => {
  const { messages, replies } = await run([[[1, 'a']], [[2, 'b']], [[1, 'c']]]);
  expect(messages).toEqual([{ 1: ['a', 'c'] }, { 2: ['b'] }]);
  expect(replies).toEqual([['a@1'], ['b@2'], ['c@1']]);
});

test('requests to several shards share a message, whatever shards they are', async () => {
  const { messages, replies } = await run([
    [
      [3, 'a'],
      [1, 'b'],
    ],
    [[1, 'c']],
    [
      [7, 'd'],
      [3, 'e'],
      [7, 'f'],
    ],
  ]);
  expect(messages).toEqual([{ 3: ['a', 'e'], 1: ['b'], 7: ['d', 'f'] }, { 1: ['c'] }]);
  expect(replies).toEqual([['a@3', 'b@1'], ['c@1'], ['d@7', 'e@3', 'f@7']]);
});

test('a request that follows a failure at once has a message of its own', async () => {
  const failed: string[] = [];
  const wire: Wire = {
    multicast: (_groups, _payload, sent) => sent.failed(new Error('the cluster is closed')),
  };
  const batches = new Batches(SHARDS, new Postman(wire, wire, () => 0, SHARDS));
  const get = (shard: number, next: () => void): void => {
    const call: ShardCall = { shard, command: { name: 'get' }, args: ['a'], resp: 2 };
    const note = (error: Error): void => {
      failed.push(error.message);
      next();
    };
    batches.run([call], () => undefined, note);
  };
  await new Promise<void>((resolve) => {
    get(1, () => undefined);
    // Its message follows that to the first shard.
    get(2, () => get(1, resolve));
  });
  expect(failed).toHaveLength(3);
});

test('a long request has a message of its own', async () => {
  const long = 'x'.repeat(40_000);
  const { messages } = await run([[[1, 'a']], [[1, long]], [[1, 'b']]]);
  expect(messages).toEqual([{ 1: ['a'] }, { 1: [long] }, { 1: ['b'] }]);
});

test('many short arguments make a request long', async () => {
  const members = new Array<string>(10_000).fill('m');
  const { messages } = await run([[[1, 'a']], [[1, 'set', ...members]], [[1, 'b']]]);
  expect(messages).toEqual([{ 1: ['a'] }, { 1: ['set'] }, { 1: ['b'] }]);
});

/** One shard, which replies at once. Only pieces of stored replies come when they are let through. */
class ShardWire implements Wire {
  readonly #shard = new Shard();
  /** What lets them through. */
  readonly held: (() => void)[] = [];
  #last = 0;

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    const message = {
      id: `m${++this.#last}`,
      payload: Uint8Array.from(payload),
      destinations: groups,
    };
    const context: ServiceContext = {
      group: 0,
      member: 0,
      nowMs: 0,
      defer: () => DEFERRED,
      reply: () => false,
    };
    const reply = this.#shard.deliver(message, context) as Uint8Array;
    const arrive = (): void => {
      sent.replied(0, reply);
      sent.answered();
    };
    if (payload[0] === KIND.fetch) this.held.push(arrive);
    else arrive();
  }
}

test('a request does not wait for the long reply to another one that shares its message', async () => {
  const wire = new ShardWire();
  const batches = new Batches(1, new Postman(wire, wire, () => 0, 1));
  const ask = (...commands: string[][]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const calls = commands.map(
        ([name, ...args]): ShardCall => ({ shard: 0, command: { name }, args, resp: 2 }),
      );
      batches.run(calls, (replies) => resolve(replies.map(String)), reject);
    });
  const long = 'long '.repeat(20_000);
  await ask(['set', 'long', long]);
  await ask(['set', 'short', 'value']);
  const [both, other] = [ask(['get', 'short'], ['get', 'long']), ask(['get', 'short'])];
  const shortReply = '$5\r\nvalue\r\n';
  expect(await other).toEqual([shortReply]);
  expect(wire.held.length).toBeGreaterThan(0);
  while (wire.held.length > 0) wire.held.shift()!();
  expect(await both).toEqual([shortReply, `$${long.length}\r\n${long}\r\n`]);
});
