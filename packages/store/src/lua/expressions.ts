/** Translates expressions, and the functions that are in them. */

import { Lexer, type Token } from './lexer.js';

/** Where something happens in the script. */
export interface Site {
  readonly chunk: string;
  readonly line: number;
  /** What the first and the second operand are called, such as "local 'x'". */
  readonly first?: string | undefined;
  readonly second?: string | undefined;
}

export interface Compiled {
  /** An expression of JavaScript that is the main function. */
  readonly code: string;
  readonly sites: readonly Site[];
}

/** How deep blocks, functions and expressions may be nested. */
const LEVELS_MAX = 200;
/** How many operators may follow each other. */
const OPERATORS_MAX = 500;
/** How deep brackets may be nested in the code of JavaScript, whose parser is recursive. */
const NESTING_MAX = 600;
/** How many arguments a call or a function may have, without those of `...`. */
const ARGUMENTS_MAX = 250;

export interface Expression {
  readonly code: string;
  /** How the error message calls the value. */
  readonly name?: string | undefined;
  /** An array of all values: for calls and `...`. */
  readonly all?: string | undefined;
  /** How to assign to it. */
  readonly assign?: Target;
}

type Target =
  | { readonly kind: 'local'; readonly variable: string }
  | { readonly kind: 'global'; readonly name: string }
  | {
      readonly kind: 'field';
      readonly object: Expression;
      readonly key: string;
      readonly line: number;
    };

interface Variable {
  readonly code: string;
  readonly level: number;
}

interface FunctionScope {
  readonly isVararg: boolean;
  loops: number;
  /** How many variables it has. */
  variables: number;
  /** How many expressions of lists wait for the others. */
  pending: number;
  pendingMost: number;
}

/** Left and right priority, and the function of the runtime. */
const BINARY: Readonly<Record<string, readonly [number, number, string]>> = {
  or: [1, 1, ''],
  and: [2, 2, ''],
  '<': [3, 3, 'lt'],
  '>': [3, 3, 'gt'],
  '<=': [3, 3, 'le'],
  '>=': [3, 3, 'ge'],
  '~=': [3, 3, '!eq'],
  '==': [3, 3, 'eq'],
  '..': [5, 4, 'concat'],
  '+': [6, 6, 'add'],
  '-': [6, 6, 'sub'],
  '*': [7, 7, 'mul'],
  '/': [7, 7, 'div'],
  '%': [7, 7, 'mod'],
  '^': [10, 9, 'pow'],
};
const UNARY_PRIORITY = 8;
const UNARY: Readonly<Record<string, string>> = { '-': 'unm', '#': 'len', not: '!is' };

const BLOCK_END = new Set(['end', 'else', 'elseif', 'until', '<eof>']);

export abstract class ExpressionCompiler {
  protected readonly lexer: Lexer;
  protected readonly sites: Site[] = [];
  protected readonly scopes: Map<string, Variable>[] = [];
  protected readonly functions: FunctionScope[] = [];
  protected token: Token;
  protected ahead: Token | undefined;
  protected lastId = 0;
  protected levels = 0;
  /** Of the token before. */
  protected line = 1;

  constructor(
    source: string,
    private readonly chunk: string,
  ) {
    this.lexer = new Lexer(source, chunk);
    this.token = this.lexer.next();
  }

  /** The statements of a block, up to what ends it. */
  protected abstract statements(): string;

  // --- tokens --------------------------------------------------------------------------------

  protected advance(): Token {
    const token = this.token;
    this.line = token.line;
    this.token = this.ahead ?? this.lexer.next();
    this.ahead = undefined;
    return token;
  }

  protected peek(): Token {
    this.ahead ??= this.lexer.next();
    return this.ahead;
  }

  protected is(symbol: string): boolean {
    return this.token.text === symbol && isSymbol(this.token);
  }

  protected accept(symbol: string): boolean {
    if (!this.is(symbol)) return false;
    this.advance();
    return true;
  }

  protected expect(symbol: string): void {
    if (!this.accept(symbol)) this.expected(symbol);
  }

  /** @param line  of what it closes */
  protected close(symbol: string, opener: string, line: number): void {
    if (this.accept(symbol)) return;
    if (line === this.token.line) this.expected(symbol);
    this.fail(`'${symbol}' expected (to close '${opener}' at line ${line})`);
  }

  protected expected(what: string): never {
    return this.fail(`'${what}' expected`);
  }

  protected fail(message: string): never {
    const { text, line } = this.token;
    return this.lexer.fail(message, line, text);
  }

  protected name(): string {
    if (this.token.type !== 'name') this.expected('<name>');
    return this.advance().text;
  }

  protected site(line: number, first?: string, second?: string): string {
    this.sites.push({ chunk: this.chunk, line, first, second });
    return `L[${this.sites.length - 1}]`;
  }

  protected nested<T>(parse: () => T): T {
    if (++this.levels > LEVELS_MAX) {
      this.lexer.fail('chunk has too many syntax levels', this.token.line);
    }
    const result = parse();
    this.levels--;
    return result;
  }

