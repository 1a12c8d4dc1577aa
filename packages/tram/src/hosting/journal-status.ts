/**
 * What the journal of a host has done, as words in the host's line of the arena. Only the host writes them, a few times a
 * second; any tool can read them while the cluster runs. Counts are those of the present start of the host.
 */
import { HOST } from '../memory/arena.js';
import { readWide, writeWide } from '../protocol/wide.js';

export interface JournalStatus {
  /** The files of the present era, snapshots included. */
  readonly bytes: number;
  /** How often it was synced, and how many bytes were written for it. */
  readonly syncs: number;
  readonly syncedBytes: number;
  /** When the last sync ended, in milliseconds since 1970, and how long it took, with its write; 0 before the first. */
  readonly syncedAtMs: number;
  readonly lastSyncNs: number;
  /** Snapshots that do not replace older entries yet, because these may still be needed. */
  readonly pendingSnapshots: number;
}

/** From `HOST.journal` on. Counts that may exceed 32 bits take two words. */
const JOURNAL = {
  /** 0 without a journal. */
  era: 0,
  bytes: 1,
  syncs: 3,
  syncedBytes: 5,
  syncedAtMs: 7,
  lastSyncUs: 9,
  pendingSnapshots: 10,
} as const;

/** @internal The words of a host's line that `journalOf` reads. */
export const JOURNAL_WORDS = 11;

/** @internal @param line  of the host */
export function noteJournal(
  words: Int32Array,
  line: number,
  era: number,
  journal: JournalStatus,
): void {
  const at = line + HOST.journal;
  words[at + JOURNAL.era] = era;
  writeWide(words, at + JOURNAL.bytes, journal.bytes);
  writeWide(words, at + JOURNAL.syncs, journal.syncs);
  writeWide(words, at + JOURNAL.syncedBytes, journal.syncedBytes);
  writeWide(words, at + JOURNAL.syncedAtMs, Math.floor(journal.syncedAtMs));
  words[at + JOURNAL.lastSyncUs] = Math.min(Math.ceil(journal.lastSyncNs / 1000), 2 ** 31 - 1);
  words[at + JOURNAL.pendingSnapshots] = journal.pendingSnapshots;
}

/** @internal The era in which a host runs; 0 if it has no journal, or has yet to open it. */
export function eraOf(words: Int32Array, line: number): number {
  return words[line + HOST.journal + JOURNAL.era];
}

/** @internal */
export function journalOf(words: Int32Array, line: number): JournalStatus {
  const at = line + HOST.journal;
  return {
    bytes: readWide(words, at + JOURNAL.bytes),
    syncs: readWide(words, at + JOURNAL.syncs),
    syncedBytes: readWide(words, at + JOURNAL.syncedBytes),
    syncedAtMs: readWide(words, at + JOURNAL.syncedAtMs),
    lastSyncNs: words[at + JOURNAL.lastSyncUs] * 1000,
    pendingSnapshots: words[at + JOURNAL.pendingSnapshots],
  };
}
