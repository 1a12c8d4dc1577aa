/** `tram-lab explore` as a user runs it, from the built package. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { FINDINGS } from '../../src/explore/findings.js';
import { SCOPES } from '../../src/explore/scopes.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

function explore(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'explore', ...args], {
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { status, stdout, stderr };
}

describe('2 for an option that is wrong', () => {
  test.each([
    [['--scope', 'nope'], 'Unknown scope: nope. Expected some of small, takeover'],
    [['--mutation', 'H99'], 'Unknown mutation: H99. Expected some of H1, H2'],
    [['--mutation', 'H13,H28'], "these mutations can't be applied together"],
    [['--script', 'cB'], '--script runs in one scope: choose it with --scope'],
    [['--scope', 'small', '--script', 'xy'], '"xy" is no action'],
    [['--scope', 'small', '--script', 'cB cB'], '"cB", action 2, is not possible there'],
    [['--minutes', '0'], 'Expected an integer from 1 to'],
  ])('%j', (args, message) => {
    const { status, stderr } = explore(...args);
    expect(stderr).toContain(message);
    expect(status).toBe(2);
  });
});

test('the list of scopes', () => {
  const { status, stdout } = explore('--list');
  expect(status).toBe(0);
  expect(stdout.trim().split('\n')).toHaveLength(SCOPES.size);
});

test('a script is told in words: 3 if it violates a property, 0 if it does not', () => {
  const { scope, script } = FINDINGS.H11;
  const broken = explore('--scope', scope, '--mutation', 'H11', '--script', script);
  expect(broken.stdout).toContain('B campaigns with ballot 2.1');
  expect(broken.stdout).toMatch(/VIOLATED: agreement: B decided b at index 0/);
  expect(broken.status).toBe(3);
  const intact = explore('--scope', scope, '--script', script);
  expect(intact.stdout).toContain('holds so far');
  expect(intact.status).toBe(0);
});

test('a violation comes with the shortest script, and with the command that replays it', () => {
  const { status, stdout } = explore('--scope', 'rivals', '--mutation', 'H17');
  expect(stdout).toContain('the shortest script, of 4 actions');
  expect(stdout).toMatch(/npx tram-lab explore --scope rivals --mutation H17 --script "[^"]+"/);
  expect(status).toBe(3);
});
