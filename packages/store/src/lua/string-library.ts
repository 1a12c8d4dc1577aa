/** The library `string`. */

import { type Arguments, type Native, toLua } from './arguments.js';
import { formatE, formatF, formatG } from './numbers.js';
import { Matcher } from './patterns.js';
import { isTrue, RESULTS_MAX, type Runtime, STRING_MAX, toText } from './runtime.js';
import { LuaTable, type LuaValue } from './values.js';

const SPECIAL = /[$^*+?.([%-]/;
const DIRECTIVE = /%([-+ #0]*)(\d*)(?:\.(\d*))?(.?)/gs;

/** Positions that are negative count from the end. */
function position(at: number, length: number): number {
  return at >= 0 ? at : Math.max(0, length + at + 1);
}

function find(args: Arguments, isFind: boolean): LuaValue | readonly LuaValue[] {
  const text = args.string(1);
  const pattern = args.string(2);
  const start = Math.max(1, position(args.integer(3, 1), text.length)) - 1;
  if (start > text.length) return undefined;
  if (isFind && (isTrue(args.at(4)) || !SPECIAL.test(pattern))) {
    // The worst case: almost all of the pattern is found everywhere.
    args.runtime.spend(Math.floor((text.length * pattern.length) / 1024));
    const found = text.indexOf(pattern, start);
    return found < 0 ? undefined : [found + 1, found + pattern.length];
  }
  const isAnchored = pattern.startsWith('^');
  const matcher = new Matcher(args.runtime, text, pattern);
  for (let at = start; at <= text.length; at++) {
    const end = matcher.matchAt(at, isAnchored ? 1 : 0);
    if (end !== undefined) {
      const captures = matcher.captures(at, end, !isFind);
      return isFind ? [at + 1, end, ...captures] : captures;
    }
    if (isAnchored) break;
  }
  return undefined;
}

function gmatch(args: Arguments): LuaValue {
  const text = args.string(1);
  const matcher = new Matcher(args.runtime, text, args.string(2));
  let at = 0;
  return () => {
    for (; at <= text.length; at++) {
      const end = matcher.matchAt(at);
      if (end === undefined) continue;
      const captures = matcher.captures(at, end, true);
      at = end === at ? at + 1 : end;
      return captures;
    }
    return [undefined];
  };
}

function gsub(args: Arguments): readonly LuaValue[] {
  const { runtime } = args;
  const text = args.string(1);
  const pattern = args.string(2);
  const replacement = args.at(3);
  const isText = toText(replacement) !== undefined;
  if (!isText && typeof replacement !== 'function' && !(replacement instanceof LuaTable)) {
    args.fail(3, 'string/function/table expected');
  }
  const most = args.integer(4, text.length + 1);
  const isAnchored = pattern.startsWith('^');
  const matcher = new Matcher(runtime, text, pattern);
  let at = 0;
  let count = 0;
  let result = '';
  while (count < most) {
    const end = matcher.matchAt(at, isAnchored ? 1 : 0);
    if (end !== undefined) {
      count++;
      result += replaced(runtime, matcher, replacement, at, end, text);
    }
    if (end !== undefined && end > at) at = end;
    else if (at < text.length) result += text[at++];
    else break;
    if (isAnchored) break;
  }
  return [result + text.slice(at), count];
}

function replaced(
  runtime: Runtime,
  matcher: Matcher,
  replacement: LuaValue,
  start: number,
  end: number,
  text: string,
): string {
  const template = toText(replacement);
  if (template !== undefined) {
    runtime.spendOn(template.length);
    return template.replace(/%(.?)/gs, (_, digit: string) => {
      if (!/[0-9]/.test(digit)) return digit;
      return toText(matcher.capture(Number(digit), start, end))!;
    });
  }
  const value =
    replacement instanceof LuaTable
      ? runtime.index(replacement, matcher.capture(1, start, end), {
          chunk: '',
          line: runtime.line,
        })
      : runtime.call(replacement, matcher.captures(start, end, true))[0];
  if (!isTrue(value)) return text.slice(start, end);
  const result = toText(value);
  if (result !== undefined) runtime.spendOn(result.length);
  return result ?? runtime.fail(`invalid replacement value (a ${typeof value})`);
}

function format(args: Arguments): string {
  let next = 1;
  return args.string(1).replace(DIRECTIVE, (all, flags: string, width, precision, kind: string) => {
    if (kind === '%') return '%';
    if (String(width).length > 2 || String(precision ?? '').length > 2) {
      args.runtime.fail('invalid format (width or precision too long)');
    }
    const digits = precision === undefined ? undefined : Number(precision);
    const text = formatOne(args, ++next, kind, flags, digits, all);
    const pads = Number(width) - text.length;
    if (pads <= 0) return text;
    if (flags.includes('-')) return text + ' '.repeat(pads);
    const isPadded = flags.includes('0') && !'sqc'.includes(kind) && /\d/.test(text);
    if (!isPadded || (digits !== undefined && 'dioxXu'.includes(kind)))
      return ' '.repeat(pads) + text;
    const [sign] = /^[-+ ]?(?:0[xX](?=.))?/.exec(text)!;
    return sign + '0'.repeat(pads) + text.slice(sign.length);
  });
}

function formatOne(
  args: Arguments,
  at: number,
  kind: string,
  flags: string,
  precision: number | undefined,
  directive: string,
): string {
  if (kind === 's') return args.string(at).slice(0, precision);
  if (kind === 'q') return quoted(args.string(at));
  if (kind === 'c') return String.fromCharCode(args.integer(at) & 255);
  const signed = (text: string): string => {
    if (text.startsWith('-')) return text;
    return flags.includes('+') ? `+${text}` : flags.includes(' ') ? ` ${text}` : text;
  };
  if (kind === 'd' || kind === 'i') {
    const value = toInt64(args.number(at));
    const text = (value < 0n ? -value : value).toString().padStart(precision ?? 1, '0');
    return value < 0n ? `-${text}` : signed(text);
  }
  if (kind !== '' && 'ouxX'.includes(kind)) {
    const value = BigInt.asUintN(64, toInt64(args.number(at)));
    const base = kind === 'o' ? 8 : kind === 'u' ? 10 : 16;
    const text = value.toString(base).padStart(precision ?? 1, '0');
    const prefixed = flags.includes('#') && base === 16 && value !== 0n ? `0x${text}` : text;
    return kind === 'X' ? prefixed.toUpperCase() : prefixed;
  }
  const formats: Readonly<Record<string, (value: number, precision: number) => string>> = {
    e: formatE,
    f: formatF,
    g: (value, digits) => formatG(value, digits, flags.includes('#')),
  };
  const write = formats[kind.toLowerCase()];
  if (write === undefined) {
    args.runtime.fail(`invalid option '${directive}' to 'format'`);
  }
  const text = signed(write(args.number(at), precision ?? 6));
  return kind === kind.toLowerCase() ? text : text.toUpperCase();
}

/** As a cast of C: what does not fit becomes the least integer. */
function toInt64(value: number): bigint {
  if (!(Math.abs(value) < 2 ** 63)) return -(2n ** 63n);
  return BigInt(Math.trunc(value));
}

function quoted(text: string): string {
  const inner = text.replace(/["\\\n\r\0]/g, (c) =>
    c === '\r' ? '\\r' : c === '\0' ? '\\000' : `\\${c}`,
  );
  return `"${inner}"`;
}

const NATIVES: Readonly<Record<string, Native>> = {
  byte: (args) => {
    const text = args.string(1);
    const from = position(args.integer(2, 1), text.length);
    const to = position(args.integer(3, from), text.length);
    if (Math.min(to, text.length) - from >= RESULTS_MAX) args.runtime.fail('string slice too long');
    const bytes: number[] = [];
    for (let i = Math.max(1, from); i <= Math.min(to, text.length); i++) {
      bytes.push(text.charCodeAt(i - 1));
    }
    args.runtime.spend(bytes.length);
    return bytes;
  },
  char: (args) =>
    args.values
      .map((_, i) => {
        const code = args.integer(i + 1);
        if (code < 0 || code > 255) args.fail(i + 1, 'invalid value');
        return String.fromCharCode(code);
      })
      .join(''),
  find: (args) => find(args, true),
  format,
  gmatch,
  gsub,
  len: (args) => args.string(1).length,
  lower: (args) => args.string(1).replace(/[A-Z]+/g, (letters) => letters.toLowerCase()),
  match: (args) => find(args, false),
  rep: (args) => {
    const text = args.string(1);
    const count = Math.max(0, args.integer(2));
    if (text === '') return '';
    if (text.length * count > STRING_MAX) args.runtime.fail('resulting string too large');
    args.runtime.spend((text.length * count) >>> 4);
    return text.repeat(count);
  },
  reverse: (args) => Buffer.from(args.string(1), 'latin1').reverse().toString('latin1'),
  sub: (args) => {
    const text = args.string(1);
    const from = Math.max(1, position(args.integer(2), text.length));
    const to = position(args.integer(3, -1), text.length);
    return from > to ? '' : text.slice(from - 1, to);
  },
  upper: (args) => args.string(1).replace(/[a-z]+/g, (letters) => letters.toUpperCase()),
};

export function stringLibrary(runtime: Runtime): LuaTable {
  const table = new LuaTable();
  for (const [name, native] of Object.entries(NATIVES))
    table.set(name, toLua(runtime, name, native));
  return table;
}
