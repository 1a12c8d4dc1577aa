/** Patterns of Lua: `string.find`, `match`, `gmatch` and `gsub`. */

import type { Runtime } from './runtime.js';
import type { LuaValue } from './values.js';

const CAPTURES_MAX = 32;
const DEPTH_MAX = 200;
const UNFINISHED = -1;
const POSITION = -2;

interface Capture {
  readonly start: number;
  length: number;
}

const CLASSES: Readonly<Record<string, RegExp>> = {
  a: /[A-Za-z]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what the class has
  c: /[\x00-\x1f\x7f]/,
  d: /[0-9]/,
  l: /[a-z]/,
  p: /[!-/:-@[-`{-~]/,
  s: /[ \t\n\v\f\r]/,
  u: /[A-Z]/,
  w: /[A-Za-z0-9]/,
  x: /[0-9A-Fa-f]/,
  z: /\0/,
};

/** One attempt after the other to match a pattern in a text. */
export class Matcher {
  #captures: Capture[] = [];
  #depth = 0;

  constructor(
    private readonly runtime: Runtime,
    private readonly text: string,
    private readonly pattern: string,
  ) {}

  /** @returns where the match that begins here ends; undefined if there is none */
  matchAt(at: number, from = 0): number | undefined {
    this.#captures = [];
    this.#depth = 0;
    return this.#match(at, from);
  }

  /** The captures, or the whole match if there are none. */
  captures(start: number, end: number, wantsWhole: boolean): LuaValue[] {
    if (this.#captures.length === 0) return wantsWhole ? [this.text.slice(start, end)] : [];
    return this.#captures.map((_, i) => this.#captured(i));
  }

  #captured(i: number): LuaValue {
    const { start, length } = this.#captures[i];
    if (length === UNFINISHED) this.runtime.fail('unfinished capture');
    return length === POSITION ? start + 1 : this.text.slice(start, start + length);
  }

  /** @param i  from 1; 0 is the whole match */
  capture(i: number, start: number, end: number): LuaValue {
    if (i === 0 || (i === 1 && this.#captures.length === 0)) return this.text.slice(start, end);
    if (i > this.#captures.length) this.runtime.fail('invalid capture index');
    return this.#captured(i - 1);
  }

  #match(at: number, p: number): number | undefined {
    if (++this.#depth > DEPTH_MAX) this.runtime.fail('pattern too complex');
    const end = this.#matchHere(at, p);
    this.#depth--;
    return end;
  }

  #matchHere(start: number, from: number): number | undefined {
    const { pattern, text } = this;
    let at = start;
    let p = from;
    for (;;) {
      this.runtime.spend(1);
      if (p >= pattern.length) return at;
      const c = pattern[p];
      if (c === '(') {
        const isPosition = pattern[p + 1] === ')';
        return this.#open(at, p + (isPosition ? 2 : 1), isPosition ? POSITION : UNFINISHED);
      }
      if (c === ')') return this.#close(at, p + 1);
      if (c === '$' && p + 1 === pattern.length) return at === text.length ? at : undefined;
      if (c === '%' && pattern[p + 1] === 'b') {
        const end = this.#balanced(at, p + 2);
        if (end === undefined) return undefined;
        at = end;
        p += 4;
        continue;
      }
      if (c === '%' && pattern[p + 1] === 'f') {
        p += 2;
        if (pattern[p] !== '[') this.runtime.fail("missing '[' after '%f' in pattern");
        const end = this.#classEnd(p);
        const before = at === 0 ? '\0' : text[at - 1];
        const here = text[at] ?? '\0';
        if (this.#inSet(before, p, end - 1) || !this.#inSet(here, p, end - 1)) return undefined;
        p = end;
        continue;
      }
      if (c === '%' && /[0-9]/.test(pattern[p + 1] ?? '')) {
        const captured = this.#backReference(pattern[p + 1]);
        this.runtime.spendOn(captured.length);
        if (!text.startsWith(captured, at)) return undefined;
        at += captured.length;
        p += 2;
        continue;
      }
      const end = this.#classEnd(p);
      const repeat = pattern[end];
      if (repeat === '?') {
        if (this.#single(at, p, end)) {
          const rest = this.#match(at + 1, end + 1);
          if (rest !== undefined) return rest;
        }
        p = end + 1;
        continue;
      }
      if (repeat === '*') return this.#longest(at, p, end, 0);
      if (repeat === '+') return this.#longest(at, p, end, 1);
      if (repeat === '-') return this.#shortest(at, p, end);
      if (!this.#single(at, p, end)) return undefined;
      at++;
      p = end;
    }
  }

  #open(at: number, p: number, length: number): number | undefined {
    if (this.#captures.length >= CAPTURES_MAX) this.runtime.fail('too many captures');
    this.#captures.push({ start: at, length });
    const end = this.#match(at, p);
    if (end === undefined) this.#captures.pop();
    return end;
  }

  #close(at: number, p: number): number | undefined {
    const capture = this.#captures.findLast(({ length }) => length === UNFINISHED);
    if (capture === undefined) return this.runtime.fail('invalid pattern capture');
    capture.length = at - capture.start;
    const end = this.#match(at, p);
    if (end === undefined) capture.length = UNFINISHED;
    return end;
  }

  #balanced(at: number, p: number): number | undefined {
    const { pattern, text } = this;
    if (p + 1 >= pattern.length) this.runtime.fail('unbalanced pattern');
    const [open, close] = [pattern[p], pattern[p + 1]];
    if (text[at] !== open) return undefined;
    let level = 1;
    for (let i = at + 1; i < text.length; i++) {
      this.runtime.spend(1);
      if (text[i] === close) {
        if (--level === 0) return i + 1;
      } else if (text[i] === open) level++;
    }
    return undefined;
  }

  #backReference(digit: string): string {
    const capture = this.#captures[Number(digit) - 1];
    if (capture === undefined || capture.length === UNFINISHED) {
      return this.runtime.fail('invalid capture index');
    }
    return this.text.substr(capture.start, Math.max(0, capture.length));
  }

  #longest(at: number, p: number, end: number, least: number): number | undefined {
    let count = 0;
    while (this.#single(at + count, p, end)) {
      count++;
      this.runtime.spend(1);
    }
    for (; count >= least; count--) {
      const rest = this.#match(at + count, end + 1);
      if (rest !== undefined) return rest;
    }
    return undefined;
  }

  #shortest(start: number, p: number, end: number): number | undefined {
    for (let at = start; ; at++) {
      const rest = this.#match(at, end + 1);
      if (rest !== undefined) return rest;
      if (!this.#single(at, p, end)) return undefined;
    }
  }

  /** @returns the position behind the class that begins here */
  #classEnd(from: number): number {
    const { pattern } = this;
    let p = from;
    const c = pattern[p++];
    if (c === '%') {
      if (p >= pattern.length) this.runtime.fail("malformed pattern (ends with '%')");
      return p + 1;
    }
    if (c !== '[') return p;
    if (pattern[p] === '^') p++;
    do {
      if (p >= pattern.length) this.runtime.fail("malformed pattern (missing ']')");
      if (pattern[p++] === '%') p++;
    } while (pattern[p] !== ']' || p >= pattern.length);
    if (p - from > 64) this.runtime.spend((p - from) >> 4);
    return p + 1;
  }

  #single(at: number, p: number, end: number): boolean {
    if (at >= this.text.length) return false;
    const character = this.text[at];
    const c = this.pattern[p];
    if (c === '.') return true;
    if (c === '%') return inClass(character, this.pattern[p + 1]);
    if (c === '[') {
      if (end - p > 64) this.runtime.spend((end - p) >> 4);
      return this.#inSet(character, p, end - 1);
    }
    return c === character;
  }

  /** @param end  of the closing bracket */
  #inSet(character: string, from: number, end: number): boolean {
    const { pattern } = this;
    let p = from + 1;
    const isNegated = pattern[p] === '^';
    if (isNegated) p++;
    for (; p < end; p++) {
      if (pattern[p] === '%') {
        if (inClass(character, pattern[++p])) return !isNegated;
      } else if (pattern[p + 1] === '-' && p + 2 < end) {
        if (pattern[p] <= character && character <= pattern[p + 2]) return !isNegated;
        p += 2;
      } else if (pattern[p] === character) return !isNegated;
    }
    return isNegated;
  }
}

function inClass(character: string, name: string): boolean {
  const tested = CLASSES[name.toLowerCase()];
  if (tested === undefined) return name === character;
  return tested.test(character) === (name === name.toLowerCase());
}
