/** Streams: XREAD and XREADGROUP, which can wait for entries. */

import { type Group, type Stream, UNKNOWN } from '../engine/stream.js';
import { ID_MAX, ID_MIN, idAfter, idText, type StreamId } from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, MapOrPairs, NullArray, type Reply } from '../resp/reply.js';
import { integer, option, parseInteger, syntaxError } from './arguments.js';
import { readToTake } from './collections.js';
import type { CommandSpec, Execution } from './spec.js';
import { entriesReply, entryReply, idArgument } from './stream-arguments.js';

interface Options {
  /** How many entries of each stream at most. */
  count: number;
  /** Undefined: it does not wait. */
  blockMs: number | undefined;
  group: { readonly name: Bytes; readonly consumer: Bytes } | undefined;
  noAcknowledgement: boolean;
  /** The position of the first key. */
  keysFrom: number;
}

function blockTime(arg: Bytes): number {
  const ms = integer(arg, 'ERR timeout is not an integer or out of range');
  if (ms < 0) throw new ErrorReply('ERR timeout is negative');
  return ms;
}

function parseOptions(args: readonly Bytes[], name: 'xread' | 'xreadgroup'): Options {
  const options: Options = {
    count: Infinity,
    blockMs: undefined,
    group: undefined,
    noAcknowledgement: false,
    keysFrom: -1,
  };
  for (let i = 0; i < args.length && options.keysFrom < 0; i++) {
    const left = args.length - i - 1;
    const word = option(args[i]);
    if (word === 'block' && left >= 1) options.blockMs = blockTime(args[++i]);
    else if (word === 'count' && left >= 1) {
      const count = integer(args[++i]);
      options.count = count <= 0 ? Infinity : count;
    } else if (word === 'streams' && left >= 1) options.keysFrom = i + 1;
    else if (word === 'group' && left >= 2) {
      if (name === 'xread') {
        throw new ErrorReply(
          'ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.',
        );
      }
      options.group = { name: args[i + 1], consumer: args[i + 2] };
      i += 2;
    } else if (word === 'noack') {
      if (name === 'xread') {
        throw new ErrorReply(
          'ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.',
        );
      }
      options.noAcknowledgement = true;
    } else throw syntaxError();
  }
  if (options.keysFrom < 0) throw syntaxError();
  if ((args.length - options.keysFrom) % 2 !== 0) {
    throw new ErrorReply(
      "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
    );
  }
  if (name === 'xreadgroup' && options.group === undefined) {
    throw new ErrorReply('ERR Missing GROUP option for XREADGROUP');
  }
  return options;
}

/** The positions of the keys, which are the first half of what follows STREAMS. */
function findKeys(args: readonly Bytes[]): readonly number[] {
  for (let i = 0; i < args.length; i++) {
    const word = option(args[i]);
    if (word === 'block' || word === 'count') i++;
    else if (word === 'group') i += 2;
    else if (word === 'streams') {
      const length = Math.floor((args.length - i - 1) / 2);
      return Array.from({ length }, (_, j) => i + 1 + j);
    }
  }
  return [];
}

/** Whether the command would wait, for which a script must not ask. If what comes before BLOCK is wrong, the command itself says so. */
export function asksToWait(args: readonly Bytes[]): boolean {
  for (let i = 0; i < args.length - 1; i++) {
    const word = option(args[i]);
    if (word === 'count' && parseInteger(args[i + 1]) !== undefined) i++;
    else if (word === 'group') i += 2;
    else if (word !== 'noack') return word === 'block';
  }
  return false;
}

function xread(args: readonly Bytes[], execution: Execution): Reply {
  const { keysFrom, count, blockMs } = parseOptions(args, 'xread');
  const keys = args.slice(keysFrom, keysFrom + (args.length - keysFrom) / 2);
  const ids = keys.map((key, i) => {
    const text = args[keysFrom + keys.length + i];
    const stream = readToTake(execution, key, 'stream');
    if (text === '$') return stream?.lastId ?? ID_MIN;
    if (text === '>') {
      throw new ErrorReply(
        'ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.',
      );
    }
    return idArgument(text);
  });
  const found: [Reply, Reply][] = [];
  keys.forEach((key, i) => {
    const from = idAfter(ids[i]);
    const stream = readToTake(execution, key, 'stream');
    if (stream === undefined || from === undefined) return;
    const entries = entriesReply(stream, from, ID_MAX, count);
    if (entries.length > 0) found.push([key, entries]);
  });
  if (found.length > 0) return new MapOrPairs(found);
  if (blockMs === undefined) return NullArray.instance;
  const again = [...args.slice(0, keysFrom + keys.length), ...ids.map(idText)];
  return execution.block(keys, blockMs, NullArray.instance, again);
}

