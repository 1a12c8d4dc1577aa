/** docs/check.md says what the judge does: its table, its events and its example are tested. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { judge } from '../../src/check/judge.js';
import { DEFINITIONS, PROPERTIES } from '../../src/check/properties.js';
import { parseEvent } from '../../src/check/trace.js';
import { formatVerdict } from '../../src/cli/check.js';
import { deliver, end, groups, multicast } from './events.js';

const text = readFileSync(new URL('../../../../docs/check.md', import.meta.url), 'utf8');

test('every property is defined as the judge defines it', () => {
  for (const property of PROPERTIES) {
    expect(text).toContain(`| \`${property}\` | ${DEFINITIONS[property]} |`);
  }
});

test('every event shown is one that the parser accepts', () => {
  const lines = text.split('\n').filter((line) => line.startsWith('{"event"'));
  const names = lines.map((line) => parseEvent(line, 1).event);
  expect(new Set(names).size).toBe(14);
});

test('the example prints what is shown', () => {
  const verdict = judge([
    groups(2),
    multicast('a', [0], 'c1'),
    multicast('b', [0], 'c2'),
    ...deliver('0/0', 'a'),
    ...deliver('0/1', 'b'),
    end(false),
  ]);
  expect(text).toContain(formatVerdict(verdict));
});
