/** `tram-lab bench order`: the command, how its runs are combined, and its table. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectDirectory } from '../../../../tram/test/built.js';
import {
  type Configuration,
  combine,
  type OrderResult,
  type OrderRun,
} from '../../../src/bench/order/order.js';
import { describeCores, distanceOf, formatOrder } from '../../../src/bench/order/table.js';
import { expectNoLeftOvers } from '../left-overs.js';
import { measurement } from '../peers/measurement.js';

expectNoLeftOvers();

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');

test('measures TRAM, another build and the copy-only loop in turn', async () => {
  const args = ['--groups', '2', '--destinations', '2', '--seconds', '0.1', '--outstanding', '16'];
  const against = ['--against', projectDirectory, '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[MAIN, 'bench', 'order', ...args, ...against],
  ]);
  const { configurations, rings } = JSON.parse(stdout) as OrderResult;
  expect(rings).toMatchObject([{ memory: 'threads', recordBytes: 112 }]);
  const [{ runs, messagesPerSecond, copyOnly, perCopyOnly, perAgainst }] = configurations;
  expect(configurations).toHaveLength(1);
  expect(runs).toHaveLength(1);
  for (const pingPongNs of runs[0].pingPongNs) expect(pingPongNs).toBeGreaterThan(0);
  expect(messagesPerSecond).toMatchObject({ rounds: 1 });
  expect(perCopyOnly.messagesPerSecond.median).toBeCloseTo(
    messagesPerSecond.median / copyOnly.messagesPerSecond.median,
  );
  expect(perAgainst?.latencyNsP50.median).toBeGreaterThan(0);
  expect(configurations[0].coreNsPerCopy.median).toBeGreaterThan(0);
});

test('a checkout without a build is refused before anything is measured', async () => {
  const args = [MAIN, 'bench', 'order', '--against', '/nowhere'];
  const run = promisify(execFile)(process.execPath, args);
  await expect(run).rejects.toThrow('/nowhere has no build of tram-lab');
});

test('more destinations than groups are refused', async () => {
  const run = promisify(execFile)(process.execPath, [
    MAIN,
    'bench',
    'order',
    '--destinations',
    '2',
  ]);
  await expect(run).rejects.toThrow('--destinations is more than --groups');
});

const CONFIGURATION: Configuration = {
  ...{ memory: 'threads', groups: 8, replicas: 3, tree: 'breadth', destinations: 8 },
  ...{ clients: 1, outstanding: 256, payloadBytes: 64 },
};

function runOf(perSecond: number, latencyNs: number, copies: number, pingPongNs: number): OrderRun {
  const tram = { loaded: measurement(perSecond, 9e5), alone: measurement(1, latencyNs) };
  const copy = { messagesPerSecond: copies, latencyNsP50: 1000 };
  return { pingPongNs: [pingPongNs, pingPongNs], tram, copyOnly: { loaded: copy, alone: copy } };
}

const RUNS = [
  runOf(100_000, 4000, 400_000, 110),
  runOf(300_000, 2000, 500_000, 112),
  runOf(200_000, 3000, 250_000, 114),
];

test('figures are medians of the runs, ratios are medians of the ratios of the runs', () => {
  const { messagesPerSecond, latencyNsP50, perCopyOnly } = combine(CONFIGURATION, RUNS);
  expect(messagesPerSecond).toEqual({ median: 2e5, least: 1e5, greatest: 3e5, rounds: 3 });
  expect(latencyNsP50.median).toBe(3000);
  expect(perCopyOnly.messagesPerSecond).toMatchObject({ median: 0.6, least: 0.25, greatest: 0.8 });
  expect(perCopyOnly.latencyNsP50).toMatchObject({ median: 3, least: 2, greatest: 4 });
});

test('core time is divided by the copies of a message', () => {
  const cores = 2;
  const runs = RUNS.map((run) => ({
    ...run,
    tram: { ...run.tram, loaded: { ...run.tram.loaded, coresUsed: cores } },
  }));
  const one = { ...CONFIGURATION, groups: 1, destinations: 1 };
  // Three inboxes, three logs and one reply.
  const { coreNsPerCopy } = combine(one, runs);
  expect(coreNsPerCopy.median).toBeCloseTo((cores * 1e9) / (2e5 * 7));
});

test('the table has medians and spreads, and tells how far the cores are apart', () => {
  const text = formatOrder({
    options: { configurations: [CONFIGURATION], runs: 3, seconds: 1 },
    machine: { cores: 2, model: 'a processor', node: 'v20', loadAverage: 0 },
    rings: [],
    configurations: [combine(CONFIGURATION, RUNS)],
  }).replaceAll('\u00a0', ' ');
  expect(text).toContain('threads, 8 groups of 3, breadth tree, 64 B to 8, 1 × 256 in flight');
  expect(text).toContain('cores: near (ping-pong before → after: 110 ns → 110 ns; 112 ns');
  const rows = text.split('\n').map((line) => line.trim().split(/ {2,}/));
  const throughput = ['200 k/s (100 k/s to 300 k/s)', '400 k/s (250 k/s to 500 k/s)'];
  expect(rows).toContainEqual(['throughput', ...throughput, '0.6 (0.25 to 0.8)']);
});

test('cores are near, far, or busy, and may change', () => {
  expect([110, 340, 2e5].map(distanceOf)).toEqual(['near', 'far', 'busy']);
  expect(describeCores([RUNS[0], runOf(1, 1, 1, 340)])).toMatch(
    /^it changed: near, near, far, far \(/,
  );
});
