/** Streams: groups and their consumers. */

import { Group, Stream, UNKNOWN } from '../engine/stream.js';
import type { StreamId } from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, OK, type Reply, Simple } from '../resp/reply.js';
import { badSubcommand, integer, option } from './arguments.js';
import type { CommandSpec, Execution, KeyRange } from './spec.js';
import { idArgument, rangeEnd } from './stream-arguments.js';

/** After the name and the subcommand. */
export const SUBCOMMAND_KEY: KeyRange = { first: 2, last: 2, step: 1 };

const KEY_MUST_EXIST =
  'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use ' +
  'the MKSTREAM option to create an empty stream automatically.';

interface GroupOptions {
  readonly makesStream: boolean;
  readonly entriesRead: number;
}

/** @param args  from the first option on */
function parseOptions(args: readonly Bytes[], mayMakeStream: boolean): GroupOptions {
  let makesStream = false;
  let entriesRead = UNKNOWN;
  for (let i = 0; i < args.length; i++) {
    const name = option(args[i]);
    if (name === 'mkstream' && mayMakeStream) makesStream = true;
    else if (name === 'entriesread' && i + 1 < args.length) {
      entriesRead = integer(args[++i]);
      if (entriesRead < 0 && entriesRead !== UNKNOWN) {
        throw new ErrorReply('ERR value for ENTRIESREAD must be positive or -1');
      }
    } else throw badSubcommand('XGROUP', mayMakeStream ? 'create' : 'setid');
  }
  return { makesStream, entriesRead };
}

/** `$` is the last one of the stream. */
function lastIdArgument(arg: Bytes, stream: Stream): StreamId {
  return arg === '$' ? stream.lastId : idArgument(arg);
}

function streamOf(key: Bytes, { keyspace }: Execution): Stream {
  const stream = keyspace.forWrite(key, 'stream');
  if (stream === undefined) throw new ErrorReply(KEY_MUST_EXIST);
  return stream;
}

function groupOf(stream: Stream, key: Bytes, name: Bytes): Group {
  const group = stream.groups.get(name);
  if (group !== undefined) return group;
  throw new ErrorReply(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
}

function create([key, name, id, ...rest]: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const { makesStream, entriesRead } = parseOptions(rest, true);
  const existing = makesStream ? keyspace.forWrite(key, 'stream') : streamOf(key, execution);
  const stream = existing ?? new Stream();
  const lastId = lastIdArgument(id, stream);
  if (stream.groups.has(name)) {
    throw new ErrorReply('BUSYGROUP Consumer Group name already exists');
  }
  stream.groups.set(name, new Group(lastId, entriesRead));
  if (existing === undefined) keyspace.set(key, stream);
  else keyspace.changed(key);
  return OK;
}

function setId([key, name, id, ...rest]: readonly Bytes[], execution: Execution): Reply {
  const { entriesRead } = parseOptions(rest, false);
  const stream = streamOf(key, execution);
  const group = groupOf(stream, key, name);
  // Unlike others, this subcommand takes the ends of a range too.
  group.lastId = id === '-' || id === '+' ? rangeEnd(id, 'start') : lastIdArgument(id, stream);
  group.entriesRead = entriesRead;
  execution.keyspace.changed(key);
  return OK;
}

function destroy([key, name]: readonly Bytes[], execution: Execution): Reply {
  if (!streamOf(key, execution).groups.delete(name)) return 0;
  execution.keyspace.changed(key);
  return 1;
}

function createConsumer([key, name, consumer]: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const group = groupOf(streamOf(key, execution), key, name);
  if (group.consumers.has(consumer)) return 0;
  group.consumer(consumer, keyspace.nowMs);
  keyspace.changed(key);
  return 1;
}

function deleteConsumer([key, name, consumer]: readonly Bytes[], execution: Execution): Reply {
  const group = groupOf(streamOf(key, execution), key, name);
  if (!group.consumers.has(consumer)) return 0;
  const pending = group.deleteConsumer(consumer);
  execution.keyspace.changed(key);
  return pending;
}

const HELP = [
  'XGROUP <subcommand> <key> <group>. Subcommands are:',
  'CREATE <id|$> [MKSTREAM] [ENTRIESREAD n]: a new group, from this entry on.',
  'CREATECONSUMER <consumer>: a new consumer.',
  'DELCONSUMER <consumer>: removes a consumer, and what it has not acknowledged.',
  'DESTROY: removes the group.',
  'SETID <id|$> [ENTRIESREAD n]: the group goes on after this entry.',
  'HELP: this list.',
];

export const STREAM_GROUPS: readonly CommandSpec[] = [
  {
    name: 'xgroup|create',
    arity: -5,
    flags: ['write', 'denyoom'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Creates a group of consumers.',
    differs: 'Counts of entries beyond 2^53 are rounded.',
    keys: SUBCOMMAND_KEY,
    run: create,
  },
  {
    name: 'xgroup|setid',
    arity: -5,
    flags: ['write'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Sets the id of the last entry that a group has got.',
    differs: 'Counts of entries beyond 2^53 are rounded.',
    keys: SUBCOMMAND_KEY,
    run: setId,
  },
  {
    name: 'xgroup|destroy',
    arity: 4,
    flags: ['write'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Removes a group.',
    keys: SUBCOMMAND_KEY,
    run: destroy,
  },
  {
    name: 'xgroup|createconsumer',
    arity: 5,
    flags: ['write', 'denyoom'],
    category: 'stream',
    since: '6.2.0',
    summary: 'Creates a consumer in a group.',
    keys: SUBCOMMAND_KEY,
    run: createConsumer,
  },
  {
    name: 'xgroup|delconsumer',
    arity: 5,
    flags: ['write'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Removes a consumer from a group.',
    keys: SUBCOMMAND_KEY,
    run: deleteConsumer,
  },
  {
    name: 'xgroup|help',
    arity: 2,
    flags: ['loading', 'stale'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Lists the subcommands.',
    run: () => HELP.map((line) => new Simple(line)),
  },
];
