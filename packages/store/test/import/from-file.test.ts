/** `tram-store import dump.rdb`: files of redis-server, and of none. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { RequestParser } from '../../src/resp/parser.js';
import { Connection } from '../differential/connection.js';
import { hasRedisServer, MISSING, startRedisServer } from '../differential/redis-server.js';
import type { Wire } from '../differential/wire.js';
import { type Started, startGateway } from '../gateway/started.js';
import { contentsOf, fill, LIBRARY } from './contents.js';
import { type Part, rdbOf, uint32, uint64, withSum } from './rdb-bytes.js';
import { type Ended, runImport } from './run-import.js';

let folder: string;
let started: Started;
let store: Connection;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'store-import-'));
  started = await startGateway();
  store = await Connection.open({ port: started.port });
});

afterAll(async () => {
  store.close();
  await started.close();
  rmSync(folder, { recursive: true });
});

const to = (): string[] => ['--to', `127.0.0.1:${started.port}`];

test('everything that Redis saves', { timeout: 120_000 }, async (context) => {
  if (!hasRedisServer()) {
    if (process.env['CI']) throw new Error(MISSING);
    context.skip(true, MISSING);
  }
  const redis = await startRedisServer();
  try {
    await fill(redis.connection);
    await redis.connection.run([['SAVE']], 2);
    const before = await contentsOf(redis.connection);
    expect(before.size).toBeGreaterThan(40);
    await store.run([['FLUSHALL']], 2);
    const { output, exitCode } = await runImport(join(redis.folder, 'dump.rdb'), ...to());
    expect(output).toContain(`imported ${before.size} keys and 1 library`);
    expect(exitCode).toBe(0);
    const after = await contentsOf(store);
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [key, value] of before) expect(after.get(key), key.slice(0, 50)).toEqual(value);
    expect(await store.run([['FCALL', 'hello', '0']], 2)).toEqual([['$', 'world']]);
  } finally {
    await redis.stop();
  }
});

const KEY = (name: string): Part => [0, name, `value of ${name}`];
const THREE: Part = [254, 0, KEY('a'), KEY('b'), KEY('c')];

describe('a file of our own', () => {
  beforeEach(() => store.run([['FLUSHALL'], ['FUNCTION', 'FLUSH']], 2));

  const importOf = (file: Buffer, ...args: string[]): Promise<Ended> => {
    const path = join(folder, 'dump.rdb');
    writeFileSync(path, file);
    return runImport(path, ...to(), ...args);
  };
  const valuesOf = async (...keys: string[]): Promise<unknown> => {
    const [[, values]] = await store.run([['MGET', ...keys]], 2);
    return (values as readonly Wire[]).map(([, value]) => value);
  };

  it('leaves keys that are there already, unless it may replace them', async () => {
    await store.run([['MSET', 'b', 'ours', 'c', 'ours', 'd', 'ours']], 2);
    const kept = await importOf(rdbOf(10, THREE));
    expect(kept.exitCode).toBe(1);
    expect(kept.output).toContain('imported 1 key in');
    expect(kept.output).toContain('2 keys that the store had already, the first is "b"');
    expect(await valuesOf('a', 'b', 'c', 'd')).toEqual(['value of a', 'ours', 'ours', 'ours']);
    const replaced = await importOf(rdbOf(10, THREE), '--replace');
    expect(replaced.exitCode).toBe(0);
    expect(await valuesOf('b', 'c', 'd')).toEqual(['value of b', 'value of c', 'ours']);
  });

  it('leaves out keys that have expired', async () => {
    const file = rdbOf(
      10,
      [254, 0, 252, uint64(Date.now() - 1), KEY('old'), 253, uint32(1), KEY('older')],
      THREE,
    );
    const { output, exitCode } = await importOf(file);
    expect(output).toContain('imported 3 keys');
    expect(output).toContain('left out: 2 keys that had expired');
    expect(exitCode).toBe(0);
  });

  it('passes on times, also one that never comes', async () => {
    const at = Date.now() + 100_000;
    const file = rdbOf(10, [
      254,
      0,
      252,
      uint64(at),
      KEY('a'),
      252,
      uint64(2n ** 63n - 1n),
      KEY('b'),
    ]);
    expect((await importOf(file)).output).toContain('imported 2 keys');
    expect(await store.run([['PEXPIRETIME', 'a']], 2)).toEqual([[':', String(at)]]);
    const [[, late]] = await store.run([['PEXPIRETIME', 'b']], 2);
    expect(Number(late)).toBeGreaterThan(2 ** 52);
  });

  it('passes on idleness and frequency', async () => {
    const file = rdbOf(10, [254, 0, 248, 60, KEY('idle'), 249, 255, KEY('frequent')]);
    expect((await importOf(file)).output).toContain('imported 2 keys');
  });

  it('with several databases: one is imported, and the others are told', async () => {
    const file = rdbOf(10, THREE, [254, 3, KEY('d'), KEY('e'), 254, 12, KEY('f')]);
    const first = await importOf(file);
    expect(first.output).toContain('imported 3 keys');
    expect(first.output).toContain('left out: 2 keys of database 3.');
    expect(first.output).toContain('left out: 1 key of database 12.');
    expect(first.exitCode).toBe(1);
    const third = await importOf(file, '--db', '3');
    expect(third.output).toContain('imported 2 keys');
    expect(third.output).toContain('left out: 3 keys of database 0.');
    expect(third.exitCode).toBe(0);
    expect(await store.run([['DBSIZE']], 2)).toEqual([[':', '5']]);
  });

  it('a library that the store refuses', async () => {
    const { output, exitCode } = await importOf(rdbOf(10, [245, LIBRARY, 245, LIBRARY], THREE));
    expect(output).toContain('imported 3 keys and 1 library');
    expect(output).toContain(
      "left out: a library of functions: ERR Library 'words' already exists",
    );
    expect(exitCode).toBe(1);
  });

  it('values that are too long for a request are left out', async () => {
    await store.run([['CONFIG', 'SET', 'proto-max-bulk-len', '1mb']], 2);
    const file = rdbOf(10, THREE, [0, 'long', 'x'.repeat(1_048_576)], KEY('d'));
    const { output, exitCode } = await importOf(file);
    await store.run([['CONFIG', 'SET', 'proto-max-bulk-len', '512mb']], 2);
    expect(output).toContain('imported 4 keys');
    expect(output).toContain(
      '1 key with a value that is too long for a request, the first is "long"',
    );
    expect(exitCode).toBe(1);
    expect((await importOf(file)).output).toContain('imported 1 key in');
    expect(await store.run([['STRLEN', 'long']], 2)).toEqual([[':', '1048576']]);
  });

  it('nothing of a damaged file is imported', async () => {
    const file = rdbOf(10, THREE);
    await expect(importOf(withSum(file, 1n))).rejects.toThrow('the checksum');
    await expect(importOf(file.subarray(0, -9))).rejects.toThrow('it ends too early');
    const log = Buffer.concat([file, Buffer.from('*1\r\n$4\r\nPING\r\n')]);
    await expect(importOf(log)).rejects.toThrow(`goes on after its end, at byte ${file.length}`);
    expect(await store.run([['DBSIZE']], 2)).toEqual([[':', '0']]);
  });

  it('a value that the store does not take ends the import, which tells how far it came', async () => {
    // A set with the same member twice.
    const file = rdbOf(10, THREE, [2, 'twice', 2, 'a', 'a']);
    await expect(importOf(file)).rejects.toMatchObject({
      message: expect.stringMatching(
        /the key "twice": ERR Bad data format.* 3 keys had been imported/,
      ),
      hint: expect.stringContaining('Then run it again with --replace.'),
    });
  });
});

describe('a store', () => {
  it('that ends in the middle', async () => {
    // Answers CONFIG, PING and ten RESTOREs, and then closes the connection.
    const server = createServer((socket) => {
      const parser = new RequestParser({ bulkBytesMax: 2 ** 29, requestBytesMax: 2 ** 30 });
      parser.authenticated = true;
      let restored = 0;
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        parser.feed(Buffer.from(chunk));
        while (parser.next()) {
          if (parser.name !== 'RESTORE') socket.write('*0\r\n');
          else if (++restored <= 10) socket.write('+OK\r\n');
          else socket.end();
        }
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const path = join(folder, 'hundred.rdb');
    writeFileSync(
      path,
      rdbOf(10, 254, 0, ...Array.from({ length: 100 }, (_, i) => KEY(`key ${i}`))),
    );
    await expect(runImport(path, '--to', `127.0.0.1:${port}`)).rejects.toMatchObject({
      message: expect.stringMatching(
        /the connection to .* has ended: .* 10 keys had been imported/,
      ),
      hint: expect.stringContaining('Then run it again with --replace.'),
    });
    server.close();
  });

  it('that is not there', async () => {
    const path = join(folder, 'small.rdb');
    writeFileSync(path, rdbOf(10, THREE));
    await expect(runImport(path, '--to', join(folder, 'nowhere'))).rejects.toMatchObject({
      message: expect.stringContaining('no connection to'),
      hint: 'Start the store, or name its address with --to.',
    });
  });

  it('with a password, on a Unix socket', async () => {
    const unixSocket = join(folder, 'store.socket');
    const closed = await startGateway({ requirepass: 'secret' }, { unixSocket });
    try {
      const path = join(folder, 'small.rdb');
      writeFileSync(path, rdbOf(10, THREE));
      const passwordFile = join(folder, 'password');
      writeFileSync(passwordFile, 'secret\n');
      await expect(runImport(path, '--to', unixSocket)).rejects.toThrow('refuses us: NOAUTH');
      const wrong = runImport(path, '--to', unixSocket, '--password', 'wrong');
      await expect(wrong).rejects.toThrow('refuses us: WRONGPASS');
      const { output } = await runImport(path, '--to', unixSocket, '--password-file', passwordFile);
      expect(output).toContain('imported 3 keys');
    } finally {
      await closed.close();
    }
  });

  it('with TLS', async () => {
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(folder, name));
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'],
        ...['-keyout', key, '-out', cert],
      ],
      { stdio: 'ignore' },
    );
    const tls = { cert: readFileSync(cert), key: readFileSync(key) };
    const secure = await startGateway({}, { port: 0, tls });
    try {
      const path = join(folder, 'small.rdb');
      writeFileSync(path, rdbOf(10, THREE));
      const address = ['--to', `127.0.0.1:${secure.port}`, '--tls'];
      const { output } = await runImport(path, ...address, '--tls-ca', cert);
      expect(output).toContain('imported 3 keys');
      const stranger = createTlsServer(tls).listen(0, '127.0.0.1');
      await once(stranger, 'listening');
      const { port } = stranger.address() as AddressInfo;
      const untrusted = runImport(path, '--to', `127.0.0.1:${port}`, '--tls');
      await expect(untrusted).rejects.toThrow('self-signed certificate');
      stranger.close();
    } finally {
      await secure.close();
    }
  });
});

describe('refused, with what to do', () => {
  it.each([
    [['/nowhere/dump.rdb'], 'ENOENT'],
    [['/'], '/ is not a file'],
    [['dump.rdb', '--db', '-1'], 'integer from 0'],
    [['dump.rdb', '--tls-cert', 'a'], 'needs its key'],
    [['dump.rdb', '--tls-ca', 'a'], 'no server uses TLS'],
    [['dump.rdb', '--scan'], 'need a running Redis server'],
    [['redis://host', '--scan', '--follow'], 'does not tell its changes'],
    [['redis://host/1', '--db', '2'], 'two databases'],
    [['redis://'], 'not the URL of a Redis server'],
    [['redis://host/name'], 'not the URL of a Redis server'],
    [['dump.rdb', '--port', '1'], 'unknown option'],
    [[], 'missing required argument'],
  ])('%j', async (args, message) => {
    await expect(runImport(...args)).rejects.toThrow(message);
  });

  it.each(['host:0', 'host:70000', 'a b', 'redis://host', ''])('--to %j', async (address) => {
    const path = join(folder, 'small.rdb');
    writeFileSync(path, rdbOf(10, THREE));
    await expect(runImport(path, '--to', address)).rejects.toThrow('not the address of a server');
  });
});
