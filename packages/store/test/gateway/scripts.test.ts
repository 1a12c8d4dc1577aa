/** EVALSHA finds at each shard what EVAL has run at one. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { sha1 } from '../../src/commands/scripting/scripts.js';
import { QUEUED, type Reply } from '../../src/resp/reply.js';
import { PlainClient, type Started, startGateway } from './started.js';

const SCRIPT = 'return 12345';
/** Of all shards. */
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

let started: Started;
let beside: Started;
let client: PlainClient;
let other: PlainClient;

beforeAll(async () => {
  started = await startGateway();
  beside = await startGateway({}, { port: 0 }, 4, started);
  client = await PlainClient.connect(started.port);
  other = await PlainClient.connect(beside.port);
});

beforeEach(async () => {
  await client.ask('script flush');
});

afterAll(async () => {
  client.close();
  other.close();
  await beside.close();
  await started.close();
});

function ask(from: PlainClient, ...words: string[]): Promise<Reply> {
  from.send(words);
  return from.read();
}

function evaluate(from: PlainClient, script: string, ...keys: string[]): Promise<Reply> {
  return ask(from, 'eval', script, String(keys.length), ...keys);
}

async function evaluateMany(from: PlainClient, first: number, count: number): Promise<void> {
  for (let i = first; i < first + count; i++) await evaluate(from, `return ${i}`, 'a');
}

/** How the shards reply to EVALSHA. */
async function repliesEverywhere(): Promise<Set<Reply>> {
  const replies = new Set<Reply>();
  for (const key of KEYS) replies.add(await ask(client, 'evalsha', sha1(SCRIPT), '1', key));
  return replies;
}

test('a script that is evaluated again and again is known to all shards', async () => {
  await evaluate(client, SCRIPT, 'a');
  await evaluateMany(client, 1_000_000, 400);
  await evaluate(client, SCRIPT, 'a');
  await evaluateMany(client, 2_000_000, 100);
  await evaluate(client, SCRIPT, 'a');
  expect(await repliesEverywhere()).toEqual(new Set([12345]));
  expect(await ask(client, 'script', 'exists', sha1(SCRIPT))).toEqual([1]);
});

test.for([
  ['one shard', ['a']],
  ['several shards', KEYS],
  ['unknown shards', []],
] as const)('what other gateways do to scripts is noticed by EVAL of %s', async ([, keys]) => {
  await evaluate(client, SCRIPT, ...keys);
  await evaluateMany(other, 3_000_000, 600);
  await evaluate(client, SCRIPT, ...keys);
  expect(await repliesEverywhere()).toEqual(new Set([12345]));
  await ask(other, 'script', 'flush');
  await evaluate(client, SCRIPT, ...keys);
  expect(await repliesEverywhere()).toEqual(new Set([12345]));
});

test('a script that is evaluated in MULTI is known to all shards, and keeps its place in a pipeline', async () => {
  const pipeline = [
    ['set', 'a', '1'],
    ['multi'],
    ['incr', 'a'],
    ['eval', SCRIPT, '1', 'a'],
    ['exec'],
  ];
  for (const words of [...pipeline, ['get', 'a']]) client.send(words);
  const replies: Reply[] = [];
  for (let i = 0; i <= pipeline.length; i++) replies.push(await client.read());
  expect(replies.slice(2)).toEqual([QUEUED, QUEUED, [2, 12345], '2']);
  expect(await repliesEverywhere()).toEqual(new Set([12345]));
});

test('a script that replies as shards reply to gateways is run once', async () => {
  for (const last of ['return', 'error']) {
    const script = `redis.call('incr', KEYS[1]) ${last}({err = 'BEYOND it'})`;
    expect(String(await evaluate(client, script, last))).toMatch(/ERR it/);
    expect(await ask(client, 'get', last)).toBe('1');
  }
});
