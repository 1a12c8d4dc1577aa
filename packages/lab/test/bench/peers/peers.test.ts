/**
 * `tram-lab bench peers` with the real servers. On a build machine they must be there (`.ci/setup` installs them);
 * elsewhere a test without its server is skipped, with the reason.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, describe, expect, type TestContext, test } from 'vitest';
import { projectDirectory, until } from '../../../../tram/test/built.js';
import type * as PeerModule from '../../../src/bench/peers/peer.js';
import type { PeerId } from '../../../src/bench/peers/peer.js';
import type * as PeersModule from '../../../src/bench/peers/peers.js';
import type * as ServersModule from '../../../src/bench/peers/servers.js';
import { remainsOf } from '../remains.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/peers/${name}.js`, import.meta.url).href;
const { startPeer }: typeof PeerModule = await import(built('peer'));
const { PEERS, installCommand }: typeof PeersModule = await import(built('peers'));
const { findProgram, serversParent }: typeof ServersModule = await import(built('servers'));

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');
const IDS: readonly PeerId[] = ['redis', 'nats', 'etcd'];
const SHORT = ['--seconds', '0.2'];
/** Where figures do not matter. */
const SHORTEST = ['--seconds', '0.05'];
/** Elections of three servers, on a busy machine. */
const LIMIT_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'tram-peers-test-'));

/** The program, or the end of this test. */
function programOf(id: PeerId, context: TestContext): string {
  const peer = PEERS[id];
  const program = findProgram(peer.program);
  const reason = `${peer.program} is not installed: ${installCommand([peer.package])}`;
  if (program === undefined && process.env['CI']) throw new Error(reason);
  if (program === undefined) console.warn(reason);
  context.skip(program === undefined, reason);
  return program!;
}

const remains = (pid: number): string[] => remainsOf(pid, [serversParent()]);

function run(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const env = { ...process.env, NO_COLOR: '1', ...variables };
  const child = spawn(process.execPath, [MAIN, 'bench', 'peers', ...args], { env });
  const stderr = text(child.stderr);
  const end = Promise.all([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    text(child.stdout),
    stderr,
  ]).then(([status, stdout, stderr]) => ({ status, stdout, stderr }));
  return { child, pid: child.pid!, end };
}

afterEach(() => expect(remains(process.pid)).toEqual([]));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(IDS)('%s', { timeout: LIMIT_MS }, (id) => {
  test('acknowledges messages to one shard and to eight', async (context) => {
    const program = programOf(id, context);
    const shape = {
      groups: 8,
      replicas: 3,
      clientsMax: 1,
      outstandingMax: 64,
      payloadBytesMax: 64,
    };
    const running = await startPeer(PEERS[id], program, shape, context.signal);
    try {
      const load = { clients: 1, payloadBytes: 64, warmUpSeconds: 0.1, seconds: 0.3 };
      const one = Array.from({ length: 8 }, (_, shard) => ({ low: 1 << shard, high: 0 }));
      for (const sets of [one, [{ low: 255, high: 0 }]]) {
        for (const outstanding of [1, 64]) {
          const measurement = await running.measure({ ...load, sets, outstanding });
          expect(measurement.unanswered).toBe(0);
          expect(measurement.messages).toBeGreaterThan(0);
          expect(measurement.latencyNsP99).toBeGreaterThanOrEqual(measurement.latencyNsP50);
          expect(measurement.coresUsed).toBeGreaterThan(0);
        }
      }
    } finally {
      await running.close();
    }
  });
});

describe('the command', { timeout: LIMIT_MS }, () => {
  test('prints one object', async (context) => {
    programOf('redis', context);
    const { pid, end } = run(['--only', 'redis', '--json', ...SHORT]);
    const { status, stdout } = await end;
    expect(status).toBe(0);
    const result = JSON.parse(stdout) as PeersModule.PeersResult;
    expect(result.systems.map(({ id, status }) => [id, status])).toEqual([
      ['tram', 'measured'],
      ['redis', 'measured'],
    ]);
    expect(result.advantages['redis']?.eight.throughput).toBeGreaterThan(0);
    expect(remains(pid)).toEqual([]);
  });

  test('interrupted, it ends at once and leaves nothing', async (context) => {
    programOf('redis', context);
    const { child, pid, end } = run(['--only', 'redis', ...SHORTEST]);
    await until(() => remains(pid).length > 3);
    child.kill('SIGINT');
    expect(await end).toMatchObject({ status: 130, stdout: '' });
    expect(remains(pid)).toEqual([]);
  });

  test('killed, it takes its servers along', async (context) => {
    programOf('redis', context);
    context.skip(findProgram('setpriv') === undefined, 'needs setpriv of util-linux');
    const { child, pid, end } = run(['--only', 'redis', ...SHORTEST]);
    await until(() => remains(pid).length > 3);
    child.kill('SIGKILL');
    await end;
    await until(() => remains(pid).length === 1);
    // Only the folder is left; the next run would remove it.
    for (const name of remains(pid)) rmSync(join(serversParent(), name), { recursive: true });
  });

  test('names who is missing, and shows the last words of who failed', async () => {
    writeFileSync(join(folder, 'etcd'), '#!/bin/sh\necho no room for a log\nexit 1\n');
    chmodSync(join(folder, 'etcd'), 0o755);
    const { end } = run(['--only', 'redis,etcd', ...SHORT], { PATH: folder });
    const { status, stdout } = await end;
    expect(status).toBe(1);
    expect(stdout).toContain('Redis is not installed: apt-get install -y redis-server\n');
    expect(stdout).toMatch(
      /\netcd failed: server etcd-\d ended: until the servers have a leader\n/,
    );
    expect(stdout).toContain('\n  etcd-0: no room for a log\n');
    expect(stdout).toMatch(/\nTRAM, processes +\d/);
  });

  test('knows its peers', async () => {
    const { status, stderr } = await run(['--only', 'redis,kafka']).end;
    expect(status).toBe(2);
    expect(stderr).toContain('Expected some of redis,nats,etcd');
  });
});
