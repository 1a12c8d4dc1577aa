/** Sizes in 32-bit words. */

/** Words of a cache line. */
export const LINE_WORDS = 16;

export const wordsFor = (bytes: number): number => (bytes + 3) >> 2;

/** Rounds up to a multiple of a cache line. */
export const align = (words: number): number => Math.ceil(words / LINE_WORDS) * LINE_WORDS;
