/** The library `cjson`. */

import { library } from './arguments.js';
import { DEPTH_MAX, JSON_OPTIONS } from './json-settings.js';
import { formatG, parseNumber } from './numbers.js';
import type { Runtime } from './runtime.js';
import { LuaTable, type LuaValue, Opaque, typeName } from './values.js';

/** What JSON's null becomes. */
const NULL = new Opaque();

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '"': '\\"', '\\': '\\\\', '/': '\\/', '\b': '\\b' },
  ...{ '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t' },
};

class Encoder {
  readonly #settings;

  constructor(private readonly runtime: Runtime) {
    this.#settings = runtime.json;
  }

  encode(value: LuaValue, depth: number): string {
    this.runtime.spend(1);
    if (typeof value === 'string') {
      this.runtime.spendOn(value.length);
      return quoted(value);
    }
    if (typeof value === 'number') return this.#number(value);
    if (typeof value === 'boolean') return String(value);
    if (value === undefined || value === NULL) return 'null';
    if (value instanceof LuaTable) return this.#table(value, depth + 1);
    return this.runtime.fail(`Cannot serialise ${typeName(value)}: type not supported`);
  }

  #number(value: number): string {
    const { invalidNumbers, precision } = this.#settings;
    if (!Number.isFinite(value)) {
      if (invalidNumbers === 'off') {
        this.runtime.fail('Cannot serialise number: must not be NaN or Inf');
      }
      if (invalidNumbers === 'null') return 'null';
      if (Number.isNaN(value)) return 'nan';
      return value > 0 ? 'inf' : '-inf';
    }
    return formatG(value, precision);
  }

  #table(table: LuaTable, depth: number): string {
    if (depth > Math.min(DEPTH_MAX, this.#settings.encodeDepth)) {
      this.runtime.fail(`Cannot serialise, excessive nesting (${depth})`);
    }
    this.runtime.spend(10);
    const length = this.#arrayLength(table);
    if (length > 0) {
      const items: string[] = [];
      for (let i = 1; i <= length; i++) items.push(this.encode(table.get(i), depth));
      return `[${items.join()}]`;
    }
    const fields: string[] = [];
    for (const [key, value] of this.runtime.entries(table)) {
      const name = typeof key === 'number' ? this.#number(key) : key;
      if (typeof name !== 'string') {
        this.runtime.fail('Cannot serialise table: table key must be a number or string');
      }
      this.runtime.spendOn(String(name).length);
      fields.push(`${quoted(String(name))}:${this.encode(value, depth)}`);
    }
    return `{${fields.join()}}`;
  }

  /** @returns 0 if it is not an array */
  #arrayLength(table: LuaTable): number {
    let most = 0;
    let count = 0;
    for (const [key] of this.runtime.entries(table)) {
      if (typeof key !== 'number' || key < 1 || !Number.isInteger(key)) return 0;
      most = Math.max(most, key);
      count++;
    }
    const { convertsSparse, sparseRatio, sparseSafe } = this.#settings;
    if (sparseRatio > 0 && most > count * sparseRatio && most > sparseSafe) {
      if (!convertsSparse) this.runtime.fail('Cannot serialise table: excessively sparse array');
      return 0;
    }
    return most;
  }
}

