/** Libraries of functions: FUNCTION and FCALL. */

import { matchesGlob } from '../../engine/glob.js';
import { dumpOfLibraries, restoredLibraries } from '../../engine/rdb/dump.js';
import {
  type Bytes,
  ErrorReply,
  MapReply,
  OK,
  type Reply,
  SetReply,
  Simple,
} from '../../resp/reply.js';
import { badSubcommand, integer } from '../arguments.js';
import type { CommandSpec, Execution, Flag } from '../spec.js';
import { ALL_ALIKE, ANY_SHARD, findScriptKeys, isShortFor, UNDECLARED } from './eval.js';
import { INTERPRETER } from './interpreter.js';
import { Made } from './made.js';
import type { FunctionSpec, Registered } from './registration.js';
import type { Scripts } from './scripts.js';
import { readLibrary } from './shebang.js';

const RUNS: readonly Flag[] = ['noscript', 'stale', 'movablekeys'];
const CHANGES: readonly Flag[] = ['write', 'denyoom', 'noscript'];
/** How long the libraries together may be of which is kept what is in them. */
const KNOWN_BYTES_MAX = 2 ** 26;
const NO_STATE = 'a function keeps nothing in variables from one call to the next';

interface Library {
  readonly name: string;
  readonly functions: readonly FunctionSpec[];
}

/** Runs the code of a library. @throws ErrorReply if the code is wrong */
function loadLibrary(code: Bytes): { name: string; functions: readonly Registered[] } {
  const library = readLibrary(code);
  const functions = INTERPRETER.load(library.code);
  if (functions.length === 0) throw new ErrorReply('ERR No functions registered');
  return { name: library.name, functions };
}

/** By the code of a library: what is in it is the same each time, so only a call of a function loads it again. */
const LIBRARIES = new Made(KNOWN_BYTES_MAX, (code): Library => {
  const { name, functions } = loadLibrary(code);
  return {
    name,
    functions: functions.map(({ name, flags, description }) => ({ name, flags, description })),
  };
});

type Libraries = ReadonlyMap<Bytes, Bytes>;

/** @throws ErrorReply if two libraries have functions of the same name: it names that of the later one */
function replaceAll(scripts: Scripts, libraries: Libraries): void {
  const taken = new Set<string>();
  for (const code of libraries.values()) {
    const { functions } = LIBRARIES.of(code);
    const repeated = functions.find(({ name }) => taken.has(lower(name)));
    if (repeated !== undefined) {
      throw new ErrorReply(`ERR Function ${repeated.name} already exists`);
    }
    for (const { name } of functions) taken.add(lower(name));
  }
  scripts.libraries.clear();
  for (const [name, code] of libraries) scripts.libraries.set(name, code);
}

/** Functions are found without regard to case; libraries are not. */
function lower(name: string): string {
  return name.toLowerCase();
}

function call(isReadonly: boolean) {
  return (args: readonly Bytes[], execution: Execution): Reply => {
    const name = lower(args[0]);
    const isCalled = (other: FunctionSpec): boolean => lower(other.name) === name;
    const codes = [...execution.scripts.libraries.values()];
    const code = codes.find((code) => LIBRARIES.of(code).functions.some(isCalled));
    if (code === undefined) throw new ErrorReply('ERR Function not found');
    const count = integer(args[1], 'ERR Bad number of keys provided');
    if (count > args.length - 2) {
      throw new ErrorReply("ERR Number of keys can't be greater than number of args");
    }
    if (count < 0) throw new ErrorReply("ERR Number of keys can't be negative");
    const called = loadLibrary(code).functions.find(isCalled)!;
    const writesNothing = called.flags.includes('no-writes');
    if (isReadonly && !writesNothing) {
      throw new ErrorReply('ERR Can not execute a script with write flag using *_ro command.');
    }
    return INTERPRETER.runFunction(called.callback, args.slice(2 + count), {
      execution,
      keys: args.slice(2, 2 + count),
      isReadonly: writesNothing,
      isShort: isShortFor(called.flags, execution),
      name: called.name,
      hasWritten: false,
      chunk: 'user_function',
    });
  };
}

function list(args: readonly Bytes[], { scripts }: Execution): Reply {
  let withCode = false;
  let pattern: Bytes | undefined;
  for (let i = 0; i < args.length; i++) {
    const option = args[i].toLowerCase();
    if (option === 'withcode' && !withCode) withCode = true;
    else if (option === 'libraryname' && pattern === undefined) {
      pattern = args[++i];
      if (pattern === undefined) throw new ErrorReply('ERR library name argument was not given');
    } else throw new ErrorReply(`ERR Unknown argument ${args[i]}`);
  }
  return [...scripts.libraries]
    .filter(([name]) => pattern === undefined || matchesGlob(lower(pattern), lower(name)))
    .map(([name, code]) => {
      const functions = LIBRARIES.of(code).functions.map(
        (registered) =>
          new MapReply([
            ['name', registered.name],
            ['description', registered.description ?? null],
            ['flags', new SetReply(registered.flags.map((flag) => new Simple(flag)))],
          ]),
      );
      return new MapReply([
        ['library_name', name],
        ['engine', 'LUA'],
        ['functions', functions],
        ...(withCode ? [['library_code', code] as const] : []),
      ]);
    });
}

