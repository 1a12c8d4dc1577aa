/** The file of results. */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Results } from '../../../src/bench/paper/results.js';

test('lines that are no results are skipped', ({ onTestFinished }) => {
  const directory = mkdtempSync(join(tmpdir(), 'tram-results-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'results.jsonl');
  appendFileSync(path, 'nonsense\n\n');
  expect(new Results(path).latest('random')).toEqual([]);
});
