/** The elements of a picture. */
import { expect, test } from 'vitest';
import { escapeText, wrap } from '../../../src/bench/figures/svg.js';

test('long lines are broken between words', () => {
  expect(wrap('one two three', 1000, 10)).toEqual(['one two three']);
  expect(wrap('one two three', 45, 10)).toEqual(['one two', 'three']);
});

test('text is escaped', () => {
  expect(escapeText('<a href="x">&')).toBe('&lt;a href=&quot;x&quot;&gt;&amp;');
});
