/** What a completion was for: a kind, and a number that the kind gives meaning to. */
export const KIND = {
  /** Nobody waits for it. Completions of such writes are seen only if they failed. */
  none: 0,
  /** A row was read; the number is its place in the table of rows. */
  row: 1,
  /** Log entries were written; the numbers of these two are those of `Replication`. */
  entries: 2,
  marker: 3,
  /** Part of a feed was written; the number is the child's place. */
  feed: 4,
  /** A granter's row was read again; the number is the round of re-checks. */
  recheck: 5,
  /** Part of a log to adopt was read; the number is the attempt. */
  adopt: 6,
  /** The last part of it. */
  adoptLast: 7,
} as const;

const KIND_BITS = 4;

/** One word, not negative. @param value  of 27 bits */
export function tagOf(kind: number, value: number): number {
  return (value << KIND_BITS) | kind;
}

/** The same, if only failures matter. */
export function failureTagOf(kind: number, value: number): number {
  return ~tagOf(kind, value);
}

export function kindOf(tag: number): number {
  return (tag < 0 ? ~tag : tag) & ((1 << KIND_BITS) - 1);
}

export function numberOf(tag: number): number {
  return (tag < 0 ? ~tag : tag) >> KIND_BITS;
}
