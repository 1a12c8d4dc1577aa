/** What a host notes of its journal is what tools read. */
import { expect, test } from 'vitest';
import { eraOf, JOURNAL_WORDS, journalOf, noteJournal } from '../../src/hosting/journal-status.js';
import { HOST } from '../../src/memory/arena.js';

test('figures are read as they were noted, beside the rest of the line', () => {
  const words = new Int32Array(3 * HOST.words);
  const journal = {
    ...{ bytes: 5e9, syncs: 6e9, syncedBytes: 2 ** 45, syncedAtMs: 1_700_000_000_123 },
    ...{ lastSyncNs: 3_000_000, pendingSnapshots: 4 },
  };
  noteJournal(words, HOST.words, 7, journal);
  expect(journalOf(words, HOST.words)).toEqual(journal);
  expect(eraOf(words, HOST.words)).toBe(7);
  expect(eraOf(words, 0)).toBe(0);
  const own = words.subarray(HOST.words + HOST.journal, HOST.words + HOST.journal + JOURNAL_WORDS);
  const isElsewhere =
    words.filter((word) => word !== 0).length > own.filter((word) => word !== 0).length;
  expect(isElsewhere).toBe(false);
  expect(HOST.journal + JOURNAL_WORDS).toBeLessThanOrEqual(HOST.words);
});
