/** `tram-lab bench store` with real servers. Where Redis is not installed, the test is skipped; a build machine must have it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectDirectory } from '../../../../tram/test/built.js';
import { redisBenchmark, reportIn } from '../../../src/bench/store/redis-benchmark.js';
import type { StoreResult } from '../../../src/bench/store/store.js';
import { redisServer } from '../../../src/bench/store/systems.js';

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');
const SHORTEST = ['--seconds', '0.05', '--rounds', '1', '--pipelines', '16'];

test('three systems, each with its figures', async (context) => {
  const isMissing = redisServer() === undefined || redisBenchmark() === undefined;
  if (isMissing && process.env['CI']) throw new Error('Redis is not installed');
  context.skip(isMissing, 'Redis is not installed: apt-get install -y redis-server redis-tools');
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[MAIN, 'bench', 'store', '--only', 'set', '--json', ...SHORTEST],
  ]);
  const { results } = JSON.parse(stdout) as StoreResult;
  const systems = results.map(({ load, sender, figures }) => [load, sender, Object.keys(figures)]);
  expect(systems).toEqual([
    ['set', 'own', ['redis', 'replicated', 'store']],
    ['set', 'redis-benchmark', ['redis', 'store']],
  ]);
  for (const { figures } of results) {
    expect(figures.store?.storeBy.median).toBe(1);
    for (const one of Object.values(figures)) {
      expect(one.requestsPerSecond.median).toBeGreaterThan(0);
      expect(one.latencyNsP99.median).toBeGreaterThanOrEqual(one.latencyNsP50.median);
    }
  }
});

test('what redis-benchmark prints', () => {
  const csv =
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"\n' +
    '"SET","99009.90","0.305","0.104","0.303","0.383","0.567","0.911"\n';
  expect(reportIn(csv)).toEqual({
    requestsPerSecond: 99009.9,
    latencyNsP50: 303_000,
    latencyNsP99: 567_000,
  });
  expect(() => reportIn('Could not connect')).toThrow('rps');
});
