/** A run with real systems: it measures a few points, reports them, and measures none twice. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type * as experimentsModule from '../../../src/bench/paper/experiments/index.js';
import type * as reportModule from '../../../src/bench/paper/report.js';
import type * as resultsModule from '../../../src/bench/paper/results.js';
import type * as runModule from '../../../src/bench/paper/run.js';
import type * as settingModule from '../../../src/bench/paper/setting.js';
import type * as systemsModule from '../../../src/bench/paper/systems.js';
import { TINY } from './fakes.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/paper/${name}.js`, import.meta.url).href;
const { EXPERIMENTS }: typeof experimentsModule = await import(built('experiments/index'));
const { makeReport }: typeof reportModule = await import(built('report'));
const { Results }: typeof resultsModule = await import(built('results'));
const { run }: typeof runModule = await import(built('run'));
const { currentSetting }: typeof settingModule = await import(built('setting'));
const { SYSTEMS }: typeof systemsModule = await import(built('systems'));

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tram-paper-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

test.each(['threads', 'processes'] as const)('measures real clusters on %s', async (memory) => {
  const path = join(directory, 'results.jsonl');
  const systems = { 'TRAM base': SYSTEMS['TRAM base']! };
  const profile = { ...TINY, rounds: 1, destinations: [1, 8], clients: [1, 4], groups: [4] };
  const names = memory === 'threads' ? ['write-latency', 'random', 'scaling'] : ['random'];
  const experiments = EXPERIMENTS.filter(({ name }) => names.includes(name));
  const setting = currentSetting(profile.name, memory);
  const go = () =>
    run({
      experiments,
      plan: { profile, memory, systems },
      results: new Results(path),
      setting,
      lookMs: 1,
    });
  const first = await go();
  expect(first.failures).toEqual([]);
  expect(first.measured).toBe(first.points);
  const results = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(results).toHaveLength(first.points);
  for (const { value } of results) expect(value).toBeGreaterThan(0);
  expect((await go()).points).toBe(0);
  const report = makeReport({ experiments: EXPERIMENTS, results: new Results(path), systems });
  expect(report.figures.find(({ name }) => name === 'random')!.svg).toContain('TRAM base');
});
