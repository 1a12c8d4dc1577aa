/** The tables in docs/paper-errata.md agree with the code on every hole and mutation. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { HOLES } from '../../src/sim/mutations/holes.js';
import { MUTATIONS } from '../../src/sim/mutations/table.js';

const HOLES_IN_ALL = 31;
const IMPOSSIBLE = ['H10', 'H14'];

const text = readFileSync(new URL('../../../../docs/paper-errata.md', import.meta.url), 'utf8');
const rows = text
  .split('\n')
  .filter((line) => /^\| H\d+ \|/.test(line))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));

test('it lists every hole, and those without a mutation are the ones that the design makes impossible', () => {
  const names = Array.from({ length: HOLES_IN_ALL }, (_, i) => `H${i + 1}`);
  expect(rows.map(([, name]) => name)).toEqual(names);
  expect(names.filter((name) => HOLES[name] === undefined)).toEqual(IMPOSSIBLE);
});

test.each(rows.filter(([, name]) => HOLES[name!]))(
  '| %s%s',
  (_, name, title, __, ___, seed, shownAs) => {
    const { title: expected, caughtBy } = HOLES[name!];
    expect(title).toBe(expected);
    expect({ seed: Number(seed), as: shownAs }).toEqual(
      'seed' in caughtBy ? { seed: caughtBy.seed, as: caughtBy.as } : undefined,
    );
  },
);

test('it lists every further mutation, with what catches it', () => {
  const listed = text.split('\n').filter((line) => /^\| `[a-z-]+` \|/.test(line));
  const further = Object.entries(MUTATIONS).filter(([name]) => !(name in HOLES));
  const expected = further.map(([name, { title, caughtBy }]) => {
    const caught =
      'seed' in caughtBy
        ? `seed ${caughtBy.seed}: ${caughtBy.as}`
        : `\`${caughtBy.script}.test.ts\``;
    return `| \`${name}\` | ${title} | ${caught} |`;
  });
  expect(listed).toEqual(expected);
});
