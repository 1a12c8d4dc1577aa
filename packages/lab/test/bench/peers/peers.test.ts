/**
 * `tram-lab bench peers` with the real servers. On a build machine they must be installed (`.ci/setup` does it); elsewhere a
 * test whose server is missing is skipped, with the reason.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, type TestContext, test } from 'vitest';
import { projectDirectory, until } from '../../../../tram/test/built.js';
import type * as DiskFolderModule from '../../../src/bench/disk-folder.js';
import type * as PeerModule from '../../../src/bench/peers/peer.js';
import type { PeerId } from '../../../src/bench/peers/peer.js';
import type * as PeersModule from '../../../src/bench/peers/peers.js';
import type * as ServersModule from '../../../src/bench/systems/servers.js';
import { remainsOf } from '../remains.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/${name}.js`, import.meta.url).href;
const { makeDiskFolder }: typeof DiskFolderModule = await import(built('disk-folder'));
const { startPeer }: typeof PeerModule = await import(built('peers/peer'));
const { PEERS, installCommand }: typeof PeersModule = await import(built('peers/peers'));
const { findProgram, serversParent }: typeof ServersModule = await import(built('systems/servers'));

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');
const IDS: readonly PeerId[] = ['redis', 'nats', 'etcd'];
/** Tests of the command do not use the figures. */
const SHORTEST = ['--seconds', '0.05', '--rounds', '1'];
const TWO_ROUNDS = ['--seconds', '0.05', '--rounds', '2'];
/** Starting three servers takes long on a busy machine. */
const LIMIT_MS = 120_000;

/** The path of the program; skips the test if it is missing. */
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
const isPid = (name: string): boolean => /^\d+$/.test(name);

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

describe.each([
  ...IDS.map((id) => ({ id, isSynced: false })),
  ...IDS.filter((id) => PEERS[id].syncedConditions).map((id) => ({ id, isSynced: true })),
])('$id, synced: $isSynced', { timeout: LIMIT_MS }, ({ id, isSynced }) => {
  test('acknowledges messages to one shard and to eight', async (context) => {
    const program = programOf(id, context);
    const folder = isSynced ? makeDiskFolder() : undefined;
    context.onTestFinished(() => folder?.remove());
    const shape = {
      groups: 8,
      replicas: 3,
      clientsMax: 1,
      outstandingMax: 64,
      payloadBytesMax: 64,
    };
    const running = await startPeer(PEERS[id], program, shape, context.signal, folder?.path);
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
  test('prints one JSON object', async (context) => {
    programOf('redis', context);
    const { pid, end } = run(['--only', 'redis', '--json', ...TWO_ROUNDS]);
    const { status, stdout } = await end;
    expect(status).toBe(0);
    const result = JSON.parse(stdout) as PeersModule.PeersResult;
    expect(result.systems.map(({ id, status }) => [id, status])).toEqual([
      ['tram', 'measured'],
      ['redis', 'measured'],
    ]);
    expect(result.advantages['redis']?.eight.throughput.median).toBeGreaterThan(0);
    expect(remains(pid)).toEqual([]);
  });

  test('interrupted, it ends at once and removes everything', async (context) => {
    programOf('redis', context);
    const { child, pid, end } = run(['--only', 'redis', ...SHORTEST]);
    await until(() => remains(pid).length > 3);
    child.kill('SIGINT');
    expect(await end).toMatchObject({ status: 130, stdout: '' });
    expect(remains(pid)).toEqual([]);
  });

  test('its servers die with it', async (context) => {
    programOf('redis', context);
    context.skip(findProgram('setpriv') === undefined, 'needs setpriv of util-linux');
    const { child, pid, end } = run(['--only', 'redis', ...SHORTEST]);
    await until(() => remains(pid).length > 3);
    child.kill('SIGKILL');
    await end;
    await until(() => remains(pid).every((name) => !isPid(name)));
    // The folder is left; the next run, here or of another user of this machine, removes it.
    for (const name of remains(pid)) {
      rmSync(join(serversParent(), name), { recursive: true, force: true });
    }
  });

  test('prints how to install a missing system, and the end of the log of a failed one', async ({
    onTestFinished,
  }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tram-peers-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'etcd'), '#!/bin/sh\necho no room for a log\nexit 1\n');
    chmodSync(join(folder, 'etcd'), 0o755);
    const { end } = run(['--only', 'redis,etcd', ...SHORTEST], { PATH: folder });
    const { status, stdout } = await end;
    expect(status).toBe(1);
    expect(stdout).toContain('Redis is not installed: apt-get install -y redis-server\n');
    expect(stdout).toMatch(
      /\netcd failed: server etcd-\d ended: until the servers have a leader\n/,
    );
    expect(stdout).toContain('\n  etcd-0: no room for a log\n');
    expect(stdout).toMatch(/\nTRAM, processes +\d/);
  });

  test.each([
    [['--synced', '--only', 'nats'], "nats can't be measured with --synced"],
    [['--synced', '--folder', '/dev/shm'], 'this is in memory: /dev/shm'],
    [['--folder', '/tmp'], '--folder needs --synced'],
  ])('refuses %j', async (args, complaint) => {
    const { status, stderr } = await run(args).end;
    expect(status).not.toBe(0);
    expect(stderr).toContain(complaint);
  });

  test('refuses an unknown peer', async () => {
    const { status, stderr } = await run(['--only', 'redis,kafka']).end;
    expect(status).toBe(2);
    expect(stderr).toContain('Expected some of redis,nats,etcd');
  });
});
