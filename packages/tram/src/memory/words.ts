/** Sizes in 32-bit words. */

/** The size of a cache line. */
export const LINE_WORDS = 16;

export const wordsFor = (bytes: number): number => (bytes + 3) >> 2;

/** An even number of words: whatever follows starts at a multiple of eight bytes again. */
export const pairedWordsFor = (bytes: number): number => ((bytes + 7) >> 3) * 2;

/** Rounds up to whole cache lines. */
export const align = (words: number): number => words + (-words & (LINE_WORDS - 1));
