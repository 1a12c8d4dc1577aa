/** Runs scripts: Lua with the library `redis`, through which they run commands. */

import { type Arguments, type Native, toLua } from '../../lua/arguments.js';
import { addBase, mathLibrary } from '../../lua/base-library.js';
import { bitLibrary } from '../../lua/bit-library.js';
import { jsonLibrary } from '../../lua/json-library.js';
import { SyntaxProblem } from '../../lua/lexer.js';
import { msgpackLibrary } from '../../lua/msgpack-library.js';
import { Runtime, toNumber } from '../../lua/runtime.js';
import { stringLibrary } from '../../lua/string-library.js';
import { structLibrary } from '../../lua/struct-library.js';
import {
  Exhausted,
  LuaError,
  type LuaFunction,
  LuaTable,
  type LuaValue,
} from '../../lua/values.js';
import { type Bytes, ErrorReply, type Reply } from '../../resp/reply.js';
import type { Protocol } from '../../resp/writer.js';
import { BEYOND, Beyond, callCommand, forClient, isUnknown, type Run } from './calls.js';
import { toArgument, toLuaValue, toReply } from './conversions.js';
import { Made } from './made.js';
import { type Registered, readRegistration } from './registration.js';
import { sha1 } from './scripts.js';

/** How many rounds of loops and calls of functions a script may take: about a second. */
const STEPS_MAX = 20_000_000;
/** What a command counts for. */
const STEPS_PER_CALL = 50;
/** How long the scripts together may be that are kept compiled. That takes several times as much memory. */
const COMPILED_BYTES_MAX = 2 ** 24;

const CONSTANTS = {
  LOG_DEBUG: 0,
  LOG_VERBOSE: 1,
  LOG_NOTICE: 2,
  LOG_WARNING: 3,
  REDIS_VERSION: '7.0.15',
  REDIS_VERSION_NUM: 0x07000f,
};

