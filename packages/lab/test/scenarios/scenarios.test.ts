/**
 * Runs every transcript of this folder and compares the output with the transcript.
 *
 * UPDATE_SCENARIOS=1 writes the output into the files instead: review the diff before you commit it (docs/scenarios.md).
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runScenario, ScenarioError } from '../../src/sim/scenario.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const UPDATES = process.env.UPDATE_SCENARIOS === '1';
const HINT =
  'the outcome differs from the transcript; if it should, rewrite it: UPDATE_SCENARIOS=1 npx vitest run test/scenarios';

const files = readdirSync(FOLDER).filter((file) => file.endsWith('.txt'));

test.each(files)('%s', (file) => {
  const path = join(FOLDER, file);
  const text = readFileSync(path, 'utf8');
  const outcome = runScenario(`test/scenarios/${file}`, text);
  if (UPDATES) {
    if (outcome !== text) writeFileSync(path, outcome);
    return;
  }
  expect(outcome, HINT).toBe(text);
});

test.each(files)(
  '%s has the output of its transcript and ends with a verdict that holds',
  (file) => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    expect(text).toMatch(/^# /);
    expect(text).toMatch(/^check\n----\n(?:.*\n)*holds: .*\n$/m);
  },
);

describe('a mistake in a scenario is an error that names file and line', () => {
  const CLUSTER = 'cluster\n----\nok\n\n';

  test.each([
    ['state', 1, 'a scenario starts with a cluster'],
    ['cluster groups=x', 1, 'groups=x is not a number'],
    ['cluster colour=red', 1, '"colour=red" is no option'],
    ['cluster tree=-1,5', 1, 'group 1 has parent 5'],
    [`${CLUSTER}dance`, 5, 'unknown command: dance'],
    [`${CLUSTER}crash 0/3`, 5, 'there is no 0/3'],
    [`${CLUSTER}resume 0/0`, 5, '0/0 is not paused'],
    [`${CLUSTER}multicast c0 to 4 "x"`, 5, 'unknown destination group 4'],
    [
      `${CLUSTER}multicast c0 to 0 "${'x'.repeat(33)}"`,
      5,
      `"${'x'.repeat(33)}" exceeds the payload`,
    ],
    [`${CLUSTER}run until 0/1 dances`, 5, '"0/1 dances" does not happen'],
    [`${CLUSTER}check\n----\n\nstate`, 8, 'nothing may follow a check'],
    ['----', 1, 'no command before ----'],
  ])('%j', (text, line, message) => {
    const run = () => runScenario('file.txt', text);
    expect(run).toThrow(ScenarioError);
    expect(run).toThrow(`file.txt:${line}: ${message}`);
  });
});

test('the same scenario has the same outcome, in any weather', () => {
  const text = [
    'cluster groups=3 tree=-1,0,0 clients=2',
    'weather torn=90 late=50 jitter=10',
    'multicast c0 to 1,2 "a" "b"',
    'multicast c1 to 1,2 "c"',
    'crash 0/0',
    // In such weather, a change of leaders can be quiet for a while.
    'run until quiet',
    'run until quiet',
    'check',
  ].join('\n\n');
  const outcome = runScenario('file.txt', text);
  expect(outcome).toContain('holds: 3 messages');
  expect(runScenario('file.txt', text)).toBe(outcome);
  expect(runScenario('file.txt', outcome)).toBe(outcome);
});
