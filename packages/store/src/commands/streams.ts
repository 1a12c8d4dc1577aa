/** Streams: entries. */

import { Stream } from '../engine/stream.js';
import {
  ID_MAX,
  ID_MIN,
  idText,
  PART_MIN,
  parseIdParts,
  type StreamId,
} from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, NullArray, OK, type Reply } from '../resp/reply.js';
import { integer, NO_SUCH_KEY, option, syntaxError, wrongArity } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Execution, Run } from './spec.js';
import {
  badId,
  entriesReply,
  idArgument,
  newTrimOptions,
  rangeEnd,
  readTrimOption,
  trimming,
} from './stream-arguments.js';

const TOO_SMALL =
  'ERR The ID specified in XADD is equal or smaller than the target stream top item';

/** The id that an entry gets. @returns undefined if it has to be greater */
function newId(stream: Stream, arg: Bytes, nowMs: number): StreamId | undefined {
  if (stream.lastId === ID_MAX) {
    throw new ErrorReply(
      'ERR The stream has exhausted the last possible ID, unable to add more items',
    );
  }
  if (arg === '*') return stream.nextId(nowMs);
  const { ms, sequence } = parseIdParts(arg)!;
  if (sequence === '*') return stream.nextIdAt(ms);
  const id = ms + (sequence ?? PART_MIN);
  return id > stream.lastId ? id : undefined;
}

function xadd(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const options = newTrimOptions();
  let mayCreate = true;
  let at = 1;
  for (; at < args.length; at++) {
    if (args[at] === '*') break;
    const used = readTrimOption(args, at, options);
    if (used !== undefined) at += used;
    else if (option(args[at]) === 'nomkstream') mayCreate = false;
    else break;
  }
  const trim = checkedTrimming(args, at, options);
  const idArg = args[at];
  const fields = args.slice(at + 1);
  if (fields.length < 2 || fields.length % 2 !== 0) throw wrongArity('xadd');
  if (/^0+(?:-0+)?$/.test(idArg)) {
    throw new ErrorReply('ERR The ID specified in XADD must be greater than 0-0');
  }
  const [key] = args;
  const existing = keyspace.forWrite(key, 'stream');
  if (existing === undefined && !mayCreate) return null;
  const stream = existing ?? new Stream();
  const id = newId(stream, idArg, keyspace.nowMs);
  if (id === undefined) throw new ErrorReply(TOO_SMALL);
  stream.append(id, fields);
  trim?.(stream);
  if (existing === undefined) keyspace.set(key, stream);
  else keyspace.changed(key);
  return idText(id);
}

/** An id that is none is an error before options that do not fit. */
function checkedTrimming(
  args: readonly Bytes[],
  at: number,
  options: ReturnType<typeof newTrimOptions>,
) {
  if (at < args.length && args[at] !== '*' && parseIdParts(args[at]) === undefined) throw badId();
  return trimming(options);
}

function xtrim(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const options = newTrimOptions();
  for (let at = 1; at < args.length; at++) {
    const used = readTrimOption(args, at, options);
    if (used === undefined) throw syntaxError();
    at += used;
  }
  const trim = trimming(options);
  if (trim === undefined) {
    throw new ErrorReply('ERR syntax error, XTRIM must be called with a trimming strategy');
  }
  const stream = keyspace.forWrite(args[0], 'stream');
  if (stream === undefined) return 0;
  const removed = trim(stream);
  if (removed > 0) keyspace.changed(args[0]);
  return removed;
}

function ranging(reversed: boolean): Run {
  return ([key, ...args], { keyspace }) => {
    const [first, last] = reversed ? [args[1], args[0]] : args;
    const from = rangeEnd(first, 'start');
    const to = rangeEnd(last, 'end');
    let count = Infinity;
    for (let i = 2; i < args.length; i += 2) {
      if (option(args[i]) !== 'count' || i + 1 === args.length) throw syntaxError();
      count = Math.max(0, integer(args[i + 1]));
    }
    const stream = keyspace.read(key, 'stream');
    if (stream === undefined) return [];
    if (count === 0) return NullArray.instance;
    return entriesReply(stream, from, to, count, reversed);
  };
}

function xdel([key, ...texts]: readonly Bytes[], { keyspace }: Execution): Reply {
  const stream = keyspace.forWrite(key, 'stream');
  if (stream === undefined) return 0;
  const ids = texts.map((text) => idArgument(text));
  let deleted = 0;
  for (const id of ids) if (stream.delete(id)) deleted++;
  if (deleted > 0) keyspace.changed(key);
  return deleted;
}

function xsetid(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const id = idArgument(args[1]);
  let added: number | undefined;
  let maxDeleted: StreamId | undefined;
  for (let i = 2; i < args.length; i += 2) {
    const name = option(args[i]);
    if (i + 1 === args.length) throw syntaxError();
    if (name === 'entriesadded') {
      added = integer(args[i + 1]);
      if (added < 0) throw new ErrorReply('ERR entries_added must be positive');
    } else if (name === 'maxdeletedid') {
      maxDeleted = idArgument(args[i + 1]);
      if (id < maxDeleted) {
        throw new ErrorReply(
          'ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id',
        );
      }
    } else throw syntaxError();
  }
  const stream = keyspace.forWrite(args[0], 'stream');
  if (stream === undefined) throw new ErrorReply(NO_SUCH_KEY);
  if (stream.entries.size > 0) {
    if (id < stream.entries.last![0]) {
      throw new ErrorReply(
        'ERR The ID specified in XSETID is smaller than the target stream top item',
      );
    }
    if (added !== undefined && added < stream.entries.size) {
      throw new ErrorReply(
        'ERR The entries_added specified in XSETID is smaller than the target stream length',
      );
    }
  }
  stream.lastId = id;
  if (added !== undefined) stream.entriesAdded = added;
  if (maxDeleted !== undefined && maxDeleted !== ID_MIN) stream.maxDeletedId = maxDeleted;
  keyspace.changed(args[0]);
  return OK;
}

const APPROXIMATE =
  'With `~`, it trims at multiples of 100 of the entries that were ever added. Redis trims at the ends of its nodes: up to 99 entries more or fewer.';

export const STREAMS: readonly CommandSpec[] = [
  {
    name: 'xadd',
    arity: -5,
    flags: ['write', 'denyoom', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Adds an entry to a stream.',
    differs: APPROXIMATE,
    keys: ONE_KEY,
    run: xadd,
  },
  {
    name: 'xlen',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns the number of entries of a stream.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'stream')?.entries.size ?? 0,
  },
  {
    name: 'xrange',
    arity: -4,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns entries in a range of ids.',
    keys: ONE_KEY,
    run: ranging(false),
  },
  {
    name: 'xrevrange',
    arity: -4,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns entries in a range of ids, from the last.',
    keys: ONE_KEY,
    run: ranging(true),
  },
  {
    name: 'xdel',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Removes entries from a stream.',
    keys: ONE_KEY,
    run: xdel,
  },
  {
    name: 'xtrim',
    arity: -4,
    flags: ['write'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Removes entries from the beginning of a stream.',
    differs: APPROXIMATE,
    keys: ONE_KEY,
    run: xtrim,
  },
  {
    name: 'xsetid',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Sets the last id of a stream.',
    differs: 'Counts of entries beyond 2^53 are rounded.',
    keys: ONE_KEY,
    run: xsetid,
  },
];
