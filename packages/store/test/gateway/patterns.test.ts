/** Where the keys of subcommands are, and those that only patterns name. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS_BY_NAME } from '../../src/commands/table.js';
import { Router } from '../../src/gateway/router.js';
import type { ShardCall } from '../../src/gateway/shards.js';
import { ErrorReply, OK } from '../../src/resp/reply.js';
import { PlainClient, type Started, startGateway } from './started.js';

/** @returns the shards that carry out the command; undefined if it has to be coordinated */
function shardsOf(name: string, args: readonly string[], shards = 8): number[] | undefined {
  const calls: ShardCall[] = [];
  const step = new Router(shards).route(COMMANDS_BY_NAME.get(name)!, args, 2, calls);
  return step && calls.map(({ shard }) => shard);
}

const { shardOf } = new Router(8);

describe('the router', () => {
  test('finds the key of a subcommand', () => {
    expect(shardsOf('object|encoding', ['some key'])).toEqual([shardOf('some key')]);
    expect(shardsOf('memory|usage', ['k', 'SAMPLES', '5'])).toEqual([shardOf('k')]);
  });

  test.each([
    [['{t}list', 'BY', '{t}weight:*', 'GET', '#', 'GET', '{t}name:*->field']],
    [['list', 'BY', 'nosort']],
    [['list', 'LIMIT', '0', '1', 'DESC']],
  ])('lets one shard carry out SORT %j', (args) => {
    expect(shardsOf('sort', args)).toEqual([shardOf(args[0])]);
  });

  test.each([
    [['list', 'BY', 'weight:*']],
    [['{t}list', 'BY', '{u}weight:*']],
    [['{t}list', 'GET', 'x*{t}']],
    [['{t}list', 'GET', '{*}']],
  ])('has SORT %j coordinated, whose patterns may be of other shards', (args) => {
    expect(shardsOf('sort', args)).toBeUndefined();
    expect(shardsOf('sort_ro', args)).toBeUndefined();
    expect(shardsOf('sort', args, 1)).toEqual([0]);
  });
});

describe('SORT by keys of several shards', () => {
  let started: Started;
  let client: PlainClient;

  beforeAll(async () => {
    started = await startGateway();
    client = await PlainClient.connect(started.port);
    await client.ask('rpush list a b c d e');
    await client.ask('mset weight:a 3 weight:b 1 weight:c 5 weight:d 2 weight:e 4');
    await client.ask('mset name:a A name:b B name:c C name:d D');
    for (const [i, element] of [...'abcde'].entries()) {
      await client.ask(`hset hash:${element} weight ${9 - i}`);
    }
  });

  afterAll(() => started.close());

  test('finds the keys that the patterns name', async () => {
    expect(await client.ask('sort list by weight:*')).toEqual(['b', 'd', 'a', 'e', 'c']);
    expect(await client.ask('sort_ro list by hash:*->weight')).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(await client.ask('sort list by weight:* limit 1 3 get # get name:* desc')).toEqual([
      ...['e', null],
      ...['a', 'A'],
      ...['d', 'D'],
    ]);
  });

  test('stores what it has found', async () => {
    expect(await client.ask('sort list by weight:* get name:* store stored')).toBe(5);
    expect(await client.ask('lrange stored 0 -1')).toEqual(['B', 'D', 'A', '', 'C']);
  });

  test('sees what the transaction has written', async () => {
    await client.ask('multi');
    await client.ask('set weight:c 0');
    await client.ask('sort list by weight:* limit 0 1 get name:*');
    await client.ask('set weight:c 5');
    expect(await client.ask('exec')).toEqual([OK, ['C'], OK]);
  });

  test('works in scripts that have not written yet', async () => {
    const sort = (script: string) => {
      client.send(['eval', script, '1', 'list']);
      return client.read();
    };
    const call = "redis.call('sort', KEYS[1], 'by', 'weight:*')";
    expect(await sort(`return ${call}`)).toEqual(['b', 'd', 'a', 'e', 'c']);
    const written = await sort(`redis.call('rpush', KEYS[1], 'f') return ${call}`);
    expect(written).toBeInstanceOf(ErrorReply);
    await client.ask('rpop list');
  });

  test('works in scripts wherever the pattern itself would be', async () => {
    const script = "return redis.call('sort', KEYS[1], 'by', 'weight:*')";
    for (let i = 0; i < 8; i++) {
      await client.ask(`rpush list:${i} a b c d`);
      // Each one is another script: the gateway knows no more of it.
      client.send(['eval', `${script} -- ${i}`, '1', `list:${i}`]);
      expect(await client.read()).toEqual(['b', 'd', 'a', 'c']);
    }
  });
});
