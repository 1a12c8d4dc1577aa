/** The styles of lines. */
import { expect, test } from 'vitest';
import { styleOf } from '../../../src/bench/figures/style.js';

test('systems differ in colour and in marker', () => {
  const names = ['TRAM base', 'TRAM breadth', 'TRAM depth', 'RamCast', 'ByzCast', 'Skeen'];
  const styles = names.map((name) => styleOf(name, 0));
  expect(new Set(styles.map(({ colour }) => colour)).size).toBe(names.length);
  expect(new Set(styles.map(({ marker }) => marker)).size).toBe(names.length);
  expect(styleOf('RamCast', 0)).toBe(styleOf('RamCast', 5));
});