function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are escaped
  const inner = text.replace(/["\\/\x00-\x1f\x7f]/g, (c) => {
    return ESCAPES[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `"${inner}"`;
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER =
  /[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[iI][nN][fF](?:inity)?|[nN][aA][nN])/y;
/** What other languages have, or a zero in front. An error calls it a number if it looks like one. */
const INVALID = /^-?(?:0[xX\d]|[iInN])/;
const LIKE_NUMBER = /^[-\d]/;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const PUNCTUATION: Readonly<Record<string, string>> = {
  ...{ '{': 'T_OBJ_BEGIN', '}': 'T_OBJ_END', '[': 'T_ARR_BEGIN', ']': 'T_ARR_END' },
  ...{ ':': 'T_COLON', ',': 'T_COMMA' },
};
const WORDS: readonly (readonly [string, string, LuaValue])[] = [
  ['true', 'T_BOOLEAN', true],
  ['false', 'T_BOOLEAN', false],
  ['null', 'T_NULL', NULL],
];
const UNESCAPED: Readonly<Record<string, string>> = {
  ...{ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' },
};

interface JsonToken {
  readonly type: string;
  readonly at: number;
  readonly value?: LuaValue;
  /** What is wrong. */
  readonly problem?: string;
}

class Decoder {
  #at = 0;

  constructor(
    private readonly runtime: Runtime,
    private readonly text: string,
  ) {}

  decode(): LuaValue {
    const value = this.#value(this.#next(), 0);
    const rest = this.#next();
    if (rest.type !== 'T_END') this.#fail('the end', rest);
    return value;
  }

  #fail(expected: string, { type, at, problem = 'invalid token' }: JsonToken): never {
    const found = type === 'T_ERROR' ? problem : type;
    return this.runtime.fail(`Expected ${expected} but found ${found} at character ${at + 1}`);
  }

  #next(): JsonToken {
    this.runtime.spend(1);
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.text)![0].length;
    const at = this.#at;
    const { text } = this;
    if (at >= text.length) return { type: 'T_END', at };
    const punctuation = PUNCTUATION[text[at]];
    if (punctuation !== undefined) {
      this.#at++;
      return { type: punctuation, at };
    }
    for (const [word, type, value] of WORDS) {
      if (!text.startsWith(word, at)) continue;
      this.#at += word.length;
      return { type, at, value };
    }
    const end = text[at] === '"' ? stringEnd(text, at + 1) : undefined;
    if (end !== undefined) {
      this.#at = end + 1;
      return { type: 'T_STRING', at, value: unescaped(text.slice(at + 1, end)) };
    }
    NUMBER.lastIndex = at;
    const number = NUMBER.exec(text)?.[0];
    if (number === undefined || number.startsWith('+')) return { type: 'T_ERROR', at };
    if (!this.runtime.json.readsInvalidNumbers && INVALID.test(number)) {
      const problem = LIKE_NUMBER.test(number) ? 'invalid number' : 'invalid token';
      return { type: 'T_ERROR', at, problem };
    }
    this.#at += number.length;
    return { type: 'T_NUMBER', at, value: parseNumber(number) };
  }

  #value(token: JsonToken, depth: number): LuaValue {
    if (token.type === 'T_OBJ_BEGIN') return this.#object(depth + 1);
    if (token.type === 'T_ARR_BEGIN') return this.#array(depth + 1);
    return 'value' in token ? token.value : this.#fail('value', token);
  }

  #descend(depth: number): void {
    if (depth <= Math.min(DEPTH_MAX, this.runtime.json.decodeDepth)) return;
    this.runtime.fail(`Found too many nested data structures (${depth}) at character ${this.#at}`);
  }

  #object(depth: number): LuaTable {
    this.#descend(depth);
    const table = new LuaTable();
    let token = this.#next();
    if (token.type === 'T_OBJ_END') return table;
    for (;;) {
      if (token.type !== 'T_STRING') this.#fail('object key string', token);
      const colon = this.#next();
      if (colon.type !== 'T_COLON') this.#fail('colon', colon);
      table.set(token.value, this.#value(this.#next(), depth));
      const after = this.#next();
      if (after.type === 'T_OBJ_END') return table;
      if (after.type !== 'T_COMMA') this.#fail('comma or object end', after);
      token = this.#next();
    }
  }

  #array(depth: number): LuaTable {
    this.#descend(depth);
    const items: LuaValue[] = [];
    let token = this.#next();
    if (token.type === 'T_ARR_END') return new LuaTable();
    for (;;) {
      items.push(this.#value(token, depth));
      const after = this.#next();
      if (after.type === 'T_ARR_END') return LuaTable.of(items);
      if (after.type !== 'T_COMMA') this.#fail('comma or array end', after);
      token = this.#next();
    }
  }
}

/** Without a regular expression, whose stack a long string might fill. @returns where the closing quote is */
function stringEnd(text: string, from: number): number | undefined {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at;
    if (code < 0x20) return undefined;
    if (code !== 0x5c) continue;
    ESCAPE.lastIndex = at;
    if (!ESCAPE.test(text)) return undefined;
    at = ESCAPE.lastIndex - 1;
  }
  return undefined;
}

function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  const pattern =
    /\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)/g;
  return text.replace(pattern, (_, high, low, single, character) => {
    if (character !== undefined) return UNESCAPED[character] ?? character;
    const codes = single === undefined ? [high, low] : [single];
    const decoded = String.fromCharCode(...codes.map((code) => Number.parseInt(code, 16)));
    return Buffer.from(decoded, 'utf8').toString('latin1');
  });
}

export function jsonLibrary(runtime: Runtime): LuaTable {
  const table = library(runtime, {
    decode: (args) => new Decoder(runtime, args.string(1)).decode(),
    encode: (args) => {
      if (args.count !== 1) args.fail(1, 'expected 1 argument');
      return new Encoder(runtime).encode(args.at(1), 0);
    },
    ...JSON_OPTIONS,
  });
  table.set('null', NULL);
  table.set('_NAME', 'cjson');
  table.set('_VERSION', '2.1.0');
  return table;
}
