/** `tram-lab bench machines` with real hosts: it measures, and removes all files and processes. Needs libfabric. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { projectDirectory, until } from '../../../../tram/test/built.js';
import { needLibfabric } from '../../../../tram/test/memory/fabric/present.js';
import { hostCalls } from '../../../src/bench/machines/calls.js';
import type * as ClusterModule from '../../../src/bench/machines/cluster.js';
import type { MachinesResult } from '../../../src/bench/machines/machines.js';
import type * as SystemModule from '../../../src/bench/machines/system.js';
import type * as ServersModule from '../../../src/bench/systems/servers.js';
import { remainsOf } from '../remains.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/${name}.js`, import.meta.url).href;
const { startCluster }: typeof ClusterModule = await import(built('machines/cluster'));
const { loadOn }: typeof SystemModule = await import(built('machines/system'));
const { serversParent }: typeof ServersModule = await import(built('systems/servers'));

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');
const SHORT = ['--seconds', '0.1', '--rounds', '1'];
/** Starting three hosts takes long on a busy machine. */
const LIMIT_MS = 120_000;
const SHARED_MEMORY = '/dev/shm';
const SETUP = { groups: 2, replicas: 3, clientsMax: 3, outstandingMax: 32, payloadBytesMax: 64 };

const remains = (pid: number): string[] => remainsOf(pid, [serversParent(), SHARED_MEMORY]);

function run(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const env = { ...process.env, NO_COLOR: '1', ...variables };
  const child = spawn(process.execPath, [MAIN, 'bench', 'machines', ...args], { env });
  const end = Promise.all([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    text(child.stdout),
    text(child.stderr),
  ]).then(([status, stdout, stderr]) => ({ status, stdout, stderr }));
  return { child, pid: child.pid!, end };
}

afterEach(() => expect(remains(process.pid)).toEqual([]));

test('starts a cluster, measures it and ends it', { timeout: LIMIT_MS }, async (context) => {
  needLibfabric(context);
  const { pid, end } = run(SHORT);
  const { status, stdout, stderr } = await end;
  expect(stderr).not.toContain('tram: ');
  expect(status).toBe(0);
  expect(stdout).toMatch(/TRAM to 8 groups +[\d.]+\sm?µ?s +[\d.]+×/);
  expect(stdout).toContain('over its loopback');
  expect(remains(pid)).toEqual([]);
});

test('measures a running cluster, and several clients', {
  timeout: LIMIT_MS,
}, async (context) => {
  needLibfabric(context);
  const cluster = await startCluster(SETUP, context.signal);
  try {
    const running = loadOn(cluster, context.signal);
    const measurement = await running.measure({
      ...{ clients: 3, outstanding: 8, sets: [{ low: 3, high: 0 }], payloadBytes: 64 },
      ...{ warmUpSeconds: 0.1, seconds: 0.2 },
    });
    expect(measurement.unanswered).toBe(0);
    expect(measurement.messages).toBeGreaterThan(0);
    expect(measurement.coresUsed).toBeGreaterThan(0);
    expect(measurement.calls?.write).toBeGreaterThan(0);
    const { calls, deliveries } = await hostCalls(cluster.metrics);
    // Both groups of three replicas.
    expect(deliveries).toBeGreaterThanOrEqual(6 * measurement.messages);
    expect(calls.write).toBeGreaterThan(0);
    const { end } = run(['--config', cluster.configFile, '--json', ...SHORT]);
    const { status, stdout } = await end;
    expect(status).toBe(0);
    const { figures, changes, rounds } = JSON.parse(stdout) as MachinesResult;
    expect(figures.map(({ destinations }) => destinations)).toEqual([1, 2]);
    for (const { latencyNsP50, messagesPerSecond } of figures) {
      expect(latencyNsP50).toBeGreaterThan(0);
      expect(messagesPerSecond).toBeGreaterThan(0);
    }
    expect(rounds).toHaveLength(1);
    expect(changes.count).toBeGreaterThanOrEqual(20);
    expect(changes.gapMs.worst).toBeGreaterThanOrEqual(changes.gapMs.mean);
  } finally {
    await cluster.close();
  }
});

test('interrupted, it ends at once and removes everything', async (context) => {
  needLibfabric(context);
  const { child, pid, end } = run(SHORT);
  // The folder, three processes and their memory.
  await until(() => remains(pid).length >= 7);
  child.kill('SIGINT');
  expect(await end).toMatchObject({ status: 130, stdout: '' });
  expect(remains(pid)).toEqual([]);
});

test('refuses more destinations than the cluster has groups', async (context) => {
  needLibfabric(context);
  const { status, stderr } = await run(['--destinations', '1,9']).end;
  expect(status).toBe(2);
  expect(stderr).toContain('9 destinations, but the cluster has 8 groups');
});

test('without libfabric it prints how to install it, and starts nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tram-machines-test-'));
  try {
    writeFileSync(join(folder, 'libfabric.so.1'), '');
    const { status, stdout, stderr } = await run(SHORT, { LD_LIBRARY_PATH: folder }).end;
    expect(status).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('apt-get install libfabric1');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
