/** Arguments and replies that commands on streams share. */

import type { Fields, Stream } from '../engine/stream.js';
import {
  ID_MAX,
  ID_MIN,
  idAfter,
  idBefore,
  idText,
  parseId,
  type StreamId,
} from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { integer, option } from './arguments.js';

const BAD_ID = 'ERR Invalid stream ID specified as stream command argument';

export function badId(): ErrorReply {
  return new ErrorReply(BAD_ID);
}

/** @param missing  the second part if it is not given */
export function idArgument(arg: Bytes, missing: 'min' | 'max' = 'min'): StreamId {
  const id = parseId(arg, missing);
  if (id === undefined) throw badId();
  return id;
}

/** The end of a range: `-`, `+`, or an id, which `(` excludes. */
export function rangeEnd(arg: Bytes, end: 'start' | 'end'): StreamId {
  const excluded = arg[0] === '(' && arg.length > 1;
  const text = excluded ? arg.slice(1) : arg;
  if (!excluded && text === '-') return ID_MIN;
  if (!excluded && text === '+') return ID_MAX;
  const id = idArgument(text, end === 'start' ? 'min' : 'max');
  if (!excluded) return id;
  const next = end === 'start' ? idAfter(id) : idBefore(id);
  if (next === undefined) throw new ErrorReply(`ERR invalid ${end} ID for the interval`);
  return next;
}

export function entryReply(id: StreamId, fields: Fields): Reply {
  return [idText(id), fields];
}

/** Entries from `from` to `to`. @param count  how many at most */
export function entriesReply(
  stream: Stream,
  from: StreamId,
  to: StreamId,
  count: number,
  reversed = false,
): Reply[] {
  const found: Reply[] = [];
  if (count === 0) return found;
  const visit = (id: StreamId, fields: Fields) => found.push(entryReply(id, fields)) < count;
  if (reversed) stream.entries.visitDown(from, to, visit);
  else stream.entries.visit(from, to, visit);
  return found;
}

/** What XADD and XTRIM remove from the beginning of a stream. */
export type Trimming = (stream: Stream) => number;

/** Options of XADD and XTRIM while they are read. */
export interface TrimOptions {
  strategy: 'maxlen' | 'minid' | undefined;
  length: number;
  minId: StreamId;
  approximate: boolean;
  limit: number | undefined;
}

export function newTrimOptions(): TrimOptions {
  return {
    strategy: undefined,
    length: 0,
    minId: ID_MIN,
    approximate: false,
    limit: undefined,
  };
}

/** Reads an option of trimming. @returns how many arguments follow it; undefined if it is another option */
export function readTrimOption(
  args: readonly Bytes[],
  at: number,
  options: TrimOptions,
): number | undefined {
  const name = option(args[at]);
  const left = args.length - at - 1;
  if (left < 1) return undefined;
  if (name === 'limit') {
    options.limit = integer(args[at + 1]);
    if (options.limit < 0) throw new ErrorReply('ERR The LIMIT argument must be >= 0.');
    return 1;
  }
  if (name !== 'maxlen' && name !== 'minid') return undefined;
  if (options.strategy !== undefined && options.strategy !== name) {
    throw new ErrorReply(
      'ERR syntax error, MAXLEN and MINID options at the same time are not compatible',
    );
  }
  options.strategy = name;
  const sign = args[at + 1];
  const isSigned = left >= 2 && (sign === '~' || sign === '=');
  options.approximate = isSigned && sign === '~';
  const threshold = args[at + (isSigned ? 2 : 1)];
  if (name === 'minid') options.minId = idArgument(threshold);
  else {
    options.length = integer(threshold);
    if (options.length < 0) throw new ErrorReply('ERR The MAXLEN argument must be >= 0.');
  }
  return isSigned ? 2 : 1;
}

/** Redis looks at so many entries at most if it may trim approximately. */
const APPROXIMATE_LIMIT = 10_000;

/** @returns undefined if nothing is to be trimmed */
export function trimming(options: TrimOptions): Trimming | undefined {
  const { strategy, approximate, length, minId } = options;
  if (options.limit !== undefined && strategy === undefined) {
    throw new ErrorReply(
      'ERR syntax error, LIMIT cannot be used without specifying a trimming strategy',
    );
  }
  if (options.limit !== undefined && !approximate) {
    throw new ErrorReply('ERR syntax error, LIMIT cannot be used without the special ~ option');
  }
  if (strategy === undefined) return undefined;
  const limit = approximate ? (options.limit ?? APPROXIMATE_LIMIT) || Infinity : Infinity;
  if (strategy === 'maxlen') return (stream) => stream.trimToLength(length, approximate, limit);
  return (stream) => stream.trimBelow(minId, approximate, limit);
}
