/** All families. A family of its own file is added here. */

import * as fc from 'fast-check';
import { COMMANDS_BY_NAME } from '../../../src/commands/table.js';
import type { Comparison } from '../comparisons.js';
import type { Step } from '../run.js';
import { bits } from './bits.js';
import { anyKey, type Family, smallInteger } from './family.js';
import { geo } from './geo.js';
import { hashes } from './hashes.js';
import { hyperloglogs } from './hyperloglogs.js';
import { keys } from './keys.js';
import { lists } from './lists.js';
import { sets } from './sets.js';
import { sortedSets } from './sorted-sets.js';
import { streamCommands } from './streams.js';
import { strings } from './strings.js';

const FAMILIES: readonly Family[] = [
  strings,
  bits,
  keys,
  hashes,
  lists,
  sets,
  sortedSets,
  hyperloglogs,
  geo,
  streamCommands,
];

const COMMANDS: Family['commands'] = Object.assign({}, ...FAMILIES.map(({ commands }) => commands));
const BEFORE: NonNullable<Family['before']> = Object.assign(
  {},
  ...FAMILIES.map(({ before }) => before),
);
const AFTER: NonNullable<Family['after']> = Object.assign(
  {},
  ...FAMILIES.map(({ after }) => after),
);
export const COMPARISONS: Readonly<Record<string, Comparison>> = Object.assign(
  {},
  ...FAMILIES.map(({ comparisons }) => comparisons),
);

/** The names of all commands that can be drawn. */
export const DRAWN: ReadonlySet<string> = new Set(Object.keys(COMMANDS));

const WAYS = ['drop', 'add', 'replace', 'swap'];

/** Whether a small number at the wrong place can be a time in milliseconds: the key would expire at one of the two earlier. */
function mayExpireSoon([name]: readonly string[]): boolean {
  return ['SET', 'PSETEX', 'GETEX', 'PEXPIRE'].includes(name);
}

/** An argument is missing, is there twice, is another one, or is in another place. */
function spoiled(command: readonly string[]): fc.Arbitrary<readonly string[]> {
  const position = fc.integer({ min: 1, max: Math.max(1, command.length - 1) });
  // No large numbers: a command could be asked for as many random picks, or for a very long string.
  const other = fc.oneof(anyKey, smallInteger, fc.constantFrom('', 'x', '1.5'));
  return fc
    .tuple(fc.constantFrom(...(mayExpireSoon(command) ? ['drop'] : WAYS)), position, other)
    .map(([how, at, arg]) => {
      const args = [...command];
      if (how === 'drop') args.splice(at, 1);
      else if (how === 'add') args.splice(at, 0, arg);
      else if (how === 'replace') args.splice(at, 1, arg);
      else if (at + 1 < args.length) args.splice(at, 2, args[at + 1], args[at]);
      return args;
    });
}

function mayWait(name: string): boolean {
  return COMMANDS_BY_NAME.get(name)?.flags.includes('blocking') ?? false;
}

/** What runs the commands. The engine alone knows no transactions. */
export type StoreKind = 'engine' | 'one shard' | 'several shards';

/** Whether a store of several shards refuses it, as documented: a pattern of SORT names keys that can be anywhere. */
function needsOneShard(step: Step): boolean {
  return step.some(
    ([name, ...args]) =>
      name.startsWith('SORT') &&
      args.some((arg, i) => /^(by|get)$/i.test(arg) && args[i + 1]?.includes('*')),
  );
}

/** @param only  names of commands; empty: all */
export function stepsOf(only: readonly string[] = []): fc.Arbitrary<Step> {
  const names = only.length > 0 ? only : [...DRAWN];
  return fc.oneof(
    ...names.map((name) =>
      fc
        .oneof(
          { weight: 9, arbitrary: COMMANDS[name] },
          // A spoiled command could wait for ever at the real server.
          ...(mayWait(name) ? [] : [{ weight: 1, arbitrary: COMMANDS[name].chain(spoiled) }]),
        )
        .map((command) => [...(BEFORE[name] ?? []), command, ...(AFTER[name]?.(command) ?? [])]),
    ),
  );
}

/** With several shards, they cannot be in one transaction with a coordinated command. */
const ON_WHOLE_DATABASE = ['dbsize', 'flushall', 'flushdb', 'keys', 'randomkey', 'scan'];

/** Differs in a transaction, as documented. */
const MOVES_THAT_WAIT = ['blmove', 'brpoplpush'];

/** What they change, WATCH of Redis does not notice. Ours does, as documented. */
const UNWATCHED = /^x(ack|autoclaim|claim|group|readgroup|setid)/;

/** A transaction, sometimes with watched keys, and with commands that may change these. */
function transactionsOf(names: readonly string[], kind: StoreKind): fc.Arbitrary<Step> {
  const isAllowed = (name: string): boolean =>
    !MOVES_THAT_WAIT.includes(name) && (kind === 'one shard' || !ON_WHOLE_DATABASE.includes(name));
  const queued = names.filter(isAllowed);
  const noticed = queued.filter((name) => !UNWATCHED.test(name));
  if (noticed.length === 0) return fc.constant([]);
  const steps = fc.array(stepsOf(queued), { minLength: 1, maxLength: 4 });
  const watches = fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.array(anyKey, { minLength: 1, maxLength: 3 }), fc.option(stepsOf(noticed)))
        .map(([keys, step]) => [['WATCH', ...keys], ...(step ?? [])]),
    },
  );
  return fc
    .tuple(watches, steps)
    .map(([watch, steps]) => [...watch, ['MULTI'], ...steps.flat(), ['EXEC']]);
}

/** Beside the commands of a family: they take keys away, and values of other types to its keys. */
const ALSO = ['del', 'rename', 'copy', 'expireat', 'set', 'sadd'];

/**
 * The steps of a run. Most runs draw from one family, so that its commands meet.
 * @param only  names of commands; empty: all
 */
export function runsOf(
  only: readonly string[],
  maxLength: number,
  kind: StoreKind,
): fc.Arbitrary<Step[]> {
  const runOf = (names: readonly string[]) => {
    const steps =
      kind === 'engine'
        ? stepsOf(names)
        : fc.oneof(
            { weight: 7, arbitrary: stepsOf(names) },
            { weight: 1, arbitrary: transactionsOf(names, kind) },
          );
    const possible =
      kind === 'several shards' ? steps.filter((step) => !needsOneShard(step)) : steps;
    return fc.array(possible, { minLength: 1, maxLength, size: 'max' });
  };
  if (only.length > 0) return runOf(only);
  return fc.oneof(
    runOf([...DRAWN]),
    ...FAMILIES.map(({ commands }) => runOf([...Object.keys(commands), ...ALSO])),
  );
}
