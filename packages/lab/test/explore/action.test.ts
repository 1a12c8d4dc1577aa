/** Scripts are read as they are written. */
import { expect, test } from 'vitest';
import { formatScript, parseScript, ScriptError } from '../../src/explore/action.js';
import { SCOPES } from '../../src/explore/scopes.js';
import { replay } from '../../src/explore/shorten.js';

test('every kind of action', () => {
  const script = 'B B>A B/A B!A aD pB gB cB tB rB kB3 fB nD';
  expect(formatScript(parseScript(script))).toBe(script);
});

test.each(['b', 'BA', 'B>', 'xB', 'kB', 'cB3', 'cB>A', ''])('"%s" is no action', (word) => {
  expect(() => parseScript(`cB ${word} cB`.replace('  ', ' x '))).toThrow(ScriptError);
});

test('an action that is not possible is named, with its place', () => {
  const script = parseScript('cB C>B');
  expect(() => replay(SCOPES.get('small')!, script)).toThrow(
    '"C>B", action 2, is not possible there',
  );
});
