/** What is noted of a journal is what tools read. */
import { expect, test } from 'vitest';
import { readStatus, STATUS_WORDS, writeStatus } from '../../src/journal/status.js';
import { HOST } from '../../src/memory/arena.js';

test('figures are read as they were noted, beside other words', () => {
  const words = new Int32Array(3 * STATUS_WORDS);
  const status = {
    ...{ bytes: 5e9, syncs: 6e9, syncedBytes: 2 ** 45, syncedAtMs: 1_700_000_000_123 },
    ...{ lastSyncNs: 3_000_000, pendingSnapshots: 4 },
  };
  writeStatus(words, STATUS_WORDS, status);
  expect(readStatus(words, STATUS_WORDS)).toEqual(status);
  expect(words.subarray(0, STATUS_WORDS).every((word) => word === 0)).toBe(true);
  expect(words.subarray(2 * STATUS_WORDS).every((word) => word === 0)).toBe(true);
});

test('they fit into the line of a host', () => {
  expect(HOST.journal + STATUS_WORDS).toBeLessThanOrEqual(HOST.words);
});
