/** What a gateway counts of commands, and how INFO, SLOWLOG and LATENCY show it. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ErrorReply, MapReply, OK, Simple } from '../../src/resp/reply.js';
import { PlainClient, type Started, startGateway } from './started.js';

let started: Started;
let client: PlainClient;
/** INFO is not allowed in transactions. */
let onlooker: PlainClient;

beforeEach(async () => {
  started = await startGateway();
  client = await PlainClient.connect(started.port);
  onlooker = await PlainClient.connect(started.port);
});

afterEach(() => started.close());

/** The fields of a section. */
async function info(section: string): Promise<Record<string, string>> {
  const text = (await onlooker.ask(`info ${section}`)) as string;
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

/** Of a command, without times. */
async function countsOf(command: string): Promise<string | undefined> {
  const line = (await info('commandstats'))[`cmdstat_${command}`];
  return line?.replace(/usec=\d+,usec_per_call=\d+\.\d\d,/, '');
}

async function askAll(...requests: string[]): Promise<void> {
  for (const request of requests) await client.ask(request);
}

describe('INFO commandstats', () => {
  it('counts calls, and tells errors of commands from those of requests', async () => {
    await askAll('set a 1', 'get a', 'get a', 'lpush a x', 'get', 'get a b', 'nonsense');
    expect(await countsOf('set')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    expect(await countsOf('get')).toBe('calls=2,rejected_calls=2,failed_calls=0');
    expect(await countsOf('lpush')).toBe('calls=1,rejected_calls=0,failed_calls=1');
    expect(await countsOf('info')).toBe('calls=3,rejected_calls=0,failed_calls=0');
    expect(await countsOf('nonsense')).toBeUndefined();
    expect(await info('errorstats')).toEqual({
      errorstat_ERR: 'count=3',
      errorstat_WRONGTYPE: 'count=1',
    });
    expect(await info('stats')).toMatchObject({ total_error_replies: '4' });
  });

  it('counts commands of transactions when they are carried out', async () => {
    await askAll('set a 1', 'multi', 'incr a', 'lpush a x');
    expect(await countsOf('incr')).toBeUndefined();
    await client.ask('exec');
    expect(await countsOf('incr')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    expect(await countsOf('lpush')).toBe('calls=1,rejected_calls=0,failed_calls=1');
    expect(await countsOf('exec')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    // This one is coordinated.
    await askAll('multi', 'rename a b', 'ping', 'rename nothing c', 'exec');
    expect(await countsOf('rename')).toBe('calls=2,rejected_calls=0,failed_calls=1');
    expect(await countsOf('ping')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    await askAll('multi', 'incr a', 'discard');
    expect(await countsOf('incr')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    await askAll('multi', 'get', 'exec');
    expect(await countsOf('exec')).toBe('calls=3,rejected_calls=0,failed_calls=1');
  });

  it('counts requests of a pipeline one by one, whatever carries them out', async () => {
    client.sendRaw(
      'SET a 1\r\nMSET a 1 b 2\r\nPING\r\nGET a\r\nRENAME a c\r\nSUBSCRIBE x\r\nUNSUBSCRIBE\r\nGET a\r\n',
    );
    for (let i = 0; i < 8; i++) await client.read();
    for (const command of ['set', 'mset', 'ping', 'rename', 'subscribe', 'unsubscribe']) {
      expect(await countsOf(command)).toBe('calls=1,rejected_calls=0,failed_calls=0');
    }
    expect(await countsOf('get')).toBe('calls=2,rejected_calls=0,failed_calls=0');
  });

  it('counts commands that are not allowed', async () => {
    await askAll(
      'config set requirepass secret',
      'reset',
      'get a',
      'config get save',
      'auth secret',
    );
    await onlooker.ask('auth secret');
    expect(await countsOf('get')).toBe('calls=0,rejected_calls=1,failed_calls=0');
    expect(await countsOf('config|get')).toBe('calls=0,rejected_calls=1,failed_calls=0');
  });

  it('counts what is not replied to', async () => {
    client.sendRaw('CLIENT REPLY SKIP\r\nGET a\r\nPING\r\n');
    expect(await client.read()).toEqual(new Simple('PONG'));
    expect(await countsOf('client|reply')).toBe('calls=1,rejected_calls=0,failed_calls=0');
    expect(await countsOf('get')).toBe('calls=1,rejected_calls=0,failed_calls=0');
  });

  it('is empty again after CONFIG RESETSTAT', async () => {
    await askAll('get a', 'get', 'config resetstat');
    expect(await info('commandstats')).toEqual({
      'cmdstat_config|resetstat': expect.stringMatching(/^calls=1,/),
    });
    expect(await info('errorstats')).toEqual({});
  });
});

describe('latencies', () => {
  it('are those of commands that do not wait for anything', async () => {
    const other = await PlainClient.connect(started.port);
    other.send(['blpop', 'queue', '0']);
    await expect.poll(async () => (await info('clients')).blocked_clients).toBe('1');
    await client.ask('rpush queue x');
    await other.read();
    const stats = await info('latencystats');
    expect(stats.latency_percentiles_usec_rpush).toMatch(
      /^p50=[\d.]+\.\d{3},p99=[\d.]+,p99\.9=[\d.]+$/,
    );
    expect(stats.latency_percentiles_usec_blpop).toBeUndefined();
    expect(await countsOf('blpop')).toMatch(/^calls=1,/);
  });

  it('are shown by LATENCY HISTOGRAM, by powers of two', async () => {
    await askAll('set a 1', 'get a', 'get a', 'config get save');
    const histogram = (await client.ask('latency histogram get config')) as unknown[];
    expect([histogram[0], histogram[2]]).toEqual(['config|get', 'get']);
    const [calls, count, name, buckets] = histogram[3] as [string, number, string, number[]];
    expect([calls, count, name, buckets.at(-1)]).toEqual(['calls', 2, 'histogram_usec', 2]);
    for (let i = 0; i < buckets.length; i += 2) expect(Math.log2(buckets[i]) % 1).toBe(0);
    expect(await client.ask('latency histogram nothing')).toEqual([]);
    await client.ask('hello 3');
    expect(await client.ask('latency histogram set')).toBeInstanceOf(MapReply);
  });
});

describe('SLOWLOG', () => {
  const logged = async (): Promise<unknown[]> => {
    const entries = (await client.ask('slowlog get -1')) as unknown[][];
    return entries.map(([, , , words]) => (words as string[]).join(' '));
  };

  it('has commands that take longer than the threshold, the latest one first', async () => {
    await client.ask('slowlog reset');
    expect(await client.ask('slowlog len')).toBe(0);
    await askAll('config set slowlog-log-slower-than 0', 'client setname me', 'set a 1', 'get a');
    await client.ask('config set slowlog-log-slower-than -1');
    await client.ask('get b');
    expect(await logged()).toEqual(['get a', 'set a 1', 'client setname me']);
    const [[id, at, us, , address, name]] = (await client.ask('slowlog get 1')) as [unknown[]];
    expect([typeof id, name]).toEqual(['number', 'me']);
    expect(Math.abs((at as number) - Date.now() / 1000)).toBeLessThan(60);
    expect(us).toBeGreaterThan(0);
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(await client.ask('slowlog len')).toBe(3);
    await client.ask('slowlog reset');
    expect(await logged()).toEqual([]);
  });

  it('is bounded in entries, arguments and bytes, and has no secrets', async () => {
    await askAll('config set slowlog-log-slower-than 0 slowlog-max-len 2');
    await askAll('auth secret', 'auth me secret', 'hello 2', 'get a', 'get b');
    expect(await logged()).toEqual(['get b', 'get a']);
    await client.ask(`set long ${'x'.repeat(200)}`);
    expect((await logged())[0]).toBe(`set long ${'x'.repeat(128)}... (72 more bytes)`);
    await client.ask(`del ${'k '.repeat(39)}k`);
    const [words] = (await logged()) as string[];
    expect(words.split(' ')).toHaveLength(31 + 4);
    expect(words).toMatch(/k \.\.\. \(10 more arguments\)$/);
    await client.ask('config set slowlog-max-len 0');
    await client.ask('slowlog reset');
    await client.ask('get a');
    expect(await logged()).toEqual([]);
  });

  it.each(['x', '-2'])('refuses a count of %s, as Redis does', async (count) => {
    const error = new ErrorReply('ERR count should be greater than or equal to -1');
    expect(await client.ask(`slowlog get ${count}`)).toEqual(error);
  });
});

describe('INFO', () => {
  it('counts lookups of commands that read, and keys that have expired', async () => {
    await askAll('set a 1', 'set b 1', 'get a', 'mget a b c', 'exists d', 'del a', 'incr e');
    expect(await info('stats')).toMatchObject({ keyspace_hits: '3', keyspace_misses: '2' });
    await askAll('set short x px 1', 'set long x px 100000');
    await expect.poll(async () => (await info('stats')).expired_keys).toBe('1');
    expect(await info('keyspace')).toEqual({ db0: 'keys=3,expires=1,avg_ttl=0' });
  });

  it('tells how much happens in a second', async () => {
    expect((await info('stats')).instantaneous_ops_per_sec).toBe('0');
    const begin = performance.now();
    for (let i = 0; i < 99; i++) await client.ask('ping');
    started.gateway.stats.sample(begin + 10_000);
    const { instantaneous_ops_per_sec: rate } = await info('stats');
    expect(Number(rate)).toBeGreaterThan(8);
    expect(Number(rate)).toBeLessThan(12);
  });

  it('has the usual sections without arguments, and all with ALL', async () => {
    const titles = async (request: string): Promise<string[]> =>
      [...((await client.ask(request)) as string).matchAll(/^# (\w+)/gm)].map(([, title]) => title);
    const usual = await titles('info');
    expect(usual).toEqual(await titles('info default'));
    expect(usual).toContain('Keyspace');
    expect(usual).not.toContain('Commandstats');
    const all = await titles('info all');
    expect(all).toEqual(
      expect.arrayContaining([...usual, 'Commandstats', 'Latencystats', 'Shards']),
    );
    expect(await titles('info clients SHARDS')).toEqual(['Clients', 'Shards']);
  });

  it('tells of each shard', async () => {
    await client.ask('set a 1');
    const shards = Object.values(await info('shards'));
    expect(shards).toHaveLength(4);
    expect(shards.filter((line) => /^answers=yes,replicas=3,keys=1,/.test(line))).toHaveLength(1);
  });
});

it('MEMORY STATS has the number of keys', async () => {
  expect(await client.ask('mset a 1 b 2')).toEqual(OK);
  const stats = (await client.ask('memory stats')) as unknown[];
  expect(stats[stats.indexOf('keys.count') + 1]).toBe(2);
  await askAll('multi', 'memory stats');
  expect(await client.ask('exec')).toEqual([stats.map(() => expect.anything())]);
});
