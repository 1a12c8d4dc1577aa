/** What scripts may do here, beside what they do as in Redis: `differential/scripts.test.ts` compares that. */

import { describe, expect, test } from 'vitest';
import { execArgs } from '../../src/commands/internal.js';
import { CommandRunner } from '../../src/commands/runner.js';
import { Made } from '../../src/commands/scripting/made.js';
import { Scripts, sha1 } from '../../src/commands/scripting/scripts.js';
import { Channels } from '../../src/engine/channels.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import { ErrorReply, type Reply } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

/** A shard that has the keys that begin with `a`. */
function newRunner() {
  const keyspace = new Keyspace({ changed: () => undefined });
  const reach = { isAll: false, discovers: false, has: (key: string) => key.startsWith('a') };
  const scripts = new Scripts();
  return { runner: new CommandRunner(keyspace, new Channels(), () => 0, scripts, reach), scripts };
}

function newShard() {
  const { runner } = newRunner();
  return (script: string, keys: readonly string[] = [], seed = 1): Reply =>
    runner.start('eval', [script, String(keys.length), ...keys], seed, false);
}

function message(reply: Reply): string {
  return reply instanceof ErrorReply ? reply.message : '';
}

describe('a script', () => {
  test('uses keys of its shard and those that it declares', () => {
    const run = newShard();
    expect(run("redis.call('set', 'a1', 5) return redis.call('get', 'a1')")).toBe('5');
    expect(run("redis.call('set', KEYS[1], 6) return redis.call('get', 'b')", ['b'])).toBe('6');
  });

  test('that needs keys of another shard is stopped before it has written, even if it catches errors', () => {
    const run = newShard();
    const script = "local ok = pcall(redis.call, 'get', 'b') redis.call('set', 'a1', 1) return 1";
    expect(message(run(script))).toMatch(/^BEYOND .* key 'b' of another shard: declare it in KEYS/);
    expect(run("return redis.call('exists', 'a1')")).toBe(0);
  });

  test('that has written gets an error for keys of another shard', () => {
    const run = newShard();
    const reply = run("redis.call('set', 'a1', 1) return redis.call('get', 'b')");
    expect(message(reply)).toMatch(/^ERR .* key 'b' of another shard/);
  });

  test('that SORTs by keys of unknown shards gets an error that names the pattern', () => {
    const run = newShard();
    run("redis.call('rpush', 'a1', 1)");
    const script = "return redis.call('sort', 'a1', 'by', 'w_*')";
    expect(message(run(script))).toMatch(/access keys like 'w_\*', which may be/);
  });

  test('in a transaction gets an error if it needs keys of another shard', () => {
    const { runner } = newRunner();
    const script = { name: 'eval', args: ["return redis.call('get', 'b')", '0'], resp: 2 } as const;
    const replies = runner.start('.exec', execArgs([], [script]), 1, false) as string[];
    expect(replies).toEqual([expect.stringMatching(/^-ERR .* declare it in KEYS/)]);
  });

  test('does not run commands on the whole database of several shards', () => {
    expect(message(newShard()("return redis.call('dbsize')"))).toMatch(/the whole database/);
  });

  test('is stopped if it takes too long, even if it catches errors', () => {
    const run = newShard();
    for (const script of [
      'while true do end',
      'repeat until false',
      'for i = 1, 1e12 do end',
      'local function f() f() return 1 end while true do pcall(f) end',
      'while true do pcall(error) end',
      'local t = {} while true do t[#t + 1] = {} end',
      "return ('a'):rep(30000):find(('a*'):rep(50) .. 'b')",
      "local s = 'x' while true do s = s .. s:rep(1000) end",
    ]) {
      expect(message(run(script)), script).toMatch(/took too long|too complex|too large|overflow/);
    }
  });

  test('picks the same at random wherever it runs', () => {
    const script = 'return {math.random(1000), math.random(1000), math.random(1000)}';
    expect(newShard()(script, [], 7)).toEqual(newShard()(script, [], 7));
    expect(newShard()(script, [], 7)).not.toEqual(newShard()(script, [], 8));
  });

  test('leaves nothing behind for the next one', () => {
    const run = newShard();
    run('cjson.encode_number_precision(3) math.randomseed(1)');
    expect(run('return cjson.encode(0.12345678)')).toBe('0.12345678');
    expect(message(run('return KEYS2'))).toMatch(/nonexistent global variable 'KEYS2'/);
    run('string.format = nil');
    run('getmetatable(_G).__index = nil');
    expect(message(run('return anything'))).toMatch(/nonexistent global variable/);
    expect(run("return string.format('%d', 5)")).toBe('5');
  });

  test('has no way out', () => {
    const run = newShard();
    for (const name of ['os', 'io', 'require', 'dofile', 'debug', 'print', 'getfenv', 'package']) {
      expect(message(run(`return ${name}`)), name).toMatch(/nonexistent global variable/);
    }
    expect(run("return type(({}).constructor) .. type((''):rep(1).__proto__)")).toBe('nilnil');
  });

  test('can be written in any way', () => {
    const run = newShard();
    expect(
      run(
        'local class, new, await, t, va, R, L, S = 1, 2, 3, 4, 5, 6, 7, 8 return class + new + await + t + va + R + L + S',
      ),
    ).toBe(36);
    expect(run('local undefined, NaN = 1, 2 return undefined + NaN')).toBe(3);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it must not become one
    expect(run('return \'${1 + 1}`\\u2028\' .. "\\\\"')).toBe('${1 + 1}`u2028\\');
    expect(message(run(`return ${'('.repeat(300)}1${')'.repeat(300)}`))).toMatch(/syntax levels/);
    expect(run(`return ${'1 + '.repeat(400)}1`)).toBe(401);
    expect(message(run(`return ${'1 + '.repeat(600)}1`))).toMatch(/too many operators/);
  });
});

