/** The clients that people use. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Started, startGateway } from './started.js';

const run = promisify(execFile);
let started: Started;
let closed: Started;

beforeAll(async () => {
  started = await startGateway();
  closed = await startGateway({ requirepass: 'secret' });
});

afterAll(async () => {
  await started.close();
  await closed.close();
});

describe('redis-cli', () => {
  const cli = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('redis-cli', ['-p', String(started.port), ...args]);
    return stdout.trimEnd();
  };

  it('runs commands', async () => {
    expect(await cli('set', 'cli', 'value')).toBe('OK');
    expect(await cli('get', 'cli')).toBe('value');
    expect(await cli('-3', 'config', 'get', 'save')).toBe('save');
    expect(await cli('info', 'server')).toContain('redis_version:7.0.15');
  });

  it('takes commands from its input', async () => {
    const child = spawn('redis-cli', ['-p', String(started.port)]);
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    child.stdin.end('MULTI\nSET "a b" 1\nGET "a b"\nEXEC\n');
    await once(child, 'close');
    expect(output).toBe('OK\nQUEUED\nQUEUED\nOK\n1\n');
  });

  it('sends protocol with --pipe', async () => {
    const child = spawn('redis-cli', ['-p', String(started.port), '--pipe']);
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    for (let i = 0; i < 2000; i++) {
      const key = `pipe${i}`;
      child.stdin.write(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$1\r\nx\r\n`);
    }
    child.stdin.end();
    await once(child, 'close');
    expect(output).toContain('errors: 0, replies: 2000');
  });

  it('authenticates itself', async () => {
    const { stdout } = await run('redis-cli', ['-p', String(closed.port), 'get', 'a']);
    expect(stdout).toContain('NOAUTH');
    const options = ['-p', String(closed.port), '-a', 'secret', '--no-auth-warning'];
    expect((await run('redis-cli', [...options, 'ping'])).stdout).toBe('PONG\n');
  });
});

it('redis-benchmark', async () => {
  const options = [
    '-p',
    String(started.port),
    '-t',
    'ping,set,get,mset',
    '-n',
    '2000',
    '-P',
    '8',
    '-q',
  ];
  const { stdout } = await run('redis-benchmark', options);
  for (const name of ['PING_INLINE', 'PING_MBULK', 'SET', 'GET', 'MSET (10 keys)']) {
    expect(stdout).toContain(`${name}: `);
  }
  expect(stdout).not.toContain('Error');
});

describe.each([2, 3] as const)('redis, with RESP %i', (RESP) => {
  const connected = async (url: string) => {
    const client = createClient({ url, RESP });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const url = () => `redis://127.0.0.1:${started.port}`;

  it('reads and writes', async () => {
    const client = await connected(url());
    await client.set('redis', 'ä');
    expect(await client.get('redis')).toBe('ä');
    expect(await client.mSet({ r1: '1', r2: '2', r3: '3' })).toBe('OK');
    expect(await client.mGet(['r1', 'r2', 'r3', 'none'])).toEqual(['1', '2', '3', null]);
    const many = Array.from({ length: 200 }, (_, i) => client.incr(`counter${RESP}${i % 7}`));
    expect((await Promise.all(many)).at(-1)).toBe(29);
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    await client.set('bytes', Buffer.from([0, 255, 13, 10]));
    expect(await bytes.get('bytes')).toEqual(Buffer.from([0, 255, 13, 10]));
    await expect(client.lPush('redis', 'x')).rejects.toThrow('WRONGTYPE');
    client.destroy();
  });

  it('runs transactions', async () => {
    const client = await connected(url());
    const replies = await client.multi().mSet({ m1: '5', m2: '6' }).incr('m1').get('m2').exec();
    expect(replies).toEqual(['OK', 6, '6']);
    await client.watch('m1');
    const other = await connected(url());
    await other.incr('m1');
    await expect(client.multi().get('m1').exec()).rejects.toThrow();
    other.destroy();
    client.destroy();
  });

  it('listens to channels', async () => {
    const client = await connected(url());
    const subscriber = client.duplicate();
    await subscriber.connect();
    const messages: string[] = [];
    let wake = (): void => undefined;
    const note = (message: string, channel: string): void => {
      messages.push(`${channel}: ${message}`);
      wake();
    };
    await subscriber.subscribe('news', note);
    await subscriber.pSubscribe('n?ws', note);
    expect(await client.publish('news', 'hello')).toBe(2);
    while (messages.length < 2) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    expect(messages).toEqual(['news: hello', 'news: hello']);
    await subscriber.unsubscribe('news');
    await subscriber.pUnsubscribe();
    expect(await client.publish('news', 'hello')).toBe(0);
    subscriber.destroy();
    client.destroy();
  });

  it('waits in blocking commands', async () => {
    const client = await connected(url());
    const waiting = client.duplicate();
    await waiting.connect();
    const popped = waiting.blPop(`queue${RESP}`, 0);
    await client.rPush(`queue${RESP}`, 'job');
    expect(await popped).toEqual({ key: `queue${RESP}`, element: 'job' });
    expect(await waiting.blPop(`queue${RESP}`, 0.05)).toBeNull();
    waiting.destroy();
    client.destroy();
  });

  it('authenticates itself', async () => {
    const client = await connected(`redis://:secret@127.0.0.1:${closed.port}`);
    expect(await client.ping()).toBe('PONG');
    client.destroy();
    const wrong = createClient({
      url: `redis://:wrong@127.0.0.1:${closed.port}`,
      RESP,
      socket: { reconnectStrategy: false },
    });
    wrong.on('error', () => undefined);
    await expect(wrong.connect()).rejects.toThrow('WRONGPASS');
  });
});

describe.each([2, 3] as const)('ioredis, with RESP %i', (protocol) => {
  const connected = (port = started.port, password?: string): Redis => {
    const client = new Redis({ port, protocol, ...(password && { password }) });
    client.on('error', () => undefined);
    return client;
  };

  it('reads and writes', async () => {
    const client = connected();
    await client.set('ioredis', 'ö');
    expect(await client.get('ioredis')).toBe('ö');
    expect(await client.getBuffer('ioredis')).toEqual(Buffer.from('ö'));
    await client.mset('i1', '1', 'i2', '2');
    expect(await client.mget('i1', 'i2', 'i3')).toEqual(['1', '2', null]);
    client.disconnect();
  });

  it('sends pipelines and transactions', async () => {
    const client = connected();
    const piped = await client.pipeline().set('p1', '1').get('p1').lpush('p1', 'x').exec();
    expect(piped?.[1]).toEqual([null, '1']);
    expect(piped?.[2][0]).toBeInstanceOf(Error);
    const replies = await client.multi().set('t1', '1').set('t2', '2').mget('t1', 't2').exec();
    expect(replies).toEqual([
      [null, 'OK'],
      [null, 'OK'],
      [null, ['1', '2']],
    ]);
    client.disconnect();
  });

  it('listens to channels', async () => {
    const [client, subscriber] = [connected(), connected()];
    await subscriber.subscribe(`io${protocol}`);
    const heard = once(subscriber, 'message');
    expect(await client.publish(`io${protocol}`, 'hello')).toBe(1);
    expect(await heard).toEqual([`io${protocol}`, 'hello']);
    client.disconnect();
    subscriber.disconnect();
  });

  it('authenticates itself', async () => {
    const client = connected(closed.port, 'secret');
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });
});
