/** How large the parts of a journal are. */

/** @internal */
export interface JournalSizes {
  /** Of the ring to the journal thread; a power of two. */
  readonly ringWords: number;
  /** Of a record with entries. */
  readonly recordWordsMax: number;
  readonly batchBytesMax: number;
  readonly segmentBytes: number;
}

/** What a host may have under way while its disk is busy. */
const RING_WORDS = 2 ** 21;
const RECORD_WORDS = 2 ** 16;
const BATCH_BYTES = 2 ** 22;
const SEGMENT_BYTES = 2 ** 24;

/** @internal @param entryWordsMax  of the largest entry */
export function journalSizes(entryWordsMax: number): JournalSizes {
  const recordWordsMax = Math.max(RECORD_WORDS, entryWordsMax);
  const batchBytesMax = Math.max(BATCH_BYTES, 8 * recordWordsMax);
  // Room for a turn that waits, and for another one (turns.ts): each asks for at most one record, and a few small ones.
  let ringWords = RING_WORDS;
  while (ringWords < 8 * recordWordsMax) ringWords *= 2;
  const segmentBytes = Math.max(SEGMENT_BYTES, 4 * batchBytesMax);
  return { ringWords, recordWordsMax, batchBytesMax, segmentBytes };
}
