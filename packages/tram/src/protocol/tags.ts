/**
 * Tags: what a completion was for, in one word. A kind, and a number of 27 bits that the kind gives meaning to. Bit 30
 * is the contract's FAILURES_ONLY.
 */
import { FAILURES_ONLY, NO_TAG } from '../memory/contract.js';

export const KIND = {
  /** Nobody waits for it. Completions of such writes are reported only if they had a guard and failed. */
  none: NO_TAG,
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

const KIND_BITS = 3;
const KIND_MASK = (1 << KIND_BITS) - 1;

/** @param value  of 27 bits */
export function tagOf(kind: number, value: number): number {
  return (value << KIND_BITS) | kind;
}

/** The tag of a write that is reported only if it fails. */
export function failureTagOf(kind: number, value: number): number {
  return tagOf(kind, value) | FAILURES_ONLY;
}

export function kindOf(tag: number): number {
  return tag & KIND_MASK;
}

export function numberOf(tag: number): number {
  return (tag & ~FAILURES_ONLY) >> KIND_BITS;
}
