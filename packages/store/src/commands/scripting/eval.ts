/** Scripts: EVAL and its relatives, and SCRIPT. */

import { type Bytes, ErrorReply, OK, type Reply } from '../../resp/reply.js';
import { integer, outOfMemory } from '../arguments.js';
import type { CommandSpec, Execution, Flag, Spread } from '../spec.js';
import { partsForAll } from '../spreads.js';
import { INTERPRETER } from './interpreter.js';
import { readScript } from './shebang.js';

const RUNS: readonly Flag[] = ['noscript', 'stale', 'movablekeys'];
const READS: readonly Flag[] = ['readonly', 'noscript', 'stale', 'movablekeys'];
const NOSCRIPT = 'NOSCRIPT No matching script. Please use EVAL.';

export const UNDECLARED =
  'may use keys of any shards; an error if it has already written and then needs a key of another shard than those of its KEYS; no coroutines and no `string.dump`; is stopped if it takes too long';

/** Runs the command at all shards, which do the same. */
export const ALL_ALIKE: Spread = {
  split: (args, _shardOf, shards) => partsForAll(args, shards),
  merge: ([{ reply }]) => reply,
};

/** Runs the command at one shard: all have the same scripts. */
export const ANY_SHARD: Spread = {
  split: (args) => [{ shard: 0, args }],
  merge: ([{ reply }]) => reply,
};

/** @returns the number of keys, which follow at position 2 */
export function keyCount(args: readonly Bytes[]): number {
  const count = integer(args[1]);
  if (count > args.length - 2) {
    throw new ErrorReply("ERR Number of keys can't be greater than number of args");
  }
  if (count < 0) throw new ErrorReply("ERR Number of keys can't be negative");
  return count;
}

export function findScriptKeys(args: readonly Bytes[]): readonly number[] {
  try {
    return Array.from({ length: keyCount(args) }, (_, i) => 2 + i);
  } catch {
    return [];
  }
}

/**
 * Whether memory is too short for some commands of a script.
 * @param flags  undefined: those of a script that can't say whether it needs memory
 * @throws ErrorReply if it is too short for the script
 */
export function isShortFor(flags: readonly string[] | undefined, { isShort }: Execution): boolean {
  if (!isShort || flags === undefined) return isShort;
  if (flags.includes('allow-oom') || flags.includes('no-writes')) return false;
  throw outOfMemory('eval');
}

function runScript(
  sha: string,
  body: Bytes,
  args: readonly Bytes[],
  execution: Execution,
  isReadonly: boolean,
): Reply {
  const count = keyCount(args);
  const { code, flags } = readScript(body);
  return INTERPRETER.runScript(code, args.slice(2 + count), {
    execution,
    keys: args.slice(2, 2 + count),
    isReadonly: isReadonly || flags?.includes('no-writes') === true,
    isShort: isShortFor(flags, execution),
    name: sha,
    hasWritten: false,
    chunk: 'user_script',
  });
}

/** @throws ErrorReply if it can't be compiled */
export function compileScript(body: Bytes): void {
  INTERPRETER.compile(readScript(body).code, 'user_script');
}

function evalBody(isReadonly: boolean) {
  return (args: readonly Bytes[], execution: Execution): Reply => {
    keyCount(args);
    const [body] = args;
    compileScript(body);
    const sha = execution.scripts.addEvaluated(body);
    return runScript(sha, body, args, execution, isReadonly);
  };
}

function evalSha(isReadonly: boolean) {
  return (args: readonly Bytes[], execution: Execution): Reply => {
    keyCount(args);
    const sha = args[0].toLowerCase();
    const body = execution.scripts.bodies.get(sha);
    if (body === undefined) throw new ErrorReply(NOSCRIPT);
    return runScript(sha, body, args, execution, isReadonly);
  };
}

function script(
  name: string,
  flags: readonly Flag[],
  since: string,
  summary: string,
  run: CommandSpec['run'],
): CommandSpec {
  return {
    name,
    arity: -3,
    flags,
    category: 'scripting',
    since,
    summary,
    differs: UNDECLARED,
    findKeys: findScriptKeys,
    reaches: true,
    ...(run && { run }),
  };
}

export const SCRIPTS: readonly CommandSpec[] = [
  script('eval', RUNS, '2.6.0', 'Runs a script.', evalBody(false)),
  script('eval_ro', READS, '7.0.0', 'Runs a script that only reads.', evalBody(true)),
  script('evalsha', RUNS, '2.6.0', 'Runs a script by its SHA-1.', evalSha(false)),
  script(
    'evalsha_ro',
    READS,
    '7.0.0',
    'Runs a script that only reads by its SHA-1.',
    evalSha(true),
  ),
  {
    name: 'script|exists',
    arity: -3,
    flags: ['noscript'],
    category: 'scripting',
    since: '2.6.0',
    summary: 'Returns which scripts are known.',
    spread: ANY_SHARD,
    run: (shas, { scripts }) => shas.map((sha) => (scripts.bodies.has(sha.toLowerCase()) ? 1 : 0)),
  },
  {
    name: 'script|flush',
    arity: -2,
    flags: ['noscript'],
    category: 'scripting',
    since: '2.6.0',
    summary: 'Forgets all scripts.',
    spread: ALL_ALIKE,
    run: (args, { scripts }) => {
      if (args.length > 1 || (args.length === 1 && !/^(?:a?sync)$/i.test(args[0]))) {
        throw new ErrorReply('ERR SCRIPT FLUSH only support SYNC|ASYNC option');
      }
      scripts.clear();
      return OK;
    },
  },
  {
    name: 'script|help',
    arity: 2,
    flags: ['loading', 'stale'],
    category: 'scripting',
    since: '5.0.0',
    summary: 'Lists the subcommands.',
  },
  {
    name: 'script|kill',
    arity: 2,
    flags: ['noscript'],
    category: 'scripting',
    since: '2.6.0',
    summary: 'Stops a script.',
    differs: 'a script that takes too long is stopped without it',
    spread: ANY_SHARD,
    run: () => new ErrorReply('NOTBUSY No scripts in execution right now.'),
  },
  {
    name: 'script|load',
    arity: 3,
    flags: ['noscript', 'stale'],
    category: 'scripting',
    since: '2.6.0',
    summary: 'Makes a script known.',
    spread: ALL_ALIKE,
    run: ([body], { scripts }) => {
      compileScript(body);
      return scripts.add(body);
    },
  },
];