export class Interpreter {
  readonly #runtime = new Runtime();
  /** What scripts and functions find, and what a library finds while it is loaded. */
  readonly #globals: LuaTable;
  readonly #globalsOfLoad: LuaTable;
  readonly #compiled = {
    user_script: this.#compiledAs('user_script'),
    user_function: this.#compiledAs('user_function'),
  };
  #run: Run | undefined;
  #protocol: Protocol = 2;
  /** While a library is loaded. */
  #registered: Registered[] | undefined;
  #seed: number | undefined;

  constructor() {
    const runtime = this.#runtime;
    const { globals } = runtime;
    addBase(runtime);
    runtime.stringMethods = stringLibrary(runtime);
    globals.set('string', runtime.stringMethods);
    globals.set('math', this.#math());
    globals.set('bit', bitLibrary(runtime));
    globals.set('cjson', jsonLibrary(runtime));
    globals.set('cmsgpack', msgpackLibrary(runtime));
    globals.set('struct', structLibrary(runtime));
    globals.set('pcall', toLua(runtime, 'pcall', pcall));
    globals.set('redis', this.#redisLibrary());
    this.#globals = globals;
    this.#globalsOfLoad = LuaTable.record({ redis: this.#redisLibraryOfLoad() });
    const protection = new LuaTable();
    protection.set('__index', (_table, name) =>
      runtime.fail(
        `Script attempted to access nonexistent global variable '${runtime.tostring(name)}'`,
      ),
    );
    protection.isReadonly = true;
    globals.metatable = protection;
    for (const [, value] of globals.entries()) {
      if (value instanceof LuaTable) value.isReadonly = true;
    }
    for (const table of [this.#globalsOfLoad, this.#globalsOfLoad.get('redis') as LuaTable]) {
      table.metatable = protection;
      table.isReadonly = true;
    }
  }

  /** @throws ErrorReply if it can't be compiled */
  compile(body: Bytes, chunk: Run['chunk']): LuaFunction {
    try {
      return this.#compiled[chunk].of(body);
    } catch (error) {
      const what = chunk === 'user_script' ? 'script (new function)' : 'function';
      const reason = error instanceof SyntaxProblem ? error.message : 'the script is too complex';
      throw new ErrorReply(`ERR Error compiling ${what}: ${reason}`);
    }
  }

  #compiledAs(chunk: Run['chunk']): Made<LuaFunction> {
    return new Made(COMPILED_BYTES_MAX, (body) => this.#runtime.load(body, chunk));
  }

  runScript(body: Bytes, args: readonly Bytes[], run: Run): Reply {
    const script = this.compile(body, run.chunk);
    const { globals } = this.#runtime;
    globals.set('KEYS', LuaTable.of(run.keys));
    globals.set('ARGV', LuaTable.of(args));
    try {
      return this.#start(run, () => this.#runtime.start(STEPS_MAX, script, []));
    } finally {
      globals.set('KEYS', undefined);
      globals.set('ARGV', undefined);
    }
  }

  /** @param callback  that a library has just registered */
  runFunction(callback: LuaFunction, args: readonly Bytes[], run: Run): Reply {
    const tables = [LuaTable.of(run.keys), LuaTable.of(args)];
    return this.#start(run, () => this.#runtime.start(STEPS_MAX, callback, tables));
  }

  /** Runs the code of a library, which registers functions. Nothing of it stays. */
  load(code: Bytes): readonly Registered[] {
    const library = this.compile(code, 'user_function');
    const registered: Registered[] = [];
    this.#registered = registered;
    this.#runtime.globals = this.#globalsOfLoad;
    try {
      this.#runtime.start(STEPS_MAX, library, []);
    } catch (error) {
      const isTooLong = error instanceof Exhausted;
      const text = isTooLong ? 'ERR FUNCTION LOAD timeout' : this.#describe(error).text;
      throw new ErrorReply(`ERR Error registering functions: ${text}`);
    } finally {
      this.#registered = undefined;
      this.#runtime.globals = this.#globals;
    }
    return registered;
  }

  #start(run: Run, call: () => readonly LuaValue[]): Reply {
    this.#run = run;
    this.#protocol = 2;
    this.#seed = undefined;
    try {
      const [value] = call();
      return forClient(toReply(value, this.#protocol, (steps) => this.#runtime.spend(steps)));
    } catch (error) {
      if (error instanceof Beyond) return new ErrorReply(BEYOND + error.message);
      const { text, line } = this.#describe(error);
      return forClient(new ErrorReply(`${text} script: ${run.name}, on @${run.chunk}:${line}.`));
    } finally {
      this.#run = undefined;
    }
  }

  /** @throws what is no error of the script */
  #describe(error: unknown): { text: string; line: number } {
    if (error instanceof Exhausted) {
      return { text: 'ERR Script was stopped because it took too long', line: error.line };
    }
    if (error instanceof RangeError) return { text: 'ERR not enough memory', line: 0 };
    if (!(error instanceof LuaError)) throw error;
    const { value, line } = error;
    if (value instanceof LuaTable) {
      const reason = value.get('err');
      return { text: typeof reason === 'string' ? reason : 'ERR unknown error', line };
    }
    const text = this.#runtime.tostring(value);
    return { text: `ERR ${text.replace(/[\r\n]/g, ' ')}`, line };
  }

  // --- the library ---------------------------------------------------------------------------

  #redisLibrary(): LuaTable {
    const runtime = this.#runtime;
    const table = LuaTable.record({
      ...CONSTANTS,
      REPL_ALL: 3,
      REPL_AOF: 1,
      REPL_NONE: 0,
      REPL_REPLICA: 2,
      REPL_SLAVE: 2,
    });
    const natives: Readonly<Record<string, Native>> = {
      call: (args) => {
        const value = this.#call(args);
        if (value instanceof LuaTable && typeof value.get('err') === 'string') {
          throw new LuaError(value, runtime.line);
        }
        return [value];
      },
      pcall: (args) => [this.#call(args)],
      error_reply: (args) => {
        if (args.count !== 1 || typeof args.at(1) !== 'string') return wrongReply();
        const text = args.string(1).replace(/^-/, '');
        return LuaTable.record({ err: text.includes(' ') ? text : `ERR ${text}` });
      },
      status_reply: (args) => {
        if (args.count !== 1 || typeof args.at(1) !== 'string') return wrongReply();
        return LuaTable.record({ ok: args.string(1) });
      },
      sha1hex: (args) => {
        if (args.count !== 1) this.#raise('ERR wrong number of arguments');
        return sha1(args.string(1));
      },
      log: (args) => this.#log(args),
      setresp: (args) => {
        if (args.count !== 1) this.#raise('ERR redis.setresp() requires one argument.');
        const version = args.number(1);
        if (version !== 2 && version !== 3) this.#raise('ERR RESP version must be 2 or 3.');
        this.#protocol = version === 3 ? 3 : 2;
        return [];
      },
      acl_check_cmd: (args) => {
        const [name, ...rest] = this.#words(args);
        const found = this.#run?.execution.find(name, rest);
        if (found !== undefined && isUnknown(found)) {
          this.#raise('ERR Invalid command passed to redis.acl_check_cmd()');
        }
        return true;
      },
      breakpoint: () => false,
      debug: () => [],
      replicate_commands: () => true,
      set_repl: (args) => {
        if (args.count !== 1) this.#raise('ERR redis.set_repl() requires two arguments.');
        // As in Redis, what is no number counts as 0.
        const flags = Math.trunc(toNumber(args.at(1)) ?? 0);
        if (flags < 0 || flags > 3) {
          this.#raise(
            'ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.',
          );
        }
        return [];
      },
    };
    for (const [name, native] of Object.entries(natives)) {
      table.set(name, toLua(runtime, name, native));
    }
    return table;
  }

  #redisLibraryOfLoad(): LuaTable {
    const table = LuaTable.record(CONSTANTS);
    table.set(
      'register_function',
      toLua(this.#runtime, 'register_function', (args) => this.#register(args)),
    );
    table.set(
      'log',
      toLua(this.#runtime, 'log', (args) => this.#log(args)),
    );
    return table;
  }

  #log(args: Arguments): readonly LuaValue[] {
    if (args.count < 2) this.#raise('ERR redis.log() requires two arguments or more.');
    if (typeof args.at(1) !== 'number') {
      this.#raise('ERR First argument must be a number (log level).');
    }
    if (args.number(1) < 0 || args.number(1) > 3) this.#raise('ERR Invalid debug level.');
    return [];
  }

  #raise(text: string): never {
    throw new LuaError(LuaTable.record({ err: text }), this.#runtime.line);
  }

  #call(args: Arguments): LuaValue {
    const run = this.#run;
    if (run === undefined) {
      return this.#raise('ERR redis.call/pcall can only be called inside a script invocation');
    }
    const [name, ...rest] = this.#words(args);
    this.#runtime.spend(STEPS_PER_CALL);
    return toLuaValue(callCommand(run, name, rest), this.#protocol);
  }

  /** The words of a command. */
  #words(args: Arguments): Bytes[] {
    if (args.count === 0) {
      this.#raise('ERR Please specify at least one argument for this redis lib call');
    }
    return args.values.map((value) => {
      const wrong = 'ERR Lua redis lib command arguments must be strings or integers';
      return toArgument(value) ?? this.#raise(wrong);
    });
  }

  #register(args: Arguments): readonly LuaValue[] {
    const fail = (text: string): never => this.#raise(`ERR ${text}`);
    const registered = this.#registered;
    if (registered === undefined) {
      return fail('redis.register_function can only be called on FUNCTION LOAD command');
    }
    const added = readRegistration(args, fail);
    if (registered.some(({ name }) => name === added.name)) {
      fail('Function already exists in the library');
    }
    registered.push(added);
    return [];
  }

  /** All randomness comes from the command; a script may choose a seed, and gets the same numbers each time. */
  #math(): LuaTable {
    return mathLibrary(
      this.#runtime,
      () => {
        if (this.#seed === undefined) return this.#run?.execution.random() ?? 0;
        this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
        return this.#seed / 2 ** 32;
      },
      (seed) => {
        this.#seed = seed >>> 0;
      },
    );
  }
}

/** As in Redis, an error of a command becomes its text. */
function pcall(args: Arguments): readonly LuaValue[] {
  args.any(1);
  const results = args.runtime.protect(args.at(1), args.values.slice(1));
  const [ok, error] = results;
  const text = ok === false && error instanceof LuaTable ? error.get('err') : undefined;
  return typeof text === 'string' ? [false, text] : results;
}

function wrongReply(): LuaTable {
  return LuaTable.record({ err: 'ERR wrong number or type of arguments' });
}

/** One for this thread: nothing of a script stays after it, so all shards can share it. */
export const INTERPRETER = new Interpreter();
