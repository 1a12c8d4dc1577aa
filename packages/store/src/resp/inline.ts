/** Inline commands: a line of words, which may be quoted as in a shell. */

import type { Bytes } from './reply.js';

const SPACES = ' \t\n\v\f\r';
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  a: '\x07',
};

/** @returns undefined if a quote is not closed, or not followed by a space */
export function splitWords(line: Bytes): Bytes[] | undefined {
  const nul = line.indexOf('\0');
  const text = nul < 0 ? line : line.slice(0, nul);
  const words: Bytes[] = [];
  let at = 0;
  for (;;) {
    while (at < text.length && isSpace(text[at])) at++;
    if (at === text.length) return words;
    let word = '';
    while (at < text.length && !isSpace(text[at])) {
      const quote = text[at];
      if (quote !== '"' && quote !== "'") {
        word += text[at++];
        continue;
      }
      const quoted = quote === '"' ? readDouble(text, at + 1) : readSingle(text, at + 1);
      if (quoted === undefined) return undefined;
      word += quoted.word;
      at = quoted.end;
      if (at < text.length && !isSpace(text[at])) return undefined;
    }
    words.push(word);
  }
}

interface Quoted {
  readonly word: Bytes;
  /** After the closing quote. */
  readonly end: number;
}

function readDouble(text: Bytes, from: number): Quoted | undefined {
  let word = '';
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === '"') return { word, end: at + 1 };
    if (char !== '\\' || at + 1 === text.length) {
      word += char;
      continue;
    }
    const hex = /^x([0-9a-fA-F]{2})/.exec(text.slice(at + 1, at + 4));
    if (hex) {
      word += String.fromCharCode(Number.parseInt(hex[1], 16));
      at += 3;
    } else {
      at++;
      word += ESCAPES[text[at]] ?? text[at];
    }
  }
  return undefined;
}

function readSingle(text: Bytes, from: number): Quoted | undefined {
  let word = '';
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === "'") return { word, end: at + 1 };
    if (char === '\\' && text[at + 1] === "'") {
      word += "'";
      at++;
    } else word += char;
  }
  return undefined;
}

function isSpace(char: string): boolean {
  return SPACES.includes(char);
}
