/** Every mutation is found by some scope, or it is said why not. Every script shows its mutation, and nothing without. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseScript } from '../../src/explore/action.js';
import { FINDINGS, NOT_FOUND, NOT_SEARCHED } from '../../src/explore/findings.js';
import { findingsTable } from '../../src/explore/findings-table.js';
import { loadExplorer } from '../../src/explore/mutant.js';
import { SCOPES } from '../../src/explore/scopes.js';
import { replay } from '../../src/explore/shorten.js';
import { sweep } from '../../src/explore/sweep.js';
import { MUTATIONS } from '../../src/sim/mutations/table.js';

test('every mutation is found, or it is said why not', () => {
  const named = [FINDINGS, NOT_FOUND, NOT_SEARCHED].flatMap((table) => Object.keys(table));
  expect(named.toSorted()).toEqual(Object.keys(MUTATIONS).toSorted());
});

test.each(Object.entries(FINDINGS))('%s', async (name, { scope, script }) => {
  const mutant = await loadExplorer(name);
  const found = mutant.replay(mutant.SCOPES.get(scope)!, mutant.parseScript(script));
  expect(found?.message).toBeDefined();
  expect(found?.actions).toHaveLength(parseScript(script).length);
  // Without the mutation, some of the actions may not be possible.
  expect(replay(SCOPES.get(scope)!, parseScript(script), { isLenient: true })).toBeUndefined();
});

test('a sweep exhausts its first scope with the first mutation', async () => {
  const { value } = await sweep(60_000).next();
  expect(value).toMatchObject({
    mutation: Object.keys(NOT_FOUND)[0],
    result: { isExhausted: true, found: undefined },
  });
});

test('docs/explorer.md has the table that the command prints', { timeout: 300_000 }, async () => {
  const document = readFileSync(new URL('../../../../docs/explorer.md', import.meta.url), 'utf8');
  expect(document).toContain(await findingsTable());
});
