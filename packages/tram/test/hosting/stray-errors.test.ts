/** Errors that nobody catches: those of the service are reported, a bug of TRAM ends the process. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'tram-stray-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const built = (path: string): string => new URL(`../../dist/${path}`, import.meta.url).href;

/** Runs code in a process that catches stray errors, and then, if it still runs, prints `goes on`. */
function run(code: string): {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  const path = join(folder, 'program.mjs');
  writeFileSync(
    path,
    `import { TramError } from '${built('errors.js')}';
     import { catchStrayErrors } from '${built('hosting/stray-errors.js')}';
     import { bytesCodec } from '${built('codec.js')}';
     import { requireSame } from '${built('hosting/machines/own-arena.js')}';
     import { assert } from '${built('protocol/assert.js')}';
     const stop = catchStrayErrors((error) => console.log('caught', error.split('\\n')[0]));
     ${code};
     setTimeout(() => console.log('goes on'), 20);`,
  );
  return spawnSync(process.execPath, [path], { encoding: 'utf8' });
}

test.each([
  ['a rejection', "Promise.reject(new Error('mine'))", 'Error: mine'],
  ['an exception', "setTimeout(() => { throw new Error('mine'); })", 'Error: mine'],
  ['text', "Promise.reject('mine')", 'mine'],
  [
    'a misuse of TRAM',
    "Promise.reject(new TramError('TRAM_CLOSED', 'closed'))",
    'TramError: closed',
  ],
  [
    'a mistake that TRAM notices',
    "setTimeout(() => bytesCodec.encode('x'))",
    'TypeError: the value must be a Uint8Array, not a string',
  ],
  [
    'an error whose stack throws',
    "Promise.reject(Object.defineProperty(new Error(), 'stack', { get() { throw 1; } }))",
    "object that can't be converted to text",
  ],
])('%s of the service is reported', (_, code, report) => {
  expect(run(code)).toMatchObject({ status: 0, stdout: `caught ${report}\ngoes on\n`, stderr: '' });
});

test.each([
  ['a broken invariant in a callback', "setTimeout(() => assert(false, 'all is well'))"],
  ['a broken invariant in a promise', "(async () => assert(false, 'all is well'))()"],
])('%s ends the process', (_, code) => {
  const { status, stdout, stderr } = run(code);
  expect({ stdout, hasEnded: status !== 0 }).toEqual({ stdout: '', hasEnded: true });
  expect(stderr).toContain('InvariantError: all is well');
});

test('any other bug of TRAM ends the process', () => {
  const { status, stdout, stderr } = run('setTimeout(requireSame)');
  expect({ stdout, hasEnded: status !== 0 }).toEqual({ stdout: '', hasEnded: true });
  expect(stderr).toContain('TypeError');
});

test('nothing is caught after the end', () => {
  const { status, stderr } = run("stop(); Promise.reject(new Error('mine'))");
  expect(status).toBe(1);
  expect(stderr).toContain('Error: mine');
});
