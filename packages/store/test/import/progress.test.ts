/** What an import shows. */

import { expect, it } from 'vitest';
import { Tally } from '../../src/import/importer.js';
import { progressLine } from '../../src/import/progress.js';
import { reportOf, reportOfChanges } from '../../src/import/report.js';
import { shown } from '../../src/import/texts.js';

it.each([
  [{ keys: 0, bytes: 0, bytesMax: 5e6 }, '0 bytes of 4.8 MiB, 0 keys, 0 keys/s'],
  [
    { keys: 2_000, keysMax: 4_000, bytes: 1024, bytesMax: 4096 },
    '25%, 1.0 KiB of 4.0 KiB, 2,000 of 4,000 keys, 200 keys/s, 30 s left',
  ],
  [{ keys: 10, keysMax: 1_000 }, '1%, 10 of 1,000 keys, 1 keys/s, 16 min 30 s left'],
  [{ keys: 10, bytes: 100, bytesMax: Infinity }, '100 bytes, 10 keys, 1 keys/s'],
])('the progress of %j', (amounts, line) => {
  expect(progressLine('copying', 10, amounts)).toBe(`copying: ${line}`);
});

it('a key is shown on one line, whatever it has', () => {
  expect(shown('user:1')).toBe('"user:1"');
  expect(shown(Buffer.from('käse').toString('latin1'))).toBe('"käse"');
  expect(shown('a\r\n\x1b[31m\x9b')).toBe('"a\\r\\n\\u001b[31m\\x9b"');
  expect(shown('x'.repeat(1_000))).toBe(`"${'x'.repeat(80)}" …`);
});

it('what was left out makes an import incomplete, unless it had expired or was to be left out', () => {
  const tally = new Tally();
  expect(reportOf(tally, 1, false).isComplete).toBe(true);
  tally.expired = 1;
  tally.addOther(3);
  expect(reportOf(tally, 1, true).isComplete).toBe(true);
  expect(reportOf(tally, 1, false).isComplete).toBe(false);
});

it('changes that are missing make it incomplete', () => {
  const changes = { changes: 5, leftOut: 0 };
  expect(reportOfChanges({ ...changes, missing: 0 }).isComplete).toBe(true);
  const { lines, isComplete } = reportOfChanges({ ...changes, missing: 2_048 });
  expect([lines[1], isComplete]).toEqual(['left out: the last 2.0 KiB of changes', false]);
  expect(reportOfChanges({ ...changes, missing: undefined }).isComplete).toBe(false);
});
