/**
 * Windows and positions: where one writer puts its records in another participant's region (record.ts). Positions only
 * grow, modulo 2³².
 */

/** A slot's mask: every position is its own place. */
const UNWRAPPED = -1;
const NEVER_WRAPS = 0x7fffffff;

/** Where positions lie in an array: from `at` on, wrapped by `mask` (the ring's size less one, or `UNWRAPPED`). */
export interface Places {
  readonly at: number;
  readonly mask: number;
}

/**
 * Two secret words, part of the check and of the tail of every record in a ring. A payload that lies where a record is
 * looked for passes for one only if its author guesses both.
 */
export interface Salt {
  readonly check: number;
  readonly tail: number;
}

/** The salt of slots: no payload ever lies where a head is looked for. */
export const NO_SALT: Salt = { check: 0, tail: 0 };

/** @param secret  at least eight bytes */
export function saltFrom(secret: Uint8Array): Salt {
  const view = new DataView(secret.buffer, secret.byteOffset);
  return { check: view.getInt32(0), tail: view.getInt32(4) };
}

/** Where records live. */
export interface Window extends Places {
  readonly words: Int32Array;
  readonly salt: Salt;
}

/** A copy of a record from a ring has the salt of the ring. */
export function slotAt(words: Int32Array, at: number, salt = NO_SALT): Window {
  return { words, at, mask: UNWRAPPED, salt };
}

/** `ringWords` is a power of two. */
export function ringAt(words: Int32Array, at: number, ringWords: number, salt: Salt): Window {
  return { words, at, mask: ringWords - 1, salt };
}

export function word(window: Window, position: number): number {
  return window.words[window.at + (position & window.mask)];
}

export function placeOf({ at, mask }: Places, position: number): number {
  return at + (position & mask);
}

/** How many words lie side by side from `position` on, until the ring wraps. Nothing else works that out. */
export function untilWrap({ mask }: Places, position: number): number {
  return mask === UNWRAPPED ? NEVER_WRAPS : mask + 1 - (position & mask);
}

/** How many words, of `count`, lie side by side in both from these positions on. */
export function commonRun(
  from: Places,
  fromPosition: number,
  to: Places,
  toPosition: number,
  count: number,
): number {
  return Math.min(count, untilWrap(from, fromPosition), untilWrap(to, toPosition));
}

/** The full number whose low 32 bits are `low` and which lies nearest to `near`. */
export function extend(near: number, low: number): number {
  return near + ((low - near) | 0);
}

/** `a - b` for two positions modulo 2³². */
export function distance(a: number, b: number): number {
  return (a - b) | 0;
}
