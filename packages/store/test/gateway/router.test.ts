import { describe, expect, it } from 'vitest';
import { findCommand, lookUp } from '../../src/commands/lookup.js';
import { COMMANDS } from '../../src/commands/table.js';
import { carrierOf } from '../../src/gateway/carriers.js';
import { Router } from '../../src/gateway/router.js';
import type { ShardCall } from '../../src/gateway/shards.js';
import { FORWARD } from '../../src/gateway/steps.js';

const router = new Router(8);
/** Keys of two different shards. */
const [a, b] = ['a', 'b'];

function route(request: string) {
  const [name, ...words] = request.split(' ');
  const { command, args } = lookUp(name, words);
  const calls: ShardCall[] = [];
  const step = router.route(command, args, 2, calls);
  return { step, shards: calls.map(({ shard }) => shard), args: calls.map((call) => call.args) };
}

describe('the router', () => {
  it('a and b are in different shards', () => {
    expect(router.shardOf(a)).not.toBe(router.shardOf(b));
  });

  it('sends a command with one key, or keys of one shard, to that shard', () => {
    expect(route('get a')).toEqual({ step: FORWARD, shards: [router.shardOf(a)], args: [['a']] });
    expect(route('mset {a}1 x {a}2 y')).toMatchObject({
      step: FORWARD,
      shards: [router.shardOf(a)],
    });
    expect(route('lmove {a}1 {a}2 left left').step).toBe(FORWARD);
  });

  it('finds the key of a subcommand', () => {
    for (const request of ['object encoding b', 'xgroup create b g $', 'memory usage b']) {
      expect(route(request).shards).toEqual([router.shardOf(b)]);
    }
  });

  it('divides commands that can be spread', () => {
    const { step, shards, args } = route('mset a 1 b 2');
    expect(step).not.toBe(FORWARD);
    expect(shards).toEqual([router.shardOf(a), router.shardOf(b)]);
    expect(args).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
  });

  it('leaves others to a transaction', () => {
    expect(route('lmove a b left left')).toEqual({ step: undefined, shards: [], args: [] });
  });

  it('sends messages to the shard of the channel', () => {
    expect(route('publish b x').shards).toEqual([router.shardOf(b)]);
  });

  it('asks all shards about all channels', () => {
    expect(route('pubsub channels').shards).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('the table', () => {
  it('says of each command who carries it out', () => {
    for (const command of COMMANDS) expect(carrierOf(command).command).toBe(command);
  });

  it('has each command once', () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('finds names in any case', () => {
    for (const name of ['get', 'GET', 'Get']) expect(findCommand(name)?.name).toBe('get');
    expect(lookUp('Config', ['gEt', 'x'])).toMatchObject({
      command: { name: 'config|get' },
      args: ['x'],
    });
  });

  it('does not find a subcommand by its whole name', () => {
    expect(findCommand('config|get')).toBeUndefined();
    expect(() => lookUp('CONFIG|GET', ['x'])).toThrow(/^ERR unknown command 'CONFIG\|GET'/);
  });

  it('quotes at most 128 bytes of an unknown command', () => {
    expect(() => lookUp('x'.repeat(200), ['y'.repeat(200), 'z'])).toThrow(
      `ERR unknown command '${'x'.repeat(128)}', with args beginning with: '${'y'.repeat(128)}' `,
    );
  });
});
