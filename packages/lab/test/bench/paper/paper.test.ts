/** `tram-lab bench paper`: what is measured and what is not measured again, where saturation is, what the report has. */
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { setOf } from '../../../src/bench/load/destinations.js';
import { copiesOf } from '../../../src/bench/paper/copies.js';
import type { Plan } from '../../../src/bench/paper/experiment.js';
import { EXPERIMENTS } from '../../../src/bench/paper/experiments/index.js';
import { FULL, QUICK } from '../../../src/bench/paper/profiles.js';
import { makeReport, writeFigures, writeReport } from '../../../src/bench/paper/report.js';
import { Results } from '../../../src/bench/paper/results.js';
import { plannedSeconds, run } from '../../../src/bench/paper/run.js';
import { climb } from '../../../src/bench/paper/saturation.js';
import { currentSetting } from '../../../src/bench/paper/setting.js';
import { spreadOf } from '../../../src/bench/paper/summary.js';
import { SYSTEMS } from '../../../src/bench/paper/systems.js';
import { fakeSystems, fillIn, journal, SETTING, TINY } from './fakes.js';

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tram-paper-'));
  path = join(directory, 'results.jsonl');
});

afterEach(() => rmSync(directory, { recursive: true }));

const named = (...names: string[]) => EXPERIMENTS.filter(({ name }) => names.includes(name));

function planOf(more: Partial<Plan> = {}): Plan {
  return { profile: TINY, memory: 'threads', systems: fakeSystems(journal()), ...more };
}

/** Rungs of 1, 2, 4, … messages under way. */
const LADDER = Array.from({ length: 10 }, (_, i) => ({ clients: 1, outstanding: 2 ** i }));

