/** Every example runs, ends by itself and finds that what it claims holds; and its types are right. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectDirectory } from './built.js';

const examples = join(projectDirectory, 'examples');
const names = readdirSync(examples, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test('there are examples', () => {
  expect(names).toEqual(expect.arrayContaining(['bank', 'counter', 'work-queue']));
});

test.each(names)('%s', (name) => {
  const main = join(examples, name, 'main.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [main], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^ok: /m);
  expect(stdout).not.toMatch(/^WRONG: /m);
  expect(status).toBe(0);
});

test('they are typed', () => {
  const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', examples], { encoding: 'utf8' });
  expect(stdout).toBe('');
});
