/** Which points a run measures, and which it does not measure again; on systems that answer with made-up figures. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Plan } from '../../../src/bench/paper/experiment.js';
import { EXPERIMENTS } from '../../../src/bench/paper/experiments/index.js';
import { FULL, QUICK } from '../../../src/bench/paper/profiles.js';
import { Results } from '../../../src/bench/paper/results.js';
import { plannedSeconds, run } from '../../../src/bench/paper/run.js';
import { fakeSystems, journal, named, planOf, SETTING, TINY } from './fakes.js';

let directory: string;
let path: string;

beforeEach(({ onTestFinished }) => {
  directory = mkdtempSync(join(tmpdir(), 'tram-paper-'));
  path = join(directory, 'results.jsonl');
  onTestFinished(() => rmSync(directory, { recursive: true }));
});

describe('a run', () => {
  const experiments = named('random', 'payload');

  async function runWith(log = journal(), fail?: Parameters<typeof fakeSystems>[2]) {
    const results = new Results(path);
    const plan = planOf({ systems: fakeSystems(log, undefined, fail) });
    const state = await run({ experiments, plan, results, setting: SETTING, lookMs: 1 });
    return { state, log };
  }

  test('measures all systems in a round before the next round', async () => {
    const { log, state } = await runWith();
    expect(log.starts.slice(0, 8)).toEqual([
      ...['TRAM base', 'TRAM breadth', 'TRAM depth', 'RamCast'],
      // The second round starts with another system.
      ...['TRAM breadth', 'TRAM depth', 'RamCast', 'TRAM base'],
    ]);
    expect(log.closed).toBe(log.starts.length);
    expect(state.measured).toBe(state.points);
    expect(state.secondsLeft).toBeCloseTo(0);
  });

  test('measures nothing twice', async () => {
    const first = await runWith();
    const second = await runWith();
    expect(second.state).toMatchObject({ points: 0, measured: 0 });
    expect(second.log.starts).toEqual([]);
    expect(first.state.measured).toBe(readFileSync(path, 'utf8').trim().split('\n').length);
  });

  test('measures only the missing points', async () => {
    const { state } = await runWith();
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const half = lines.slice(0, lines.length / 2);
    // The run was killed while it wrote a line.
    writeFileSync(path, `${half.join('\n')}\n${lines.at(-1)!.slice(0, 40)}`);
    const second = await runWith();
    expect(second.state.measured).toBe(state.measured - half.length);
    const keys = readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line)] : []))
      .map(({ experiment, measure, series, x, round }) =>
        [experiment, measure, series, x, round].join(),
      );
    expect(new Set(keys).size).toBe(state.measured);
  });

  test('measures again after a change of code, machine or conditions', async () => {
    const { state } = await runWith();
    const plan = planOf();
    for (const change of [{ code: 'other' }, { processor: 'other' }, { profile: 'other' }]) {
      const results = new Results(path);
      const setting = { ...SETTING, ...change };
      const again = await run({ experiments, plan, results, setting, lookMs: 1 });
      expect(again.measured).toBe(state.measured);
    }
    const longer = { ...TINY, timing: { ...TINY.timing, seconds: 0.06 } };
    const results = new Results(path);
    const options = { experiments, results, setting: SETTING, lookMs: 1 };
    expect((await run({ ...options, plan: planOf({ profile: longer }) })).measured).toBe(
      state.measured,
    );
    // A commit that does not change the measured code does not matter.
    const setting = { ...SETTING, commit: 'another' };
    expect((await run({ ...options, plan, setting })).measured).toBe(0);
  });

  test('continues with the next system if one fails, and retries it in the next run', async () => {
    const { state } = await runWith(journal(), (system) => system === 'RamCast');
    expect(state.failures.map(({ system }) => system)).toEqual(
      Array.from({ length: 2 + 2 * TINY.payloads.length }, () => 'RamCast'),
    );
    expect(state.measured).toBeLessThan(state.points);
    const again = await runWith();
    expect(again.state.measured).toBe(state.points - state.measured);
    expect(new Set(again.log.starts)).toEqual(new Set(['RamCast']));
  });

  test('ends after the current point if it is interrupted', async () => {
    const controller = new AbortController();
    const log = journal();
    const systems = fakeSystems(log, undefined, () => {
      if (log.loads.length === 5) controller.abort();
      return false;
    });
    const results = new Results(path);
    const { signal } = controller;
    const state = await run({
      experiments,
      plan: planOf({ systems }),
      results,
      setting: SETTING,
      lookMs: 1,
      signal,
    });
    expect(state.measured).toBeGreaterThan(0);
    expect(state.measured).toBeLessThan(state.points);
    expect(log.closed).toBe(log.starts.length);
  });

  test('leaves out systems that this build does not have', async () => {
    const log = journal();
    const systems = fakeSystems(log, ['TRAM base']);
    const results = new Results(path);
    await run({
      experiments: named('random'),
      plan: planOf({ systems }),
      results,
      setting: SETTING,
      lookMs: 1,
    });
    expect(new Set(log.starts)).toEqual(new Set(['TRAM base']));
  });

  test('takes no more time than documented, with all systems', () => {
    const systems = fakeSystems(journal());
    const secondsOf = (profile: Plan['profile']): number =>
      plannedSeconds({
        experiments: EXPERIMENTS,
        plan: planOf({ profile, systems }),
        results: new Results(path),
        setting: SETTING,
        lookMs: 1,
      });
    expect(secondsOf(QUICK)).toBeLessThan(355);
    expect(secondsOf(FULL)).toBeLessThan(3500);
  });
});