  // --- variables -----------------------------------------------------------------------------

  protected declare(name: string): string {
    const code = `${name}${this.temporary()}`;
    this.scopes[this.scopes.length - 1].set(name, { code, level: this.functions.length });
    return code;
  }

  protected temporary(): string {
    this.functions[this.functions.length - 1].variables++;
    return `$${++this.lastId}`;
  }

  protected variable(name: string): Expression {
    for (let i = this.scopes.length - 1; i >= 0; i--) {
      const variable = this.scopes[i].get(name);
      if (variable === undefined) continue;
      const kind = variable.level === this.functions.length ? 'local' : 'upvalue';
      const { code } = variable;
      return { code, name: `${kind} '${name}'`, assign: { kind: 'local', variable: code } };
    }
    const code = `global(${JSON.stringify(name)}, ${this.site(this.line)})`;
    return { code, name: `global '${name}'`, assign: { kind: 'global', name } };
  }

  // --- expressions ---------------------------------------------------------------------------

  protected expressionList(): Expression[] {
    const scope = this.functions[this.functions.length - 1];
    const expressions = [this.expression()];
    while (this.accept(',')) {
      scope.pendingMost = Math.max(scope.pendingMost, ++scope.pending);
      expressions.push(this.expression());
    }
    scope.pending -= expressions.length - 1;
    if (expressions.length > ARGUMENTS_MAX) this.fail('function or expression too complex');
    return expressions;
  }

  /** The values of a list, with commas: the last expression may have any number. */
  protected values(expressions: readonly Expression[]): string {
    return expressions
      .map(({ code, all }, i) =>
        all !== undefined && i === expressions.length - 1 ? `...many(${all})` : code,
      )
      .join(', ');
  }

  protected array(expressions: readonly Expression[]): string {
    const [only] = expressions;
    if (expressions.length === 1 && only.all !== undefined) return only.all;
    return `[${this.values(expressions)}]`;
  }

  protected expression(limit = 0): Expression {
    return this.nested(() => {
      let left = this.unaryOrSimple();
      for (let operators = 0; ; operators++) {
        const operator = isSymbol(this.token) ? BINARY[this.token.text] : undefined;
        if (operator === undefined || operator[0] <= limit) return left;
        // The code of JavaScript is nested as deep.
        if (operators >= OPERATORS_MAX) this.fail('expression has too many operators');
        const { text, line } = this.advance();
        left = this.binary(text, operator[2], left, this.expression(operator[1]), line);
      }
    });
  }

  protected binary(
    symbol: string,
    name: string,
    left: Expression,
    right: Expression,
    line: number,
  ): Expression {
    if (symbol === 'and') return { code: `(is(t = ${left.code}) ? ${right.code} : t)` };
    if (symbol === 'or') return { code: `(is(t = ${left.code}) ? t : ${right.code})` };
    const site = this.site(line, left.name, right.name);
    return { code: `${name}(${left.code}, ${right.code}, ${site})` };
  }

  protected unaryOrSimple(): Expression {
    const name = isSymbol(this.token) ? UNARY[this.token.text] : undefined;
    if (name === undefined) return this.simple();
    const { line } = this.advance();
    const operand = this.expression(UNARY_PRIORITY);
    if (name === 'unm' && /^\d/.test(operand.code)) return { code: `-${operand.code}` };
    return { code: `${name}(${operand.code}, ${this.site(line, operand.name)})` };
  }

  protected simple(): Expression {
    const { type, text, value, line } = this.token;
    if (type === 'number') {
      this.advance();
      return { code: String(value) };
    }
    if (type === 'string') {
      this.advance();
      return { code: JSON.stringify(text) };
    }
    if (type === 'symbol') {
      if (text === 'nil' || text === 'true' || text === 'false') {
        this.advance();
        return { code: text === 'nil' ? 'undefined' : text };
      }
      if (text === '...') {
        if (!this.functions[this.functions.length - 1].isVararg) {
          this.fail("cannot use '...' outside a vararg function");
        }
        this.advance();
        return { code: 'va[0]', all: 'va' };
      }
      if (text === '{') return this.table();
      if (text === 'function') {
        this.advance();
        return { code: this.function(line, false) };
      }
    }
    return this.suffixed();
  }

  protected suffixed(): Expression {
    const { line } = this.token;
    let expression: Expression;
    if (this.accept('(')) {
      const { code } = this.expression();
      this.close(')', '(', line);
      expression = { code: `(${code})` };
    } else if (this.token.type === 'name') {
      expression = this.variable(this.advance().text);
    } else {
      return this.fail('unexpected symbol');
    }
    for (;;) {
      const { type, line: at } = this.token;
      if (this.accept('.')) {
        expression = this.field(expression, JSON.stringify(this.name()), at);
      } else if (this.accept('[')) {
        const { code } = this.expression();
        this.expect(']');
        expression = this.field(expression, code, at);
      } else if (this.accept(':')) {
        expression = this.methodCall(expression, this.name(), at);
      } else if (type === 'string' || this.is('(') || this.is('{')) {
        const site = this.site(at, expression.name);
        expression = this.call(`fn(${expression.code}, ${site})`, this.arguments());
      } else {
        return expression;
      }
    }
  }