function load(args: readonly Bytes[], { scripts }: Execution): Reply {
  const options = args.slice(0, -1);
  const wrong = options.find((option) => option.toLowerCase() !== 'replace');
  if (wrong !== undefined) throw new ErrorReply(`ERR Unknown option given: ${wrong}`);
  const code = args[args.length - 1];
  const libraries = new Map(scripts.libraries);
  const { name } = readLibrary(code);
  if (libraries.has(name) && options.length === 0) {
    throw new ErrorReply(`ERR Library '${name}' already exists`);
  }
  // The new one becomes the last one.
  libraries.delete(name);
  libraries.set(name, code);
  replaceAll(scripts, libraries);
  return name;
}

function restore(args: readonly Bytes[], { scripts }: Execution): Reply {
  if (args.length > 2) throw badSubcommand('FUNCTION', 'restore');
  const [dump, policy = 'append'] = args;
  const how = policy.toLowerCase();
  if (!['flush', 'append', 'replace'].includes(how)) {
    throw new ErrorReply(
      'ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.',
    );
  }
  const codes = restoredLibraries(dump);
  if (codes === undefined) throw new ErrorReply('ERR DUMP payload version or checksum are wrong');
  const restored = new Map(codes.map((code) => [LIBRARIES.of(code).name, code]));
  const libraries = how === 'flush' ? new Map() : new Map(scripts.libraries);
  for (const [name, code] of restored) {
    if (libraries.has(name) && how === 'append') {
      throw new ErrorReply(`ERR Library ${name} already exists`);
    }
    libraries.delete(name);
    libraries.set(name, code);
  }
  replaceAll(scripts, libraries);
  return OK;
}

function stats(_args: readonly Bytes[], { scripts }: Execution): Reply {
  const codes = [...scripts.libraries.values()];
  const functions = codes.flatMap((code) => LIBRARIES.of(code).functions).length;
  return new MapReply([
    ['running_script', null],
    [
      'engines',
      new MapReply([
        [
          'LUA',
          new MapReply([
            ['libraries_count', scripts.libraries.size],
            ['functions_count', functions],
          ]),
        ],
      ]),
    ],
  ]);
}

function fcall(
  name: string,
  flags: readonly Flag[],
  summary: string,
  run: CommandSpec['run'],
): CommandSpec {
  return {
    name,
    arity: -3,
    flags,
    category: 'scripting',
    since: '7.0.0',
    summary,
    differs: `${UNDECLARED}; ${NO_STATE}`,
    findKeys: findScriptKeys,
    reaches: true,
    ...(run && { run }),
  };
}

function subcommand(
  name: string,
  arity: number,
  flags: readonly Flag[],
  summary: string,
  spread: CommandSpec['spread'],
  run: CommandSpec['run'],
): CommandSpec {
  return {
    name: `function|${name}`,
    arity,
    flags,
    category: 'scripting',
    since: '7.0.0',
    summary,
    ...(spread && { spread }),
    ...(run && { run }),
  };
}

export const FUNCTIONS: readonly CommandSpec[] = [
  fcall('fcall', RUNS, 'Calls a function.', call(false)),
  fcall('fcall_ro', ['readonly', ...RUNS], 'Calls a function that only reads.', call(true)),
  subcommand(
    'delete',
    3,
    ['write', 'noscript'],
    'Deletes a library.',
    ALL_ALIKE,
    ([name], { scripts }) => {
      if (!scripts.libraries.delete(name)) throw new ErrorReply('ERR Library not found');
      return OK;
    },
  ),
  subcommand('dump', 2, ['noscript'], 'Dumps all libraries.', ANY_SHARD, (_args, { scripts }) =>
    dumpOfLibraries([...scripts.libraries.values()]),
  ),
  subcommand(
    'flush',
    -2,
    ['write', 'noscript'],
    'Deletes all libraries.',
    ALL_ALIKE,
    (args, { scripts }) => {
      if (args.length > 1) throw badSubcommand('FUNCTION', 'flush');
      if (args.length === 1 && !/^(?:a?sync)$/i.test(args[0])) {
        throw new ErrorReply('ERR FUNCTION FLUSH only supports SYNC|ASYNC option');
      }
      scripts.libraries.clear();
      return OK;
    },
  ),
  subcommand('help', 2, ['loading', 'stale'], 'Lists the subcommands.', undefined, undefined),
  subcommand(
    'kill',
    2,
    ['noscript'],
    'Stops a function.',
    ANY_SHARD,
    () => new ErrorReply('NOTBUSY No scripts in execution right now.'),
  ),
  subcommand('list', -2, ['noscript'], 'Describes libraries.', ANY_SHARD, list),
  subcommand('load', -3, CHANGES, 'Adds a library.', ALL_ALIKE, load),
  subcommand('restore', -3, CHANGES, 'Adds libraries that were dumped.', ALL_ALIKE, restore),
  subcommand('stats', 2, ['noscript'], 'Counts libraries and functions.', ANY_SHARD, stats),
];
