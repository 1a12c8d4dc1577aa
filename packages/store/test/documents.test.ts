/** docs/store.md says what the store does. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createProgram } from '../src/cli/program.js';

const project = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, project), 'utf8');
const text = read('docs/store.md');

test('its tables have the commands of the store', () => {
  const script = fileURLToPath(new URL('../scripts/command-tables.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [script, '--check']);
  expect(status, `run node packages/store/scripts/command-tables.mjs`).toBe(0);
});

test.each([
  ['tram-store', '## Start', '## Shape', createProgram()],
  ['import', '## Moving from Redis', '## Limits', createProgram().commands[0]],
])('it has all options of %s, and no others', (_name, from, to, { options }) => {
  const section = text.slice(text.indexOf(`\n${from}\n`), text.indexOf(`\n${to}\n`));
  const named = [...section.matchAll(/^\| (`--.*?) \|/gm)].flatMap(
    ([, cell]) => cell.match(/--[\w-]+/g)!,
  );
  const own = options.map(({ long }) => long).filter((long) => long !== '--version');
  expect(named.toSorted()).toEqual(own.toSorted());
});

test('its code stands in the examples', () => {
  const named = [...text.matchAll(/<!-- (examples\/\S+) -->\n```js\n([^`]*)```\n/g)];
  expect(named).toHaveLength(text.match(/^```js$/gm)!.length);
  for (const [, example, code] of named) expect(read(example)).toContain(code);
});
