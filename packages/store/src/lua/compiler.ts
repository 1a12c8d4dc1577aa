/**
 * Translates Lua 5.1 to JavaScript, in one pass. A local variable becomes one of JavaScript, and a function becomes a function: closures, missing
 * arguments and fresh variables of each round of a loop mean the same there. What can fail calls the runtime (`runtime.ts`) with its *site*:
 * the line, and what the operands are called, for the message.
 */

import { type Compiled, type Expression, ExpressionCompiler, isBlockEnd } from './expressions.js';

export function compile(source: string, chunk: string): Compiled {
  return new Compiler(source, chunk).compile();
}

class Compiler extends ExpressionCompiler {
  compile(): Compiled {
    const code = this.functionBody([], true, () => {
      if (this.token.type !== 'end') this.expected('<eof>');
    });
    return { code, sites: this.sites };
  }

  // --- blocks and statements -----------------------------------------------------------------

  private block(parse?: () => string): string {
    return this.nested(() => {
      this.scopes.push(new Map());
      const code = (parse ?? (() => this.statements()))();
      this.scopes.pop();
      return `{${code}}`;
    });
  }

  protected override statements(): string {
    let code = '';
    while (!isBlockEnd(this.token)) {
      const isLast = this.is('return') || this.is('break');
      code += `${this.statement()};\n`;
      this.accept(';');
      if (isLast) break;
    }
    return code;
  }

  private statement(): string {
    const { line } = this.token;
    if (this.accept('if')) return this.if(line);
    if (this.accept('while')) {
      const condition = this.expression().code;
      this.expect('do');
      return `while (is(${condition})) ${this.loopBody('while', line)}`;
    }
    if (this.accept('do')) {
      const code = this.block();
      this.close('end', 'do', line);
      return code;
    }
    if (this.accept('for')) return this.for(line);
    if (this.accept('repeat')) return this.repeat(line);
    if (this.accept('function')) return this.functionStatement(line);
    if (this.accept('local')) return this.accept('function') ? this.localFunction() : this.local();
    if (this.accept('return')) return this.return();
    if (this.accept('break')) {
      if (this.functions[this.functions.length - 1].loops === 0) {
        this.lexer.fail('no loop to break', line, this.token.text);
      }
      return 'break';
    }
    return this.assignmentOrCall();
  }

  private if(line: number): string {
    let code = '';
    let closing = '';
    for (;;) {
      const condition = this.expression().code;
      this.expect('then');
      code += `if (is(${condition})) ${this.block()} `;
      if (!this.accept('elseif')) break;
      code += 'else {';
      closing += '}';
    }
    if (this.accept('else')) code += `else ${this.block()}`;
    this.close('end', 'if', line);
    return code + closing;
  }

  /** @returns the block, up to its `end` */
  private loopBody(opener: string, line: number, before = '', declare?: () => string): string {
    const scope = this.functions[this.functions.length - 1];
    scope.loops++;
    const step = this.step(line);
    const code = this.block(() => step + before + (declare?.() ?? '') + this.statements());
    scope.loops--;
    this.close('end', opener, line);
    return code;
  }

  private step(line: number): string {
    return `if (--S.fuel < 0) exhausted(${this.site(line)});\n`;
  }

  private repeat(line: number): string {
    const scope = this.functions[this.functions.length - 1];
    scope.loops++;
    const code = this.block(() => {
      const body = this.step(line) + this.statements();
      this.close('until', 'repeat', line);
      return `${body} if (is(${this.expression().code})) break;`;
    });
    scope.loops--;
    return `for (;;) ${code}`;
  }

  private for(line: number): string {
    const names = [this.name()];
    if (this.is('=')) return this.numericFor(names[0], line);
    while (this.accept(',')) names.push(this.name());
    this.expect('in');
    const values = this.expressionList();
    this.expect('do');
    const [f, s, control, results] = [1, 2, 3, 4].map(() => this.temporary());
    const site = this.site(line, undefined);
    const body = this.loopBody(
      'for',
      line,
      `const ${results} = fn(${f}, ${site})(${s}, ${control});\n`,
      () => {
        const variables = names.map((name) => this.declare(name));
        const declared = variables.map((variable, i) => `${variable} = ${results}[${i}]`).join();
        return `let ${declared};\nif (${variables[0]} === undefined) break;\n${control} = ${variables[0]};\n`;
      },
    );
    return `{ let [${f}, ${s}, ${control}] = ${this.array(values)};\nfor (;;) ${body} }`;
  }

