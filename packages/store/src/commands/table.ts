/** The one table of commands. */

import type { Bytes } from '../resp/reply.js';
import { BITFIELDS } from './bitfield.js';
import { BITS } from './bits.js';
import { CONNECTION } from './connection.js';
import { COUNTERS } from './counters.js';
import { DUMP } from './dump.js';
import { EXPIRY } from './expiry.js';
import { GEO } from './geo.js';
import { GEO_SEARCHES } from './geo-search.js';
import { HASHES } from './hashes.js';
import { HYPERLOGLOGS } from './hyperloglogs.js';
import { KEYS } from './keys.js';
import { LIST_MOVES } from './list-moves.js';
import { LISTS } from './lists.js';
import { OBJECT } from './object.js';
import { CHANNELS } from './pubsub.js';
import { SCRIPTS } from './scripting/eval.js';
import { FUNCTIONS } from './scripting/functions.js';
import { SERVER } from './server.js';
import { SETS } from './sets.js';
import { SORT } from './sort.js';
import { SORTED_SET_ALGEBRA } from './sorted-set-algebra.js';
import { SORTED_SET_POPS } from './sorted-set-pops.js';
import { SORTED_SET_RANGES } from './sorted-set-ranges.js';
import { SORTED_SETS } from './sorted-sets.js';
import type { CommandSpec, KeyRange } from './spec.js';
import { STANDALONE } from './standalone.js';
import { STREAM_GROUPS } from './stream-groups.js';
import { STREAM_INFO } from './stream-info.js';
import { STREAM_PENDING } from './stream-pending.js';
import { STREAM_READS } from './stream-reads.js';
import { STREAMS } from './streams.js';
import { STRINGS } from './strings.js';
import { SUBSTRINGS } from './substrings.js';
import { TRANSACTIONS } from './transactions.js';

export const COMMANDS: readonly CommandSpec[] = [
  ...STRINGS,
  ...COUNTERS,
  ...SUBSTRINGS,
  ...BITS,
  ...BITFIELDS,
  ...EXPIRY,
  ...KEYS,
  ...HASHES,
  ...DUMP,
  ...OBJECT,
  ...SORT,
  ...LISTS,
  ...LIST_MOVES,
  ...SETS,
  ...TRANSACTIONS,
  ...CHANNELS,
  ...CONNECTION,
  ...SERVER,
  ...STANDALONE,
  ...SORTED_SETS,
  ...SORTED_SET_RANGES,
  ...SORTED_SET_POPS,
  ...SORTED_SET_ALGEBRA,
  ...HYPERLOGLOGS,
  ...GEO,
  ...GEO_SEARCHES,
  ...STREAMS,
  ...STREAM_READS,
  ...STREAM_GROUPS,
  ...STREAM_PENDING,
  ...STREAM_INFO,
  ...SCRIPTS,
  ...FUNCTIONS,
];

export const COMMANDS_BY_NAME: ReadonlyMap<string, CommandSpec> = new Map(
  COMMANDS.map((command) => [command.name, command]),
);

/** The positions of the keys in the arguments, which do not include the name, nor that of a subcommand. */
export function keyPositions(command: CommandSpec, args: readonly Bytes[]): readonly number[] {
  if (command.findKeys) return command.findKeys(args);
  if (!command.keys) return [];
  const { first, end, step } = rangeInArgs(command, command.keys, args.length);
  const positions: number[] = [];
  for (let i = first; i <= end; i += step) positions.push(i);
  return positions;
}

/** A range of keys as positions in the arguments: `end` is that of the last key. */
export function rangeInArgs(
  { name }: CommandSpec,
  { first, last, step }: KeyRange,
  length: number,
): { readonly first: number; readonly end: number; readonly step: number } {
  // A subcommand has two words before its arguments.
  const words = name.includes('|') ? 2 : 1;
  return { first: first - words, end: last < 0 ? length + last : last - words, step };
}
