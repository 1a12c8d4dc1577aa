/** `tram secret` as a user runs it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSecret } from '../../src/hosting/machines/secret.js';
import { useCommandLine } from './command-line.js';

const line = useCommandLine();

test('creates a secret, and does not show it', async () => {
  const file = join(line.folder, 'new.secret');
  expect(await line.exactly('secret', file)).toEqual({
    code: 0,
    stdout: `created ${file}: copy it to all machines, and keep it secret\n`,
    stderr: '',
  });
  expect(readSecret(file)).toHaveLength(64);
});

test('does not overwrite a file', async () => {
  const file = line.write('old.secret', 'precious');
  const { code, stderr } = await line.exactly('secret', file);
  expect(code).toBe(1);
  expect(stderr).toContain('old.secret exists already, and stays as it is\n  Choose');
  expect(readFileSync(file, 'utf8')).toBe('precious');
});

test('needs the name of a file', async () => {
  expect(await line.exactly('secret')).toMatchObject({ code: 2 });
});

test('explains itself', async () => {
  const { code, stdout } = await line.exactly('secret', '--help');
  expect(code).toBe(0);
  for (const part of ['Examples:', 'Exit codes:', 'memory: machines']) {
    expect(stdout).toContain(part);
  }
});