  private numericFor(name: string, line: number): string {
    this.expect('=');
    const first = this.expression().code;
    this.expect(',');
    const limit = this.expression().code;
    const step = this.accept(',') ? this.expression().code : '1';
    this.expect('do');
    const [i, end, by] = [1, 2, 3].map(() => this.temporary());
    const body = this.loopBody('for', line, '', () => `let ${this.declare(name)} = ${i};\n`);
    const limits = `forLimits(${first}, ${limit}, ${step}, ${this.site(line)})`;
    return `{ let [${i}, ${end}, ${by}] = ${limits};
for (; ${by} > 0 ? ${i} <= ${end} : ${i} >= ${end}; ${i} += ${by}) ${body} }`;
  }

  private functionStatement(line: number): string {
    let target = this.variable(this.name());
    let isMethod = false;
    while (this.is('.') || this.is(':')) {
      isMethod = this.advance().text === ':';
      target = this.field(target, JSON.stringify(this.name()), line);
      if (isMethod) break;
    }
    return this.assign(target, this.function(line, isMethod));
  }

  private localFunction(): string {
    const { line } = this.token;
    const variable = this.declare(this.name());
    return `let ${variable}; ${variable} = ${this.function(line, false)}`;
  }

  private local(): string {
    const names: string[] = [];
    do names.push(this.name());
    while (this.accept(','));
    if (!this.accept('=')) return `let ${names.map((name) => this.declare(name)).join()}`;
    const values = this.expressionList();
    if (names.length === 1 && values.length === 1) {
      const { code } = values[0];
      return `let ${this.declare(names[0])} = ${code}`;
    }
    const array = this.array(values);
    return `let [${names.map((name) => this.declare(name)).join()}] = ${array}`;
  }

  private return(): string {
    const isEmpty = this.is(';') || isBlockEnd(this.token);
    if (isEmpty) return 'return leave(NONE, w)';
    return `return leave(${this.array(this.expressionList())}, w)`;
  }

  private assignmentOrCall(): string {
    const { line } = this.token;
    const first = this.suffixed();
    if (!this.is('=') && !this.is(',')) {
      if (first.all === undefined || first.assign !== undefined) this.expected('=');
      return first.all;
    }
    const targets = [first];
    while (this.accept(',')) targets.push(this.suffixed());
    if (targets.some(({ assign }) => assign === undefined)) this.fail('syntax error');
    this.expect('=');
    const values = this.expressionList();
    if (targets.length === 1 && values.length === 1) return this.assign(first, values[0].code);
    return this.assignAll(targets, values, line);
  }

  /** All expressions are evaluated before anything is assigned. */
  private assignAll(
    targets: readonly Expression[],
    values: readonly Expression[],
    line: number,
  ): string {
    let code = '';
    const evaluated = targets.map((target): Expression => {
      const { assign } = target;
      if (assign?.kind !== 'field') return target;
      const [object, key] = [this.temporary(), this.temporary()];
      code += `const ${object} = ${assign.object.code}, ${key} = ${assign.key};\n`;
      const named = { code: object, name: assign.object.name };
      return { code: '', assign: { kind: 'field', object: named, key, line } };
    });
    const results = targets.map(() => this.temporary());
    code += `const [${results.join()}] = ${this.array(values)};\n`;
    // As Lua does it: the last one first.
    for (let i = targets.length - 1; i >= 0; i--)
      code += `${this.assign(evaluated[i], results[i])};\n`;
    return `{${code}}`;
  }

  private assign({ assign }: Expression, value: string): string {
    if (assign?.kind === 'local') return `${assign.variable} = ${value}`;
    if (assign?.kind === 'global') {
      return `setGlobal(${JSON.stringify(assign.name)}, ${value}, ${this.site(this.line)})`;
    }
    if (assign === undefined) return this.fail('syntax error');
    const site = this.site(assign.line, assign.object.name);
    return `setIndex(${assign.object.code}, ${assign.key}, ${value}, ${site})`;
  }
}