describe('scripts that EVAL has brought', () => {
  test('are forgotten when there are many newer ones, but those of SCRIPT LOAD are kept', () => {
    const scripts = new Scripts();
    const keyspace = new Keyspace({ changed: () => undefined });
    const runner = new CommandRunner(keyspace, new Channels(), () => 0, scripts);
    const run = (name: string, ...args: string[]): Reply => runner.start(name, args, 1, false);
    const kept = run('script|load', 'return 0') as string;
    run('eval', 'return 1', '0');
    run('eval', 'return 2', '0');
    run('script|load', 'return 2');
    const all = ['return 1', 'return 2'].map((body) => sha1(body));
    expect(run('script|exists', ...all, kept)).toEqual([1, 1, 1]);
    for (let i = 3; i < 1000; i++) run('eval', `return ${i}`, '0');
    expect(run('script|exists', ...all, kept, sha1('return 999'))).toEqual([0, 1, 1, 1]);
    expect(scripts.bodies.size).toBe(502);
    expect(run('evalsha', kept, '0')).toBe(0);
    run('script|flush');
    expect(scripts.bodies.size).toBe(0);
  });
});

describe('announced scripts', () => {
  const shas = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => sha1(`return ${from + i}`));
  const evaluate = (scripts: Scripts, from: number, count: number) => {
    for (let i = from; i < from + count; i++) scripts.addEvaluated(`return ${i}`);
  };
  const announce = (scripts: Scripts, from: number, count: number) => {
    for (let i = from; i < from + count; i++) scripts.announce(`return ${i}`);
  };

  test('are announced again before a shard forgets them', () => {
    const scripts = new Scripts();
    announce(scripts, 0, 1);
    // A shard may evaluate all that were announced, before and after.
    announce(scripts, 1000, 124);
    const [sha] = shas(0, 1);
    expect(scripts.isAnnounced(sha)).toBe(true);
    announce(scripts, 2000, 1);
    expect(scripts.isAnnounced(sha)).toBe(false);
    expect(scripts.bodies.has(sha)).toBe(true);
    announce(scripts, 0, 1);
    expect(scripts.isAnnounced(sha)).toBe(true);
  });

  test('are only those of which all shards know', () => {
    const scripts = new Scripts();
    evaluate(scripts, 0, 1);
    expect(scripts.isAnnounced(shas(0, 1)[0])).toBe(false);
    expect(scripts.isAnnounced(scripts.add('return 0'))).toBe(true);
    expect(scripts.isAnnounced(scripts.announce('return 1'))).toBe(true);
    scripts.clear();
    expect(shas(0, 2).map((sha) => scripts.isAnnounced(sha))).toEqual([false, false]);
  });

  test('stay in their order in a snapshot', () => {
    const scripts = new Scripts();
    announce(scripts, 0, 500);
    evaluate(scripts, 0, 1);
    const restored = new Scripts(structuredClone(scripts.state));
    for (const each of [scripts, restored]) {
      announce(each, 500, 1);
      expect(shas(0, 2).map((sha) => each.bodies.has(sha))).toEqual([true, false]);
    }
    expect(restored.state).toEqual(scripts.state);
  });
});

describe('libraries of functions', () => {
  function library(name: string, load: string): string {
    return `#!lua name=${name}\n${load}\nredis.register_function('${name}', function() return '${name}' end)`;
  }
  /** The code takes about half of the steps that one may take. */
  const LONG = 'for i = 1, 1e7 do end';

  test('are loaded when they come, and before their own functions are called', () => {
    const { runner } = new Engine();
    const run = (...[name, ...args]: string[]) => runner.start(name, args, 1, false);
    const names = ['l1', 'l2', 'l3', 'l4', 'l5', 'l6', 'l7', 'l8'];
    for (const name of names) expect(run('function|load', library(name, LONG))).toBe(name);
    const beganMs = performance.now();
    expect(run('fcall', 'l1', '0')).toBe('l1');
    const oneMs = performance.now() - beganMs;
    expect(run('fcall', 'l8', '0')).toBe('l8');
    run('function|restore', run('function|dump') as string, 'flush');
    run('function|list');
    run('function|stats');
    expect(performance.now() - beganMs).toBeLessThan(5 * oneMs);
  });

  test('are found without regard to case', () => {
    const { runner } = new Engine();
    runner.start('function|load', [library('Lib', '')], 1, false);
    const found = runner.start('function|list', ['LIBRARYNAME', 'l?B'], 1, false);
    expect(found).toHaveLength(1);
  });
});

test('what was made of texts is forgotten when they are too long together', () => {
  const made: string[] = [];
  const lengths = new Made(100_000, (text) => {
    made.push(text[0]);
    return text.length;
  });
  const [a, b, c] = ['a', 'b', 'c'].map((letter) => letter.repeat(40_000));
  expect([a, b, a, b, c, c, a].map((text) => lengths.of(text))).toEqual(Array(7).fill(40_000));
  expect(made.join('')).toBe('abca');
});
