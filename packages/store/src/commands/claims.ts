/** The claim of a call: the keys on which it has to be first before it may run. */

import type { Bytes } from '../resp/reply.js';
import { INTERNAL, readExecArgs } from './internal.js';
import { COMMANDS_BY_NAME, keyPositions } from './table.js';

/** Undefined: the whole shard. */
export type Claim = readonly Bytes[] | undefined;

const NOTHING: readonly Bytes[] = [];

/** Internal commands that concern no keys. */
const CLAIMING_NOTHING = new Set([
  '.subscribe',
  '.configure',
  '.script',
  '.announce',
  '.announced',
  '.libraries',
]);

export function claimOf(name: string, args: readonly Bytes[]): Claim {
  if (name === '.exec') return claimOfExec(args);
  if (CLAIMING_NOTHING.has(name)) return NOTHING;
  if (name === '.await') return args.filter((_, i) => i % 2 === 0);
  if (name in INTERNAL) return args;
  const command = COMMANDS_BY_NAME.get(name);
  if (command === undefined || command.routedBy !== undefined) return NOTHING;
  // What a script uses besides its keys is not known before it runs.
  if (command.reaches) return undefined;
  if (name.endsWith('|help')) return NOTHING;
  if (command.keys === undefined && command.findKeys === undefined) return undefined;
  if (command.patterns?.(args).length) return undefined;
  return keyPositions(command, args).map((position) => args[position]);
}

function claimOfExec(args: readonly Bytes[]): Claim {
  const { watched, commands } = readExecArgs(args);
  const claims = commands.map((command) => claimOf(command.name, command.args));
  if (claims.includes(undefined)) return undefined;
  return [...watched.map(([key]) => key), ...claims.flatMap((claim) => claim!)];
}
