/** `tram-lab sim` as a user runs it, from the built package. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TRANSITIONS } from 'tram-multicast/internal/protocol/edges.js';
import { afterAll, describe, expect, test } from 'vitest';
import { parseLink } from '../../src/sim/link.js';
import { HOLES } from '../../src/sim/mutations/holes.js';
import type { BySeed } from '../../src/sim/mutations/mutation.js';
import { FAULTS } from '../../src/sim/plan.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const LIBRARY_MAIN = fileURLToPath(new URL('../../../tram/dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tram-sim-'));
afterAll(() => rmSync(folder, { recursive: true }));

const tramLab = (...args: string[]) => run(MAIN, ...args);
const tram = (...args: string[]) => run(LIBRARY_MAIN, ...args);

function run(main: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { status, stdout, stderr };
}

describe('2 for an option that is wrong, with its name, its value and what is expected', () => {
  test.each([
    [['--seed', 'x'], "'--seed <n>' argument 'x' is invalid. Expected an integer from 0 to"],
    [['--clients', '1.5'], "'--clients <n>' argument '1.5' is invalid. Expected an integer"],
    [['--groups', '65'], 'Expected an integer from 1 to 64'],
    [['--seeds', '0'], 'Expected an integer from 1 to'],
    [['--replicas', '2'], 'Expected one of 1, 3, 5, 7'],
    [['--faults', 'crash,boom'], `Unknown fault: boom. Expected "none" or some of crash, restart`],
    [['--mutation', 'H99'], 'Unknown mutation: H99. Expected some of H1, H2'],
    [['--mutation', 'H13,H28'], "H13 and H28 can't be applied together"],
    [['--tree', '0,0'], 'a tree has exactly one root (parent -1); found none'],
    [['--tree', 'star'], 'expected base, breadth, depth, simple or parents such as -1,0,0'],
    [['--tree', '-1,0,0', '--groups', '4'], 'contradicts --tree -1,0,0, which has 3 groups'],
    [['--seed', '1', '--seeds', '2'], "'--seed <n>' cannot be used with option '--seeds <n>'"],
    [['--trace', 'trace.jsonl'], 'choose it with --seed'],
    [['--link'], 'choose it with --seed'],
    [['--link', '--seed', '1', '--mutation', 'feed-end-first'], 'one of the holes H1 to H31'],
    [['--throughput', '--groups', '3'], "cannot be used with option '--groups <n>'"],
  ])('%j', (args, expected) => {
    const { status, stdout, stderr } = tramLab('sim', ...args);
    expect(stderr).toContain(expected);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });
});

test('a link has all that determines the run', () => {
  const { status, stdout } = tramLab('sim', '--seed', '25', '--mutation', 'H25', '--link');
  const { pathname, hash } = new URL(stdout.trim());
  expect(status).toBe(0);
  expect(pathname).toMatch(/packages\/page\/dist\/sim\/index\.html$/);
  const { options } = HOLES['H25'].caughtBy as BySeed;
  const run = { seed: 25, mutation: 'H25', options, deeds: [], events: 0 };
  expect(parseLink(hash.slice(1))).toEqual(run);
});

test('the same seed gives the same trace, and the judge agrees with it', () => {
  const first = tramLab('sim', '--seed', '7', '--trace', 'first.jsonl');
  const second = tramLab('sim', '--seed', '7', '--trace', 'second.jsonl');
  expect(first.stderr).toBe('');
  expect(first.status).toBe(0);
  expect(first.stdout).toContain('verdict: holds');
  expect(second.stdout).toBe(first.stdout);
  const trace = readFileSync(join(folder, 'first.jsonl'), 'utf8');
  expect(readFileSync(join(folder, 'second.jsonl'), 'utf8')).toBe(trace);
  expect(trace).toMatch(/"event":"end","quiescent":true\}\n$/);
  expect(tram('check', 'first.jsonl')).toMatchObject({ status: 0, stderr: '' });
});

test('seeds add up to the same sums, however many threads run them', () => {
  const sums = ['1', '3'].map((jobs) => {
    const result = tramLab('sim', '--seeds', '6', '--from', '40', '--jobs', jobs, '--json');
    expect(result.status).toBe(0);
    const { wallMs, seedsPerSecond, ...rest } = JSON.parse(result.stdout);
    expect(wallMs).toBeGreaterThan(0);
    expect(seedsPerSecond).toBeGreaterThan(0);
    return rest;
  });
  expect(sums[1]).toEqual(sums[0]);
  expect(sums[0]).toMatchObject({ outcome: 'holds', seeds: 6, failed: 0, failures: [] });
  expect(Object.keys(sums[0].faultCounts)).toEqual([...FAULTS]);
  expect(Object.keys(sums[0].transitionCounts)).toEqual([...TRANSITIONS]);
});

test('options fix what would be drawn', () => {
  const args = ['--tree', '-1,0,0', '--replicas', '3', '--messages', '20', '--faults', 'none'];
  const { status, stdout } = tramLab('sim', '--seed', '3', ...args);
  expect(status).toBe(0);
  expect(stdout).toContain('g0\n├─ g1\n└─ g2\n');
  expect(stdout).toContain('3 groups of 3 replicas');
  expect(stdout).toContain('faults: none');
});

test('3 on a failure, with the command that replays it', () => {
  const many = tramLab('sim', '--seeds', '12', '--mutation', 'H1', '--replicas', '3', '--json');
  expect(many.status).toBe(3);
  const { outcome, failed, failures } = JSON.parse(many.stdout);
  expect(outcome).toBe('failed');
  expect(failed).toBeGreaterThanOrEqual(failures.length);
  const { seed, kind, message, replay } = failures[0];
  expect(replay).toBe(
    `npx tram-lab sim --seed ${seed} --replicas 3 --mutation H1 --trace failure.jsonl`,
  );

  const again = tramLab(...replay.split(' ').slice(2));
  expect(again.status).toBe(3);
  expect(again.stdout).toContain(`seed ${seed} fails: ${kind}\n  ${message.split('\n')[0]}\n`);
  expect(again.stdout).toContain(`replay: ${replay}\n`);
  expect(readFileSync(join(folder, 'failure.jsonl'), 'utf8')).toMatch(/"event":"end",.*\}\n$/);
});

test('1 if the trace can not be written, after the report', () => {
  const { status, stdout, stderr } = tramLab('sim', '--seed', '7', '--trace', 'nowhere/t.jsonl');
  expect(status).toBe(1);
  expect(stdout).toContain('verdict: holds');
  expect(stderr).toContain("can't write nowhere/t.jsonl");
});

test('help teaches', () => {
  const { status, stdout } = tramLab('sim', '--help');
  expect(status).toBe(0);
  for (const part of [...FAULTS, 'H1 ', 'Examples:', 'Exit codes:']) expect(stdout).toContain(part);
});
