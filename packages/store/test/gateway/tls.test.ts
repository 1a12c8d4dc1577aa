/** TLS, with the clients that people use. Certificates are made here, by the command `openssl`. */

import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as dialTls } from 'node:tls';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GatewayServer, type Tls } from '../../src/gateway/server.js';
import { Simple } from '../../src/resp/reply.js';
import { checkTls } from '../../src/tls.js';
import { PlainClient, type Started, startGateway } from './started.js';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'store-tls-'));
const file = (name: string): string => join(directory, name);
const pem = (name: string): Buffer => readFileSync(file(name));
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const started: Started[] = [];

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' });
}

/** Signs a certificate for 127.0.0.1. @param days  how long it holds, from now */
function sign(name: string, authority: string, days: number): void {
  openssl(
    'req',
    '-new',
    ...KEY,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
    '-subj',
    `/CN=${name}`,
  );
  const signing = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
  openssl(
    ...['x509', '-req', '-in', `${name}.csr`, ...signing, '-days', String(days)],
    ...['-extfile', 'names', '-out', `${name}.pem`],
  );
}

beforeAll(() => {
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1\n');
  for (const name of ['authority', 'stranger']) {
    openssl(
      'req',
      '-x509',
      ...KEY,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
      '-subj',
      `/CN=${name}`,
    );
  }
  sign('server', 'authority', 10);
  sign('client', 'authority', 10);
  sign('expired', 'authority', -1);
  sign('foreign', 'stranger', 10);
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.close()));
});

afterAll(() => rmSync(directory, { recursive: true }));

function tlsOf(name: string, ca?: string): Tls {
  const pair = { cert: pem(`${name}.pem`), key: pem(`${name}.key`) };
  return ca === undefined ? pair : { ...pair, ca: pem(`${ca}.pem`) };
}

async function start(tls: Tls, settings = {}): Promise<Started> {
  const one = await startGateway(settings, { port: 0, tls });
  started.push(one);
  return one;
}

function plainTls(port: number, options: object): PlainClient {
  return PlainClient.of(dialTls({ port, host: '127.0.0.1', ...options }));
}

describe('clients that check the certificate', () => {
  const CA = () => pem('authority.pem');

  it('redis-cli', async () => {
    const { port } = await start(tlsOf('server'));
    const cli = (ca: string) =>
      run('redis-cli', ['-p', String(port), '--tls', '--cacert', file(`${ca}.pem`), 'ping']);
    expect((await cli('authority')).stdout).toBe('PONG\n');
    await expect(cli('stranger')).rejects.toThrow('certificate verify failed');
  });

  it('ioredis', async () => {
    const { port } = await start(tlsOf('server'));
    const options = { host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null };
    const redis = new Redis({ ...options, tls: { ca: CA() } });
    expect(await redis.set('a', '1')).toBe('OK');
    expect(await redis.get('a')).toBe('1');
    redis.disconnect();
    const wrong = new Redis({ ...options, tls: { ca: pem('stranger.pem') } });
    const failed = new Promise<Error>((resolve) => wrong.once('error', resolve));
    await expect(wrong.connect()).rejects.toThrow();
    expect(await failed).toMatchObject({ code: expect.stringMatching(/CERT|SIGNATURE/) });
  });

  it('redis', async () => {
    const { port } = await start(tlsOf('server'));
    const socketOf = (ca: Buffer) =>
      ({ port, host: '127.0.0.1', tls: true, ca, reconnectStrategy: false }) as const;
    const client = createClient({ socket: socketOf(CA()) });
    await client.connect();
    expect(await client.ping()).toBe('PONG');
    client.destroy();
    const wrong = createClient({ socket: socketOf(pem('stranger.pem')) });
    wrong.on('error', () => undefined);
    await expect(wrong.connect()).rejects.toMatchObject({
      code: expect.stringMatching(/CERT|SIGNATURE/),
    });
  });

  it('are told that it has expired', async () => {
    const { port } = await start(tlsOf('expired'));
    const redis = new Redis({
      ...{ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null },
      tls: { ca: CA() },
    });
    const failed = new Promise<Error>((resolve) => redis.once('error', resolve));
    await expect(redis.connect()).rejects.toThrow();
    expect(await failed).toMatchObject({ code: 'CERT_HAS_EXPIRED' });
  });
});

