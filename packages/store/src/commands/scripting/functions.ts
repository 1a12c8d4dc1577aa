/** Libraries of functions: FUNCTION and FCALL. */

import { matchesGlob } from '../../engine/glob.js';
import { dumpOfLibraries, restoredLibraries } from '../../engine/rdb/dump.js';
import { type Bytes, ErrorReply, MapReply, OK, type Reply, SetReply } from '../../resp/reply.js';
import { integer } from '../arguments.js';
import type { CommandSpec, Execution, Flag } from '../spec.js';
import { ALL_ALIKE, ANY_SHARD, findScriptKeys, isShortFor, UNDECLARED } from './eval.js';
import { INTERPRETER, type Registered } from './interpreter.js';
import type { Scripts } from './scripts.js';
import { readLibrary } from './shebang.js';

const RUNS: readonly Flag[] = ['noscript', 'stale', 'movablekeys'];
const CHANGES: readonly Flag[] = ['write', 'denyoom', 'noscript'];
const NO_STATE = 'a function keeps nothing in variables from one call to the next';

interface Library {
  readonly name: string;
  readonly functions: readonly Registered[];
}

/** @throws ErrorReply if the code is wrong */
function readFunctions(code: Bytes): Library {
  const library = readLibrary(code);
  const functions = INTERPRETER.load(library.code);
  if (functions.length === 0) throw new ErrorReply('ERR No functions registered');
  return { name: library.name, functions };
}

/** Adds libraries, all or none. @param isReplaced  whether those of the same names are replaced */
function addLibraries(scripts: Scripts, codes: readonly Bytes[], isReplaced: boolean): void {
  const added = new Map(scripts.libraries);
  for (const code of codes) {
    const { name, functions } = readFunctions(code);
    if (added.has(name) && !isReplaced) {
      throw new ErrorReply(`ERR Library '${name}' already exists`);
    }
    added.delete(name);
    const taken = new Set([...added.values()].flatMap(functionNames));
    for (const { name: own } of functions) {
      if (taken.has(own)) throw new ErrorReply(`ERR Function ${own} already exists`);
    }
    added.set(name, code);
  }
  scripts.libraries.clear();
  for (const [name, code] of added) scripts.libraries.set(name, code);
}

function functionNames(code: Bytes): readonly string[] {
  return readFunctions(code).functions.map(({ name }) => name);
}

function call(isReadonly: boolean) {
  return (args: readonly Bytes[], execution: Execution): Reply => {
    const [name] = args;
    const count = integer(args[1], 'ERR Bad number of keys provided');
    for (const code of execution.scripts.libraries.values()) {
      const found = readFunctions(code).functions.find((registered) => registered.name === name);
      if (found === undefined) continue;
      if (count > args.length - 2) {
        throw new ErrorReply("ERR Number of keys can't be greater than number of args");
      }
      if (count < 0) throw new ErrorReply("ERR Number of keys can't be negative");
      const writesNothing = found.flags.includes('no-writes');
      if (isReadonly && !writesNothing) {
        throw new ErrorReply('ERR Can not execute a script with write flag using *_ro command.');
      }
      return INTERPRETER.runFunction(found.callback, args.slice(2 + count), {
        execution,
        keys: args.slice(2, 2 + count),
        isReadonly: writesNothing,
        isShort: isShortFor(found.flags, execution),
        name,
        hasWritten: false,
        chunk: 'user_function',
      });
    }
    throw new ErrorReply('ERR Function not found');
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
    .filter(([name]) => pattern === undefined || matchesGlob(pattern, name))
    .map(([name, code]) => {
      const functions = readFunctions(code).functions.map(
        (registered) =>
          new MapReply([
            ['name', registered.name],
            ['description', registered.description ?? null],
            ['flags', new SetReply(registered.flags)],
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
  addLibraries(scripts, [code], options.length > 0);
  return readLibrary(code).name;
}

function restore([dump, policy = 'append']: readonly Bytes[], { scripts }: Execution): Reply {
  const how = policy.toLowerCase();
  if (!['flush', 'append', 'replace'].includes(how)) {
    throw new ErrorReply(
      'ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.',
    );
  }
  const codes = restoredLibraries(dump);
  if (codes === undefined) throw new ErrorReply('ERR DUMP payload version or checksum are wrong');
  const before = new Map(scripts.libraries);
  if (how === 'flush') scripts.libraries.clear();
  try {
    addLibraries(scripts, codes, how === 'replace');
  } catch (error) {
    for (const [name, code] of before) scripts.libraries.set(name, code);
    throw error;
  }
  return OK;
}

function stats(_args: readonly Bytes[], { scripts }: Execution): Reply {
  const functions = [...scripts.libraries.values()].flatMap(functionNames).length;
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
      if (args.length > 1 || (args.length === 1 && !/^(?:a?sync)$/i.test(args[0]))) {
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
