/**
 * Patterns of KEYS, SCAN and PSUBSCRIBE: `*`, `?`, sets in brackets (`[abc]`, `[a-z]`, `[^a]`), and `\` before a byte that stands for
 * itself. As in Redis, a set that is not closed ends with the pattern.
 *
 * Only the last `*` is ever tried again, so the work is at most the product of the lengths.
 */

import type { Bytes } from '../resp/reply.js';

const STAR = 42;
const QUESTION = 63;
const OPEN = 91;
const BACKSLASH = 92;
const CLOSE = 93;
const CARET = 94;
const DASH = 45;

export function matchesGlob(pattern: Bytes, text: Bytes): boolean {
  // As in Redis, no other pattern matches the empty string.
  if (text === '') return pattern === '' || pattern === '*';
  let p = 0;
  let t = 0;
  /** After the last `*`, and where in the text it was tried last. */
  let retryPattern = -1;
  let retryText = 0;
  while (t < text.length) {
    const code = p < pattern.length ? pattern.charCodeAt(p) : -1;
    if (code === STAR) {
      retryPattern = ++p;
      retryText = t;
      continue;
    }
    const next = code === -1 ? -1 : afterMatch(pattern, p, text.charCodeAt(t));
    if (next !== -1) {
      p = next;
      t++;
    } else if (retryPattern !== -1) {
      p = retryPattern;
      t = ++retryText;
    } else return false;
  }
  while (p < pattern.length && pattern.charCodeAt(p) === STAR) p++;
  return p === pattern.length;
}

/** @returns where the pattern goes on after the element at `p`, or -1 if that does not match the byte */
function afterMatch(pattern: Bytes, p: number, byte: number): number {
  const code = pattern.charCodeAt(p);
  if (code === QUESTION) return p + 1;
  if (code === OPEN) return afterSet(pattern, p + 1, byte);
  const literal = code === BACKSLASH && p + 1 < pattern.length ? p + 1 : p;
  return pattern.charCodeAt(literal) === byte ? literal + 1 : -1;
}

function afterSet(pattern: Bytes, from: number, byte: number): number {
  let p = from;
  const negated = p < pattern.length && pattern.charCodeAt(p) === CARET;
  if (negated) p++;
  let found = false;
  for (; p < pattern.length; p++) {
    const code = pattern.charCodeAt(p);
    if (code === CLOSE) return found === negated ? -1 : p + 1;
    if (code === BACKSLASH && p + 1 < pattern.length) {
      p++;
      found ||= pattern.charCodeAt(p) === byte;
    } else if (p + 2 < pattern.length && pattern.charCodeAt(p + 1) === DASH) {
      const end = pattern.charCodeAt(p + 2);
      found ||= byte >= Math.min(code, end) && byte <= Math.max(code, end);
      p += 2;
    } else found ||= code === byte;
  }
  return found === negated ? -1 : p;
}
