/**
 * The message-passing systems as real processes over TCP: their deliveries are an atomic multicast, failures are reported, and
 * no process is left. The processes run built JavaScript.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { judge } from 'tram-multicast/internal/check/judge.js';
import { describe, expect, test } from 'vitest';
import { until } from '../../../../../tram/test/built.js';
import { setOf } from '../../../../src/bench/load/destinations.js';
import type * as PassingModule from '../../../../src/bench/systems/passing/system.js';
import type { Load, Setup } from '../../../../src/bench/systems/system.js';
import { expectNoLeftOvers } from '../../left-overs.js';

const BUILT = new URL('../../../../dist/bench/systems/passing/system.js', import.meta.url).href;
const { SKEEN, byzcastOn, startSkeen, startByzcast }: typeof PassingModule = await import(BUILT);

const SETUP: Setup = {
  groups: 4,
  replicas: 1,
  clientsMax: 3,
  outstandingMax: 8,
  payloadBytesMax: 64,
};
const LOAD: Load = {
  clients: 3,
  outstanding: 8,
  sets: [[0], [2, 3], [3], [0, 1, 2, 3], [1, 3], [0, 2]].map(setOf),
  payloadBytes: 61,
  warmUpSeconds: 0.1,
  seconds: 0.3,
};

expectNoLeftOvers();

describe.each([
  ['Skeen', () => startSkeen(SETUP, true), ['fifo-order']],
  ['ByzCast', () => startByzcast(SETUP, 'base', true), []],
])('%s', (_, start, unknownProperties) => {
  test('its deliveries are an atomic multicast', async () => {
    const cluster = await start();
    try {
      const first = await cluster.measure(LOAD);
      const second = await cluster.measure({ ...LOAD, clients: 1, outstanding: 1 });
      for (const { messages, unanswered, latencyNsP50, coresUsed } of [first, second]) {
        expect(messages).toBeGreaterThan(0);
        expect(unanswered).toBe(0);
        expect(latencyNsP50).toBeGreaterThan(0);
        expect(coresUsed).toBeGreaterThan(0);
      }
      const verdict = judge(await cluster.history());
      expect(verdict.counts.messages).toBeGreaterThanOrEqual(first.messages + second.messages);
      expect(verdict.properties.filter(({ outcome }) => outcome === 'violated')).toEqual([]);
      const unknown = verdict.properties.filter(({ outcome }) => outcome === 'unknown');
      expect(unknown.map(({ property }) => property)).toEqual(unknownProperties);
    } finally {
      await cluster.close();
    }
  });

  test('the error names a process that dies', async () => {
    const cluster = await start();
    try {
      const measuring = cluster.measure({ ...LOAD, seconds: 600 });
      process.kill(cluster.pids[2], 'SIGKILL');
      await expect(measuring).rejects.toThrow(/^group 2 of \w+ ended with SIGKILL$/);
      await expect(cluster.measure(LOAD)).rejects.toThrow('group 2');
    } finally {
      await cluster.close();
    }
  });
});

test('both are systems that a benchmark can measure', async () => {
  expect([SKEEN.name, byzcastOn('base').name]).toEqual(['Skeen', 'ByzCast']);
  const running = await byzcastOn('depth').start(SETUP);
  expect((await running.measure(LOAD)).messages).toBeGreaterThan(0);
  await running.close();
});

test('invalid setups and loads are refused', async () => {
  await expect(SKEEN.start({ ...SETUP, replicas: 3 })).rejects.toThrow('replicas must be 1');
  await expect(async () => byzcastOn('0,1').start(SETUP)).rejects.toThrow('root');
  const running = await SKEEN.start({ ...SETUP, groups: 1 });
  await expect(running.measure({ ...LOAD, clients: 4 })).rejects.toThrow('clients is 4');
  await running.close();
});

test('all processes end with their parent', async () => {
  const program = `
    import { startSkeen } from ${JSON.stringify(BUILT)};
    const { pids } = await startSkeen(${JSON.stringify(SETUP)}, false);
    console.log(JSON.stringify(pids));
    process.kill(process.pid, 'SIGKILL');`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  const failure: unknown = await run.catch((error) => error);
  const pids = JSON.parse((failure as { stdout: string }).stdout) as number[];
  expect(pids).toHaveLength(SETUP.groups + 1);
  await until(() => pids.every((pid) => !isAlive(pid)));
});

function isAlive(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !'ZX'.includes(status[status.lastIndexOf(')') + 2]);
  } catch {
    return false;
  }
}