/** A stream that XREADGROUP reads. */
interface Source {
  readonly key: Bytes;
  readonly stream: Stream;
  readonly group: Group;
  /** Undefined: new entries. Otherwise the entries after this id that the consumer has already received. */
  readonly after: StreamId | undefined;
}

function sourceOf(key: Bytes, text: Bytes, groupName: Bytes, execution: Execution): Source {
  if (readToTake(execution, key, 'stream') === undefined && execution.resumed) {
    throw new ErrorReply('UNBLOCKED the stream key no longer exists');
  }
  const stream = execution.keyspace.forWrite(key, 'stream');
  const group = stream?.groups.get(groupName);
  if (group === undefined && execution.resumed) {
    throw new ErrorReply('NOGROUP the consumer group this client was blocked on no longer exists');
  }
  if (stream === undefined || group === undefined) {
    throw new ErrorReply(
      `NOGROUP No such key '${key}' or consumer group '${groupName}' in XREADGROUP with GROUP option`,
    );
  }
  if (text === '$') {
    throw new ErrorReply(
      'ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.',
    );
  }
  // As in Redis, the greatest id means new entries too.
  const after = text === '>' ? ID_MAX : idArgument(text);
  return { key, stream, group, after: after === ID_MAX ? undefined : after };
}

function xreadgroup(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const options = parseOptions(args, 'xreadgroup');
  const { keysFrom, blockMs } = options;
  const { name, consumer } = options.group!;
  const keys = args.slice(keysFrom, keysFrom + (args.length - keysFrom) / 2);
  const sources = keys.map((key, i) =>
    sourceOf(key, args[keysFrom + keys.length + i], name, execution),
  );
  const found: [Reply, Reply][] = [];
  for (const { key, stream, group, after } of sources) {
    if (after !== undefined) {
      const reader = group.consumer(consumer, keyspace.nowMs);
      found.push([key, historyReply(stream, reader.pending, after, options.count, keyspace.nowMs)]);
    } else if (stream.entries.size > 0 && stream.entries.last![0] > group.lastId) {
      found.push([key, deliver(stream, group, consumer, options, keyspace.nowMs)]);
    } else continue;
    keyspace.changed(key);
  }
  if (found.length > 0) return new MapOrPairs(found);
  if (blockMs === undefined) return NullArray.instance;
  return execution.block(keys, blockMs, NullArray.instance);
}

/** Entries that the consumer has received and not acknowledged: it gets them again. */
function historyReply(
  stream: Stream,
  pending: Group['pending'],
  after: StreamId,
  count: number,
  nowMs: number,
): Reply {
  const from = idAfter(after);
  const entries: Reply[] = [];
  if (from === undefined) return entries;
  pending.visit(from, ID_MAX, (id, delivery) => {
    const fields = stream.entries.get(id);
    if (fields === undefined) return entries.push([idText(id), NullArray.instance]) < count;
    delivery.deliveredAtMs = nowMs;
    delivery.deliveries++;
    return entries.push(entryReply(id, fields)) < count;
  });
  return entries;
}

/** Gives new entries to a consumer. */
function deliver(
  stream: Stream,
  group: Group,
  consumerName: Bytes,
  { count, noAcknowledgement }: Options,
  nowMs: number,
): Reply {
  const consumer = group.consumer(consumerName, nowMs);
  const entries: Reply[] = [];
  stream.entries.visit(idAfter(group.lastId)!, ID_MAX, (id, fields) => {
    if (group.entriesRead !== UNKNOWN && !stream.hasGapsAfter(id)) group.entriesRead++;
    else if (stream.entriesAdded > 0) group.entriesRead = stream.entriesUpTo(id);
    group.lastId = id;
    if (!noAcknowledgement) group.assign(id, consumer, nowMs, 1);
    return entries.push(entryReply(id, fields)) < count;
  });
  return entries;
}

export const STREAM_READS: readonly CommandSpec[] = [
  {
    name: 'xread',
    arity: -4,
    flags: ['readonly', 'blocking', 'movablekeys'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns entries of streams after given ids; waits for some if asked to.',
    findKeys,
    run: xread,
  },
  {
    name: 'xreadgroup',
    arity: -7,
    flags: ['write', 'blocking', 'movablekeys'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns entries of streams that nobody of a group has got; waits if asked to.',
    findKeys,
    run: xreadgroup,
  },
];
