/** The report of made-up results: its figures, findings and notes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Plan } from '../../../src/bench/paper/experiment.js';
import { EXPERIMENTS } from '../../../src/bench/paper/experiments/index.js';
import { QUICK } from '../../../src/bench/paper/profiles.js';
import { makeReport, writeFigures, writeReport } from '../../../src/bench/paper/report.js';
import { Results } from '../../../src/bench/paper/results.js';
import { run } from '../../../src/bench/paper/run.js';
import { SYSTEMS } from '../../../src/bench/paper/systems.js';
import { fakeSystems, fillIn, journal, named, planOf, SETTING } from './fakes.js';

let directory: string;
let path: string;

beforeEach(({ onTestFinished }) => {
  directory = mkdtempSync(join(tmpdir(), 'tram-paper-'));
  path = join(directory, 'results.jsonl');
  onTestFinished(() => rmSync(directory, { recursive: true }));
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

  test('has every figure, and is self-contained', () => {
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

  test('compares the findings of the paper with the results', () => {
    const { html } = reportOf(fakeSystems(journal()));
    expect(html).toContain('Breadth takes');
    expect(html).toContain('as in the paper');
    expect(html).toContain('differs');
    // The made-up latency of breadth is 1.9 µs, plus 2 µs for each further destination.
    const [, ratio] = /Breadth takes ([\d.]+)× as long for eight destinations as for two/.exec(
      html,
    )!;
    expect(Number(ratio)).toBeGreaterThan(3.2);
    expect(Number(ratio)).toBeLessThan(5);
  });

  test('names missing systems, and has no figures for them', () => {
    const { html, figures } = reportOf(fakeSystems(journal(), ['TRAM base', 'TRAM simple']));
    expect(html).toContain('does not include it: TRAM breadth, TRAM depth and RamCast');
    expect(html).toContain('The results for it are missing.');
    expect(figures.find(({ name }) => name === 'random')!.svg).toContain(
      'RamCast was not measured',
    );
    expect(figures.map(({ svg }) => svg).join('')).not.toContain('data-name="RamCast"');
  });

  test('says what the machine lacks, and does not measure it', async () => {
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

  test('can be made without results', () => {
    const results = new Results(path);
    const report = makeReport({ experiments: EXPERIMENTS, results, systems: SYSTEMS });
    expect(report.figures.map(({ name }) => name)).toEqual(FIGURES);
    expect(report.html).toContain('Nothing was measured yet.');
  });

  test('shows the latest results of each experiment, and does not mix settings', () => {
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

  test('does not overwrite figures without results', () => {
    const results = new Results(path);
    fillIn(results, named('random'), planOf(), SETTING);
    writeFigures(makeReport({ experiments: EXPERIMENTS, results, systems: {} }), directory);
    expect(readdirSync(directory).sort()).toEqual(['random.svg', 'results.jsonl']);
  });
});
