/** `tram check` as a user runs it, from the built package. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { TraceEvent } from '../../src/check/events.js';
import { deliver, deliverAll, end, groups, multicast } from '../check/events.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tram-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

function tram(args: string[], input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    input,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { status, stdout, stderr };
}

function trace(...events: (TraceEvent | TraceEvent[])[]): string {
  const file = join(folder, 'trace.jsonl');
  const lines = events.flat().map((event) => `${JSON.stringify(event)}\n`);
  writeFileSync(file, lines.join(''));
  return file;
}

const begun = [groups(3), multicast('a', [0], 'c1'), multicast('b', [0], 'c2')];

test('0 when everything holds', () => {
  const result = tram(['check', trace(begun, deliverAll(0, 3, 'a', 'b'), end())]);
  expect(result).toEqual({
    status: 0,
    stderr: '',
    stdout: `validity               holds
uniform-agreement      holds
uniform-integrity      holds
uniform-prefix-order   holds
uniform-acyclic-order  holds
partial-genuineness    holds
fifo-order             holds
real-time-order        not-promised
durability             not-promised

2 messages, 6 deliveries, 1 group, 3 replicas, 0 crashes, 0 restarts, 0 restores, 0 client crashes
verdict: holds
`,
  });
});

test('0 when something is unknown, and says so', () => {
  const { status, stdout } = tram(['check', trace(begun, deliver('0/0', 'a'))]);
  expect(status).toBe(0);
  expect(stdout).toContain(
    'validity               unknown: the history does not end with "quiescent": true',
  );
  expect(stdout).toMatch(/verdict: unknown\n$/);
});

test('3 when a property is violated, with the witness', () => {
  const file = trace(begun, deliver('0/0', 'a'), deliver('0/1', 'b'), end(false));
  const table = tram(['check', file]);
  expect(table.status).toBe(3);
  expect(table.stdout).toContain(
    'uniform-prefix-order   violated\n  delivery 1 of group 0 is a at 0/0, but b at 0/1\n',
  );
  const json = tram(['check', file, '--json']);
  expect(json.status).toBe(3);
  expect(JSON.parse(json.stdout)).toMatchObject({
    outcome: 'violated',
    counts: { deliveries: 2 },
  });
});

test('2 for a malformed file, with the line', () => {
  const file = join(folder, 'malformed.jsonl');
  writeFileSync(
    file,
    `${JSON.stringify(groups(1))}\n{"event":"crash","replica":"${'x'.repeat(500)}`,
  );
  const { status, stdout, stderr } = tram(['check', file]);
  expect(status).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toContain('malformed.jsonl, line 2: this is not JSON\n  {"event":"crash"');
  expect(stderr.length).toBeLessThan(400);
});

test('2 for a missing file, a folder, and wrong usage', () => {
  expect(tram(['check', join(folder, 'nowhere')])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("can't read"),
  });
  const { stderr } = tram(['check', join(folder, 'nowhere'), '--json']);
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: 'TRAM_INVALID_ARGUMENT', message: expect.stringContaining("can't read") },
  });
  expect(tram(['check', folder]).status).toBe(2);
  expect(tram(['check']).status).toBe(2);
  expect(tram(['check', 'a', '--jsom']).status).toBe(2);
  expect(tram(['chekc']).status).toBe(2);
  expect(tram([]).status).toBe(2);
});

test('"-" reads stdin', () => {
  const events = [...begun, ...deliverAll(0, 3, 'a', 'b'), end()];
  const input = events.map((event) => JSON.stringify(event)).join('\n');
  expect(tram(['check', '-', '--json'], input).status).toBe(0);
  expect(tram(['check', '-'], 'nonsense').stderr).toContain('stdin, line 1');
});

test('help teaches', () => {
  const { status, stdout } = tram(['--help']);
  expect(status).toBe(0);
  for (const part of ['check', 'Examples:', 'Exit codes:']) expect(stdout).toContain(part);
  expect(tram(['check', '--help']).stdout).toContain('docs/check.md');
});
