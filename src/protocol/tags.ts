/** What a completion was for: a kind, and a number that the kind gives meaning to. */
export const KIND = {
  /** Nobody waits for it. */
  none: 0,
  /** A row was read; the number is its place in the table of rows. */
  row: 1,
  /** Log entries were written; the numbers of these three are those of `Replication`. */
  entries: 2,
  marker: 3,
  control: 8,
  /** Part of a feed was written; the number is the child's place. */
  feed: 4,
  /** A granter's row was read again; the number is the round of re-checks. */
  recheck: 5,
  /** Part of a log to adopt was read; the number is the attempt. */
  adopt: 6,
  /** The last part of it. */
  adoptLast: 7,
} as const;

const KINDS = 16;

export function tagOf(kind: number, value: number): number {
  return value * KINDS + kind;
}

export function kindOf(tag: number): number {
  return tag % KINDS;
}

export function numberOf(tag: number): number {
  return Math.floor(tag / KINDS);
}