  protected field(object: Expression, key: string, line: number): Expression {
    const site = this.site(line, object.name);
    const isName = key.startsWith('"');
    return {
      code: `index(${object.code}, ${key}, ${site})`,
      name: isName ? `field '${JSON.parse(key)}'` : "field '?'",
      assign: { kind: 'field', object, key, line },
    };
  }

  protected methodCall(object: Expression, method: string, line: number): Expression {
    const name = JSON.stringify(method);
    const sites = `${this.site(line, object.name)}, ${this.site(line, `method '${method}'`)}`;
    const self = this.temporary();
    const args = this.arguments();
    const { all } = this.call(`method(${self}, ${name}, ${sites})`, [{ code: self }, ...args]);
    return called(`((${self}) => ${all})(${object.code})`);
  }

  protected call(callee: string, args: readonly Expression[]): Expression {
    const values = this.values(args);
    const isOpen = args[args.length - 1]?.all !== undefined;
    return called(isOpen ? `apply(${callee}, [${values}])` : `${callee}(${values})`);
  }

  protected arguments(): readonly Expression[] {
    const { type, text, line } = this.token;
    if (type === 'string') {
      this.advance();
      return [{ code: JSON.stringify(text) }];
    }
    if (this.is('{')) return [this.table()];
    if (!this.is('(')) this.fail('function arguments expected');
    if (line !== this.line) this.fail('ambiguous syntax (function call x new statement)');
    this.advance();
    if (this.accept(')')) return [];
    const args = this.expressionList();
    this.close(')', '(', line);
    return args;
  }

  protected table(): Expression {
    const { line } = this.token;
    this.expect('{');
    const items: Expression[] = [];
    let hasFields = false;
    while (!this.is('}')) {
      const isNamed =
        this.token.type === 'name' && isSymbol(this.peek()) && this.peek().text === '=';
      if (isNamed || this.is('[')) {
        hasFields = true;
        items.push(this.tableField(isNamed));
      } else items.push(this.expression());
      if (!this.accept(',') && !this.accept(';')) break;
    }
    this.close('}', '{', line);
    if (items.length === 0) return { code: 'newTable()' };
    const array = `[${this.values(items)}]`;
    return { code: hasFields ? `tableOf(${array}, ${this.site(line)})` : `listOf(${array})` };
  }

  protected tableField(isNamed: boolean): Expression {
    let key: string;
    if (isNamed) key = JSON.stringify(this.name());
    else {
      this.expect('[');
      key = this.expression().code;
      this.expect(']');
    }
    this.expect('=');
    return { code: `new Field(${key}, ${this.expression().code})` };
  }

  protected function(line: number, isMethod: boolean): string {
    this.expect('(');
    const names = isMethod ? ['self'] : [];
    let isVararg = false;
    if (!this.is(')')) {
      do {
        isVararg = this.accept('...');
        if (!isVararg) names.push(this.name());
      } while (!isVararg && this.accept(','));
    }
    if (names.length > ARGUMENTS_MAX) this.fail('function or expression too complex');
    this.expect(')');
    return this.functionBody(names, isVararg, () => this.close('end', 'function', line));
  }

  protected functionBody(names: readonly string[], isVararg: boolean, close: () => void): string {
    return this.nested(() => {
      const scope = { isVararg, loops: 0, variables: 0, pending: 0, pendingMost: 0 };
      this.functions.push(scope);
      this.scopes.push(new Map());
      const variables = names.map((name) => this.declare(name));
      const parameters = [...variables, ...(isVararg ? ['...va'] : [])].join();
      const body = this.statements();
      this.scopes.pop();
      this.functions.pop();
      close();
      const depth = nesting(body);
      if (depth > NESTING_MAX) {
        this.lexer.fail('chunk has too many syntax levels', this.token.line);
      }
      const slots = scope.variables + 2 * (scope.pendingMost + depth);
      return `(${parameters}) => { const w = ${slots}; enter(w); let t;\n${body}return leave(NONE, w); }`;
    });
  }
}

/** How deep brackets are nested in code of JavaScript. Those in strings don't count. */
function nesting(code: string): number {
  let depth = 0;
  let most = 0;
  for (let i = 0; i < code.length; i++) {
    const character = code[i];
    if (character === '"') {
      for (i++; code[i] !== '"'; i++) if (code[i] === '\\') i++;
    } else if (character === '(' || character === '[' || character === '{') {
      most = Math.max(most, ++depth);
    } else if (character === ')' || character === ']' || character === '}') depth--;
  }
  return most;
}

function called(all: string): Expression {
  return { code: `${all}[0]`, all };
}

export function isSymbol({ type }: Token): boolean {
  return type === 'symbol' || type === 'end';
}

export function isBlockEnd(token: Token): boolean {
  return isSymbol(token) && BLOCK_END.has(token.text);
}