describe('saturation', () => {
  const climbOn = (patience: number, rateOf: (outstanding: number) => number) =>
    climb(
      LADDER,
      patience,
      async ({ outstanding }) => rateOf(outstanding),
      (rate) => rate,
    );

  test('is found where throughput stops growing', async () => {
    const found = await climbOn(1, (outstanding) => Math.min(outstanding, 16) * 1000);
    expect(found).toMatchObject({ rung: { outstanding: 16 }, outcome: 16_000, isSaturated: true });
    expect(found.tried).toHaveLength(6);
  });

  test('growth of less than five per cent is none, but the best is told', async () => {
    const found = await climbOn(1, (outstanding) => 1000 + outstanding);
    expect(found.tried).toHaveLength(2);
    expect(found).toMatchObject({ outcome: 1002, rung: { outstanding: 2 } });
  });

  test('patience gets over one bad measurement', async () => {
    const dip = (outstanding: number) => (outstanding === 4 ? 1 : Math.min(outstanding, 64));
    expect((await climbOn(1, dip)).outcome).toBe(2);
    expect((await climbOn(2, dip)).outcome).toBe(64);
  });

  test('a ladder that is too short is told', async () => {
    const found = await climbOn(1, (outstanding) => outstanding);
    expect(found).toMatchObject({ isSaturated: false, rung: { outstanding: 512 } });
  });

  test('overload does not count', async () => {
    const found = await climbOn(2, (outstanding) => 1000 / Math.abs(outstanding - 8.5));
    expect(found).toMatchObject({ rung: { outstanding: 8 }, isSaturated: true });
  });
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
      // The second round begins with another one.
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

  test('measures the rest if half of the points are there', async () => {
    const { state } = await runWith();
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const half = lines.slice(0, lines.length / 2);
    // Killed in the middle of a line.
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

  test('measures again what other code, another machine or other conditions have measured', async () => {
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
    // A commit that changes nothing of the code that is measured does not matter.
    const setting = { ...SETTING, commit: 'another' };
    expect((await run({ ...options, plan, setting })).measured).toBe(0);
  });

  test('goes on with the next system when one fails, and tries again the next time', async () => {
    const { state } = await runWith(journal(), (system) => system === 'RamCast');
    expect(state.failures.map(({ system }) => system)).toEqual(
      Array.from({ length: 2 + 2 * TINY.payloads.length }, () => 'RamCast'),
    );
    expect(state.measured).toBeLessThan(state.points);
    const again = await runWith();
    expect(again.state.measured).toBe(state.points - state.measured);
    expect(new Set(again.log.starts)).toEqual(new Set(['RamCast']));
  });

  test('ends after the point at hand when it is interrupted', async () => {
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

  test('does without systems that are not there', async () => {
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

  test('takes no more time than promised, with all systems', () => {
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

describe('the report', () => {
  const FIGURES = [
    ...['write-latency', 'random', 'adjacent', 'payload', 'replication', 'passing', 'failover'],
    ...['scaling-groups', 'scaling-load', 'machines'],
  ];

  function reportOf(systems: Plan['systems']) {
    const results = new Results(path);
    const plan = planOf({ profile: QUICK, systems });
    fillIn(results, EXPERIMENTS, plan, { ...SETTING, profile: 'quick' });
    return makeReport({ experiments: EXPERIMENTS, results, systems });
  }

  test('has every figure, and stands alone', () => {
    const report = reportOf(fakeSystems(journal()));
    expect(report.figures.map(({ name }) => name)).toEqual(FIGURES);
    for (const { svg } of report.figures) expect(report.html).toContain(svg);
    const own = report.html.replaceAll('http://www.w3.org/2000/svg', '');
    expect(own).not.toMatch(/https?:|<script|<link|<img|@import|url\(/);
    expect(own).not.toMatch(/NaN|undefined|Infinity|\[object/);
    expect(own).not.toContain('was not measured');
  });

  test('has machine, versions and conditions', () => {
    const { html, figures } = reportOf(fakeSystems(journal()));
    for (const words of [
      'A processor',
      '2 cores',
      'Node 20.0.0',
      'TRAM 0.0.0 (abcdef0)',
      'quick: ',
    ]) {
      expect(html).toContain(words);
    }
    for (const { svg } of figures) {
      expect(svg).toContain('A processor');
      expect(svg).toContain('2001-09-09');
    }
  });

  test('has what the paper found beside what was found, from the results', () => {
    const { html } = reportOf(fakeSystems(journal()));
    expect(html).toContain('Breadth takes');
    expect(html).toContain('as in the paper');
    expect(html).toContain('differs');
    // Made-up breadth takes 1.9 µs and 2 µs more for each further destination.
    const [, ratio] = /Breadth takes ([\d.]+)× as long for eight destinations as for two/.exec(
      html,
    )!;
    expect(Number(ratio)).toBeGreaterThan(3.2);
    expect(Number(ratio)).toBeLessThan(5);
  });

  test('says what is missing, and makes nothing up', () => {
    const { html, figures } = reportOf(fakeSystems(journal(), ['TRAM base', 'TRAM simple']));
    expect(html).toContain('does not have it: TRAM breadth, TRAM depth and RamCast');
    expect(html).toContain('Something for it was not measured.');
    expect(figures.find(({ name }) => name === 'random')!.svg).toContain(
      'RamCast was not measured',
    );
    expect(figures.map(({ svg }) => svg).join('')).not.toContain('data-name="RamCast"');
  });

  test('says what the machine lacks, and leaves that out', async () => {
    const [machines] = named('machines');
    const lacking = [{ ...machines, lacks: () => 'There is no network.' }];
    const results = new Results(path);
    const log = journal();
    const plan = planOf({ systems: fakeSystems(log) });
    await run({ experiments: lacking, plan, results, setting: SETTING, lookMs: 1 });
    expect(log.starts).toEqual([]);
    const { html } = makeReport({ experiments: lacking, results, systems: SYSTEMS });
    expect(html).toContain('Not measured here: There is no network.');
  });

  test('warns where other programs kept the machine busy', () => {
    const results = new Results(path);
    fillIn(results, named('random'), planOf(), SETTING, 1.7);
    fillIn(results, named('adjacent'), planOf(), SETTING);
    const { html } = makeReport({ experiments: EXPERIMENTS, results, systems: {} });
    expect(html.match(/other programs kept 1\.7 of 2 cores busy/g)).toHaveLength(1);
  });

  test('can be made of nothing', () => {
    const results = new Results(path);
    const report = makeReport({ experiments: EXPERIMENTS, results, systems: SYSTEMS });
    expect(report.figures.map(({ name }) => name)).toEqual(FIGURES);
    expect(report.html).toContain('Nothing was measured yet.');
  });

  test('shows the latest of each experiment, and does not mix', () => {
    const results = new Results(path);
    const plan = planOf();
    fillIn(results, named('random', 'adjacent'), plan, SETTING);
    fillIn(results, named('random'), plan, { ...SETTING, code: 'newer', version: '9.9.9' });
    expect(new Set(results.latest('random').map(({ setting }) => setting.code))).toEqual(
      new Set(['newer']),
    );
    const { figures } = makeReport({ experiments: EXPERIMENTS, results, systems: {} });
    const svgOf = (wanted: string): string => figures.find(({ name }) => name === wanted)!.svg;
    expect(svgOf('random')).toContain('TRAM 9.9.9');
    expect(svgOf('adjacent')).toContain('TRAM 0.0.0');
  });

  test('is written as a page and a file for each figure', () => {
    const report = reportOf(SYSTEMS);
    writeReport(report, directory);
    writeFigures(report, join(directory, 'figures'));
    const read = (name: string): string => readFileSync(join(directory, name), 'utf8');
    expect(read('index.html')).toBe(report.html);
    expect(read('random.svg')).toBe(read('figures/random.svg'));
    expect(readdirSync(join(directory, 'figures')).sort()).toEqual(
      FIGURES.map((name) => `${name}.svg`).sort(),
    );
  });

  test('leaves figures alone of which nothing was measured', () => {
    const results = new Results(path);
    fillIn(results, named('random'), planOf(), SETTING);
    writeFigures(makeReport({ experiments: EXPERIMENTS, results, systems: {} }), directory);
    expect(readdirSync(directory).sort()).toEqual(['random.svg', 'results.jsonl']);
  });
});

test('every experiment of the paper is there, and its systems are known', () => {
  const names = EXPERIMENTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const help = readFileSync(new URL('../../../src/cli/bench-paper.ts', import.meta.url), 'utf8');
  const document = readFileSync(new URL('../../../../../docs/bench.md', import.meta.url), 'utf8');
  for (const name of names) {
    expect(help).toContain(`'${name}'`);
    expect(document).toContain(`| \`${name}\` |`);
  }
});

test('the least number of copies', () => {
  const overlay = new Overlay([-1, 0, 1, 1]);
  // Entered and logged at three replicas, one reply.
  expect(copiesOf(overlay, 3, setOf([3]))).toBe(3 + 3 + 1);
  // Enters at group 1, which is no destination, and is forwarded twice.
  expect(copiesOf(overlay, 3, setOf([2, 3]))).toBe(3 + 9 + 6 + 2);
  expect(copiesOf(overlay, 1, setOf([0, 1, 2, 3]))).toBe(1 + 4 + 3 + 4);
});

test('median and spread', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, least: 1, greatest: 3, rounds: 3 });
  expect(spreadOf([4, 1])).toMatchObject({ median: 2.5 });
  expect(spreadOf([])).toBeUndefined();
});

test('the setting tells code apart and names no place', () => {
  const setting = currentSetting('quick', 'threads');
  expect(setting.code).toMatch(/^[0-9a-f]{12}$/);
  expect(JSON.stringify(setting)).not.toContain(process.cwd());
});

test('lines that are no results are skipped', () => {
  appendFileSync(path, 'nonsense\n\n');
  expect(new Results(path).latest('random')).toEqual([]);
});
