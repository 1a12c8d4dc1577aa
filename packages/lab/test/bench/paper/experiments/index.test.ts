/** The list of all experiments. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EXPERIMENTS } from '../../../../src/bench/paper/experiments/index.js';

test('every experiment is in the help and in docs/bench.md', () => {
  const names = EXPERIMENTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const help = readFileSync(new URL('../../../../src/cli/bench-paper.ts', import.meta.url), 'utf8');
  const document = readFileSync(
    new URL('../../../../../../docs/bench.md', import.meta.url),
    'utf8',
  );
  for (const name of names) {
    expect(help).toContain(`'${name}'`);
    expect(document).toContain(`| \`${name}\` |`);
  }
});
