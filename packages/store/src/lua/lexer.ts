/** Splits a chunk of Lua 5.1 into tokens. */

export type TokenType = 'name' | 'string' | 'number' | 'symbol' | 'end';

export interface Token {
  readonly type: TokenType;
  /** For keywords and symbols what they look like; for strings their value. */
  readonly text: string;
  readonly value: number;
  readonly line: number;
}

export class SyntaxProblem extends Error {
  override name = 'SyntaxProblem';
}

const KEYWORDS = new Set([
  ...['and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'if', 'in'],
  ...['local', 'nil', 'not', 'or', 'repeat', 'return', 'then', 'true', 'until', 'while'],
]);

const SPACE = /[ \t\n\v\f\r]*/y;
const NAME = /[A-Za-z_][A-Za-z_0-9]*/y;
const NUMBER = /0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y;
const SYMBOL = /\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.]/y;
const LONG_OPEN = /\[(=*)\[/y;
const LINE = /[^\r\n]*/y;
/** A line ends with one of these. */
const LINE_ENDS = /\r\n|\n\r|\r|\n/g;
const LINE_END = new RegExp(LINE_ENDS, 'y');
/** What stands for itself in a string. */
const PLAIN = /[^\\"'\r\n]+/y;
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
};

export class Lexer {
  #at = 0;
  #line = 1;

  constructor(
    private readonly source: string,
    private readonly chunk: string,
  ) {}

  fail(message: string, line: number, near?: string): never {
    const suffix = near === undefined ? '' : ` near '${near}'`;
    throw new SyntaxProblem(`${this.chunk}:${line}: ${message}${suffix}`);
  }

  next(): Token {
    this.#skip();
    const line = this.#line;
    const { source } = this;
    if (this.#at >= source.length) return token('end', '<eof>', line);
    const name = this.#match(NAME);
    if (name !== undefined) return token(KEYWORDS.has(name) ? 'symbol' : 'name', name, line);
    const first = source[this.#at];
    if (first === '"' || first === "'") return token('string', this.#shortString(first), line);
    const long = this.#match(LONG_OPEN);
    if (long !== undefined) return token('string', this.#longString(long, 'string'), line);
    const number = this.#match(NUMBER);
    if (number !== undefined) {
      const rest = this.#match(NAME);
      if (rest !== undefined) this.fail('malformed number', line, number + rest);
      return { type: 'number', text: number, value: Number(number), line };
    }
    const symbol = this.#match(SYMBOL);
    if (symbol !== undefined) return token('symbol', symbol, line);
    return this.fail('unexpected symbol', line, first);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.source)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #skip(): void {
    for (;;) {
      this.#countLines(this.#match(SPACE)!);
      if (!this.source.startsWith('--', this.#at)) return;
      this.#at += 2;
      const long = this.#match(LONG_OPEN);
      if (long !== undefined) {
        this.#longString(long, 'comment');
        continue;
      }
      this.#match(LINE);
    }
  }

  #countLines(text: string): void {
    LINE_ENDS.lastIndex = 0;
    while (LINE_ENDS.test(text)) this.#line++;
  }

  #longString(open: string, what: string): string {
    const close = open.replaceAll('[', ']');
    const end = this.source.indexOf(close, this.#at);
    if (end < 0) this.fail(`unfinished long ${what}`, this.#line, '<eof>');
    const text = this.source.slice(this.#at, end);
    this.#at = end + close.length;
    this.#countLines(text);
    return text.replace(LINE_ENDS, '\n').replace(/^\n/, '');
  }

  #shortString(quote: string): string {
    const { source } = this;
    const from = this.#at++;
    let value = '';
    for (;;) {
      value += this.#match(PLAIN) ?? '';
      const character = source[this.#at++];
      if (character === quote) return value;
      if (character === undefined) this.fail('unfinished string', this.#line, '<eof>');
      if (character === '\n' || character === '\r') {
        this.fail('unfinished string', this.#line, source.slice(from, this.#at - 1));
      }
      value += character === '\\' ? this.#escape() : character;
    }
  }

  #escape(): string {
    if (this.#match(LINE_END) !== undefined) {
      this.#line++;
      return '\n';
    }
    const { source } = this;
    const character = source[this.#at++] ?? '';
    if (!/\d/.test(character)) return ESCAPES[character] ?? character;
    const digits = /^\d{1,3}/.exec(source.slice(this.#at - 1, this.#at + 2))![0];
    this.#at += digits.length - 1;
    if (Number(digits) > 255) this.fail('escape sequence too large', this.#line, `\\${digits}`);
    return String.fromCharCode(Number(digits));
  }
}

function token(type: TokenType, text: string, line: number): Token {
  return { type, text, value: 0, line };
}
