/**
 * What the journal of a host has done, as words: its thread writes them for the host, and the host, a few times a second, into
 * its line of the arena, where any tool can read them. Counts are those of the present start of the host. A count may be seen
 * half-way while it exceeds 32 bits.
 */
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

/** Counts that may exceed 32 bits take two words. */
const STATUS = {
  bytes: 0,
  syncs: 2,
  syncedBytes: 4,
  syncedAtMs: 6,
  lastSyncUs: 8,
  pendingSnapshots: 9,
} as const;

/** @internal */
export const STATUS_WORDS = 10;

/** @internal */
export function writeStatus(words: Int32Array, at: number, status: JournalStatus): void {
  writeWide(words, at + STATUS.bytes, status.bytes);
  writeWide(words, at + STATUS.syncs, status.syncs);
  writeWide(words, at + STATUS.syncedBytes, status.syncedBytes);
  writeWide(words, at + STATUS.syncedAtMs, Math.floor(status.syncedAtMs));
  words[at + STATUS.lastSyncUs] = Math.min(Math.ceil(status.lastSyncNs / 1000), 2 ** 31 - 1);
  words[at + STATUS.pendingSnapshots] = status.pendingSnapshots;
}

/** @internal */
export function readStatus(words: Int32Array, at: number): JournalStatus {
  return {
    bytes: readWide(words, at + STATUS.bytes),
    syncs: readWide(words, at + STATUS.syncs),
    syncedBytes: readWide(words, at + STATUS.syncedBytes),
    syncedAtMs: readWide(words, at + STATUS.syncedAtMs),
    lastSyncNs: words[at + STATUS.lastSyncUs] * 1000,
    pendingSnapshots: words[at + STATUS.pendingSnapshots],
  };
}
