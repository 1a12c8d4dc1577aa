/** Commands that scripts run. */

import { hasFixedSlot } from '../../engine/slots.js';
import { type Bytes, ErrorReply, OK, type Reply, Simple } from '../../resp/reply.js';
import { outOfMemory } from '../arguments.js';
import type { CommandSpec, Execution, FoundCommand } from '../spec.js';
import { asksToWait } from '../stream-reads.js';

/** What a script runs in. */
export interface Run {
  readonly execution: Execution;
  readonly keys: readonly Bytes[];
  readonly isReadonly: boolean;
  /** Memory was short when the script began, and it has not said that it runs all the same. */
  readonly isShort: boolean;
  hasWritten: boolean;
  /** How errors call the script: its SHA-1, or the name of the function. */
  readonly name: string;
  readonly chunk: 'user_script' | 'user_function';
}

/** A script needs a key of another shard, and has written nothing yet: it can run again as a transaction. It can't catch that. */
export class Beyond {
  constructor(readonly message: string) {}
}

/** How the reply of such a script begins. It is for the gateway. */
export const BEYOND = 'BEYOND ';

/** The same as an error for the client: it is not run again. */
export function forClient(reply: Reply): Reply {
  const isBeyond = reply instanceof ErrorReply && reply.message.startsWith(BEYOND);
  return isBeyond ? new ErrorReply(reply.message.replace(BEYOND, 'ERR ')) : reply;
}

const UNKNOWN = 'ERR Unknown Redis command called from script';
const WRONG_ARITY = 'ERR Wrong number of args calling Redis command from script';
const NOT_ALLOWED = 'ERR This Redis command is not allowed from script';
const NO_WRITES = 'ERR Write commands are not allowed from read-only scripts.';

/** What gateways reply to clients, where scripts can know it as well. */
const OF_GATEWAYS: Readonly<
  Record<string, (args: readonly Bytes[], execution: Execution) => Reply>
> = {
  time: (_args, { keyspace }) => [
    String(Math.floor(keyspace.nowMs / 1000)),
    String(Math.floor(keyspace.nowMs % 1000) * 1000),
  ],
  ping: ([message]) => message ?? new Simple('PONG'),
  echo: ([message]) => message,
  select: ([index]) => (index === '0' ? OK : new ErrorReply('ERR DB index is out of range')),
};

/** @returns an `ErrorReply` if it fails */
export function callCommand(run: Run, name: Bytes, args: readonly Bytes[]): Reply {
  const { execution } = run;
  const found = execution.find(name, args);
  if (found instanceof ErrorReply) {
    return new ErrorReply(isUnknown(found) ? UNKNOWN : WRONG_ARITY);
  }
  const { command } = found;
  if (command.flags.includes('noscript')) return new ErrorReply(NOT_ALLOWED);
  if (run.isReadonly && countsAsWrite(command)) return new ErrorReply(NO_WRITES);
  const own = OF_GATEWAYS[command.name];
  if (own !== undefined) return own(found.args, execution);
  if (command.run === undefined) return new ErrorReply(NOT_ALLOWED);
  if (command.name.startsWith('xread') && asksToWait(found.args)) {
    return new ErrorReply(`ERR ${name} command is not allowed with BLOCK option from scripts`);
  }
  const refused = refusal(run, command, found);
  if (refused !== undefined) return refused;
  // A script that has written something goes on.
  if (run.isShort && !run.hasWritten && command.flags.includes('denyoom')) return outOfMemory(name);
  if (hasEffects(command)) run.hasWritten = true;
  return execution.run(command.name, found.args);
}

/** Whether there is no such command. Others are found, or have too few or too many arguments. */
export function isUnknown(found: FoundCommand | ErrorReply): boolean {
  return found instanceof ErrorReply && !found.message.startsWith('ERR wrong number');
}

/** Whether a script that only reads may not run the command. PFCOUNT of Redis may write its estimate down. */
function countsAsWrite(command: CommandSpec): boolean {
  return hasEffects(command) || command.name === 'pfcount';
}

/** Whether others can notice that the command was run. */
function hasEffects({ flags, name }: CommandSpec): boolean {
  return flags.includes('write') || name === 'publish' || name === 'spublish';
}

/** A script only has the keys of its shard, or those that its transaction has claimed. */
function refusal(
  { execution, keys: declared, hasWritten }: Run,
  { name, routedBy, keys, findKeys, patterns }: CommandSpec,
  { keys: used, args }: FoundCommand,
): ErrorReply | undefined {
  const { reach } = execution;
  if (reach.isAll) return undefined;
  if (keys === undefined && findKeys === undefined && routedBy === undefined) {
    return new ErrorReply(
      `ERR Script attempted to run '${name}' on the whole database, which has several shards`,
    );
  }
  const isBeyond = (key: Bytes) => !declared.includes(key) && !reach.has(key);
  // A transaction finds out which keys a pattern names.
  const read = reach.discovers ? [] : (patterns?.(args) ?? []);
  const key = used.find(isBeyond);
  const pattern = read.find((pattern) => !hasFixedSlot(pattern) || isBeyond(pattern));
  if (key === undefined && pattern === undefined) return undefined;
  const what = routedBy === undefined ? 'key' : 'channel';
  const message =
    key === undefined
      ? `Script attempted to access keys like '${pattern}', which may be of another shard`
      : `Script attempted to access ${what} '${key}' of another shard: declare it in KEYS`;
  if (!hasWritten) throw new Beyond(message);
  return new ErrorReply(`ERR ${message}`);
}
