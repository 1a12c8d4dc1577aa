/** Where the keys of subcommands are, and those that only patterns name. */

import { describe, expect, test } from 'vitest';
import { COMMANDS_BY_NAME } from '../../src/commands/table.js';
import { Router } from '../../src/gateway/router.js';
import type { ShardCall } from '../../src/gateway/shards.js';

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
  ])('refuses SORT %j, whose patterns may be of other shards', (args) => {
    expect(() => shardsOf('sort', args)).toThrow('may be in other shards');
    expect(shardsOf('sort', args, 1)).toEqual([0]);
  });
});