describe('clients that have to show a certificate', () => {
  const server = () => start(tlsOf('server', 'authority'));
  const own = (name: string) => ['--cert', file(`${name}.pem`), '--key', file(`${name}.key`)];

  it('redis-cli', async () => {
    const { port } = await server();
    const cli = (...args: string[]) =>
      run('redis-cli', ['-p', String(port), '--tls', '--cacert', file('authority.pem'), ...args]);
    expect((await cli(...own('client'), 'ping')).stdout).toBe('PONG\n');
    // A client of TLS 1.3 learns it with the first reply.
    for (const wrong of [[], own('foreign'), own('expired')]) {
      const { stdout, stderr } = await cli(...wrong, 'ping').catch((error) => error);
      expect(stdout + stderr).not.toContain('PONG');
    }
  });

  it('ioredis and redis', async () => {
    const { port } = await server();
    const tls = { ca: pem('authority.pem'), ...tlsOf('client') };
    const redis = new Redis({ host: '127.0.0.1', port, tls });
    expect(await redis.ping()).toBe('PONG');
    redis.disconnect();
    const client = createClient({ socket: { port, host: '127.0.0.1', ...tls, tls: true } });
    await client.connect();
    expect(await client.ping()).toBe('PONG');
    client.destroy();
  });

  it('are counted if it is not the right one', async () => {
    const { port, gateway } = await server();
    for (const wrong of [{}, tlsOf('foreign'), tlsOf('expired')]) {
      const client = plainTls(port, { rejectUnauthorized: false, ...wrong });
      await expect(client.ask('ping')).rejects.toThrow('ended');
    }
    expect(gateway.stats.failedHandshakes).toBe(3);
    expect(gateway.stats.connections).toBe(0);
  });
});

describe('what is not TLS', () => {
  it('is refused at once, and hurts nobody', async () => {
    const { port, gateway } = await start(tlsOf('server'));
    const witness = plainTls(port, { ca: pem('authority.pem') });
    for (const text of ['PING\r\n', '*1\r\n$4\r\nPING\r\n', '\x16\x03\x01\x00\x05hello']) {
      const plain = await PlainClient.connect(port);
      plain.sendRaw(text);
      expect(await plain.readAll()).not.toContain('PONG');
    }
    expect(await witness.ask('ping')).toEqual(new Simple('PONG'));
    expect(gateway.stats.failedHandshakes).toBe(3);
    expect(gateway.clients.size).toBe(1);
  });

  it('may not keep many connections, nor for long', async () => {
    const { gateway } = await start(tlsOf('server'), { maxclients: '10' });
    const server = new GatewayServer(gateway, 100);
    await server.listen({ port: 0, tls: tlsOf('server') });
    const silent = await Promise.all(
      Array.from({ length: 30 }, () => PlainClient.connect(server.port)),
    );
    silent[0].sendRaw('\x16');
    for (const client of silent) expect(await client.readAll()).toBe('');
    // Those that were rejected have failed too. Which ones were rejected depends on which handshakes had failed by then.
    expect(gateway.stats.failedHandshakes).toBe(30);
    expect(gateway.stats.rejected).toBeGreaterThan(0);
    const client = plainTls(server.port, { ca: pem('authority.pem') });
    expect(await client.ask('ping')).toEqual(new Simple('PONG'));
    await server.close(1000);
  });

  it('does not delay the end of the gateway', async () => {
    const { port, close } = await start(tlsOf('server'));
    const silent = dial(port, '127.0.0.1');
    silent.on('error', () => undefined);
    const busy = plainTls(port, { ca: pem('authority.pem') });
    await busy.ask('ping');
    await close();
    expect(await busy.readAll()).toBe('');
  });
});

describe('before a store starts', () => {
  it.each([
    ['no certificate', () => ({ ...tlsOf('server'), cert: 'x' }), "the certificate can't be read"],
    ['no key', () => ({ ...tlsOf('server'), key: 'x' }), "the key can't be read"],
    ['the key of another one', () => ({ ...tlsOf('server'), key: pem('client.key') }), 'belong'],
    ['no authority', () => ({ ...tlsOf('server'), ca: 'x' }), 'of the authority'],
  ])('%s is an error that says so', (_what, tls, message) => {
    expect(() => checkTls(tls())).toThrow(message);
  });

  it('a key with a passphrase is refused', () => {
    openssl('ec', '-in', 'server.key', '-aes256', '-passout', 'pass:secret', '-out', 'locked.key');
    const tls = { ...tlsOf('server'), key: pem('locked.key') };
    expect(() => checkTls(tls)).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('no passphrase') }),
    );
  });

  it('a certificate that has expired is a warning', async () => {
    const warnings: string[] = [];
    const note = ({ message }: Error) => warnings.push(message);
    process.on('warning', note);
    checkTls(tlsOf('server'));
    checkTls(tlsOf('expired'));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warnings).toEqual([expect.stringMatching(/^the certificate has expired: /)]);
  });
});
