/** How the gateway listens, and how connections begin and end. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ErrorReply, OK } from '../../src/resp/reply.js';
import { PlainClient, startGateway } from './started.js';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'store-'));
});

afterAll(() => rmSync(directory, { recursive: true }));

describe('a Unix socket', () => {
  it('is as good as TCP, and is gone afterwards', async () => {
    const path = join(directory, 'a.sock');
    const started = await startGateway({}, { unixSocket: path });
    const client = PlainClient.of(dial(path));
    expect(await client.ask('set a 1')).toEqual(OK);
    expect(await client.ask('client info')).toContain(`addr=${path}:0`);
    await started.close();
    expect(existsSync(path)).toBe(false);
  });

  it('that a dead server has left is replaced, but not one that is in use', async () => {
    const path = join(directory, 'b.sock');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    expect(() => execFileSync(process.execPath, ['-e', script], { stdio: 'ignore' })).toThrow();
    expect(existsSync(path)).toBe(true);
    const started = await startGateway({}, { unixSocket: path });
    await expect(startGateway({}, { unixSocket: path })).rejects.toThrow('EADDRINUSE');
    await started.close();
  });
});

it('a port in use is an error, and nothing listens then', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  await expect(startGateway({}, { port })).rejects.toThrow('EADDRINUSE');
  other.close();
});

describe('limits', () => {
  it('maxclients: one too many gets an error', async () => {
    const started = await startGateway({ maxclients: '2' });
    const [first] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    await first.ask('ping');
    const third = await PlainClient.connect(started.port);
    expect(await third.readAll()).toBe('-ERR max number of clients reached\r\n');
    expect(await first.ask('info stats')).toContain('rejected_connections:1');
    await started.close();
  });

  it('timeout: silent clients are disconnected, but not those that wait for messages', async () => {
    const started = await startGateway({ timeout: '1' });
    const [silent, listening] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    await listening.ask('subscribe a');
    expect(await silent.readAll()).toBe('');
    expect(await listening.ask('ping')).toEqual(['pong', '']);
    await started.close();
  });

  it('client-output-buffer-limit: a subscriber that does not read is disconnected', async () => {
    const started = await startGateway({
      'client-output-buffer-limit': 'normal 0 0 0 slave 0 0 0 pubsub 1000000 0 0',
    });
    const [slow, client] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    await slow.ask('subscribe a');
    slow.socket.pause();
    client.send(['config', 'get', 'client-output-buffer-limit']);
    await client.read();
    let receivers: unknown = 1;
    for (let i = 0; receivers === 1; i++) {
      expect(i).toBeLessThan(1000);
      receivers = await client.ask(`publish a ${'x'.repeat(100_000)}`);
    }
    expect(receivers).toBe(0);
    await started.close();
  });

  it('a client that does not read replies is not served any further', async () => {
    const started = await startGateway();
    const [slow, client] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    await client.ask(`set big ${'x'.repeat(20_000)}`);
    slow.socket.pause();
    for (let i = 0; i < 3000; i++) slow.send(['get', 'big']);
    slow.send(['set', 'done', '1']);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await client.ask('get done')).toBeNull();
    slow.socket.resume();
    for (let i = 0; i < 3000; i++) expect(await slow.read()).toHaveLength(20_000);
    expect(await slow.read()).toEqual(OK);
    await started.close();
  });
});

describe('a client that has not authenticated itself', () => {
  it('has a minute', async () => {
    const started = await startGateway({ requirepass: 'secret' });
    const [stranger, known] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    await stranger.ask('auth wrong');
    await known.ask('auth secret');
    const check = (ms: number): void => {
      for (const client of started.gateway.clients.values()) client.check(Date.now() + ms);
    };
    check(0);
    check(59_000);
    expect(await stranger.ask('get a')).toBeInstanceOf(ErrorReply);
    check(61_000);
    await expect(stranger.ask('auth secret')).rejects.toThrow('ended');
    expect(await known.ask('set a 1')).toEqual(OK);
    await started.close();
  });

  it('leaves little unread', async () => {
    const started = await startGateway({ requirepass: 'secret' });
    const stranger = await PlainClient.connect(started.port);
    stranger.socket.pause();
    const [client] = started.gateway.clients.values();
    for (let i = 0; client.outputBytes === 0; i++) {
      expect(i).toBeLessThan(1000);
      stranger.sendRaw('GET a\r\n'.repeat(10_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let i = 0; i < 20; i++) {
      stranger.sendRaw('GET a\r\n'.repeat(10_000));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(client.outputBytes).toBeLessThan(100_000);
    await started.close();
  });
});

describe('the end of a gateway', () => {
  it('comes after the replies that clients wait for', async () => {
    const started = await startGateway();
    const client = await PlainClient.connect(started.port);
    await client.ask('ping');
    client.sendRaw('SET a 1\r\nGET a\r\n');
    await new Promise((resolve) => setTimeout(resolve, 1));
    const closing = started.close();
    const replies = await client.readAll();
    expect(['', '+OK\r\n$1\r\n1\r\n']).toContain(replies);
    await closing;
  });

  it('does not wait for clients that are blocked or silent', async () => {
    const started = await startGateway();
    const [blocked, silent, subscribed] = [
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
      await PlainClient.connect(started.port),
    ];
    blocked.send(['blpop', 'nothing', '0']);
    await subscribed.ask('subscribe a');
    await started.close();
    await blocked.readAll();
    expect(await silent.readAll()).toBe('');
  });
});
