/** `tram-lab demo`, which is what `npm start` runs, as users see it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectDirectory } from '../../../tram/test/built.js';

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');
/** Where the demo keeps the history that it judges. */
const temporary = mkdtempSync(join(tmpdir(), 'tram-demo-test-'));

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param interruptAt  what it has printed when it is interrupted */
async function demo(args: readonly string[] = [], interruptAt?: string): Promise<Run> {
  const env = { ...process.env, NO_COLOR: '1', TMPDIR: temporary };
  const child = spawn(process.execPath, [MAIN, 'demo', ...args], { env });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (printed: string) => {
    const waits = interruptAt !== undefined && !stdout.includes(interruptAt);
    stdout += printed;
    if (waits && stdout.includes(interruptAt)) child.kill('SIGINT');
  });
  const [stderr, [status]] = await Promise.all([
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { status, stdout, stderr };
}

let told: Run;
let json: Run;
let interrupted: Run;
let onPage: Run;

beforeAll(async () => {
  [told, json, interrupted, onPage] = await Promise.all([
    demo(),
    demo(['--json']),
    demo([], 'clients begin'),
    demo(['--page', '--port', '0'], 'Ctrl-C ends it'),
  ]);
}, 60_000);

afterAll(() => rmSync(temporary, { recursive: true, force: true }));

test('it explains, crashes leaders, and everything holds', () => {
  const { status, stdout, stderr } = told;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/a message for g4 and g7 enters here/);
  expect(stdout).toMatch(/s {2}host \d crashes: it led g/);
  expect(stdout).toMatch(/g\d\/\d takes over, \S+ ms after the crash/);
  expect(stdout).toMatch(/s {2}host \d starts again/);
  expect(stdout).toMatch(/clients are done: every message is answered/);
  expect(stdout).toMatch(/\nverdict: holds\n/);
  expect(stdout).toMatch(/Where to go next:/);
  // Neither colours nor a cursor that moves: this is no terminal.
  expect(stdout).not.toContain('\u001b');
});

test('its text fits a terminal', () => {
  const isProse = (line: string): boolean => !/^ *\d+\.\d s|^[\d,]+ messages/.test(line);
  const prose = told.stdout.split('\n').filter(isProse);
  expect(prose.filter(({ length }) => length > 80)).toEqual([]);
});

test('with --json it prints figures', () => {
  const { status, stdout, stderr } = json;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const figures = JSON.parse(stdout) as Record<string, unknown>;
  expect(figures).toMatchObject({
    latencyMs: { p50: expect.any(Number), p99: expect.any(Number), max: expect.any(Number) },
    crash: { host: expect.any(Number), feltMs: expect.any(Number) },
    verdict: { outcome: 'holds', counts: { messages: figures['messages'], groups: 8 } },
  });
  expect((figures['crash'] as { takeovers: unknown[] }).takeovers.length).toBeGreaterThan(0);
  expect(figures['messages']).toBeGreaterThan(100);
});

test('interrupted, it ends at once', () => {
  expect(interrupted.status).toBe(130);
  expect(interrupted.stderr).toBe('');
  expect(interrupted.stdout).not.toContain('verdict');
});

test('it leaves nothing behind', () => {
  expect(readdirSync(temporary)).toEqual([]);
});

test('on the page it goes on until it is interrupted', () => {
  const { status, stdout, stderr } = onPage;
  expect({ status, stderr }).toEqual({ status: 130, stderr: '' });
  expect(stdout).toMatch(/^Open this page: http:\/\/127\.0\.0\.1:\d+\/#token=\S+\n/);
});
