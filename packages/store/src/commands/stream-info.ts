/** Streams: what there is to know about them. */

import { type Consumer, type Group, type Stream, UNKNOWN } from '../engine/stream.js';
import { ID_MAX, ID_MIN, idText } from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, MapReply, type Reply, Simple } from '../resp/reply.js';
import { badSubcommand, integer, NO_SUCH_KEY, option } from './arguments.js';
import type { CommandSpec, Execution } from './spec.js';
import { entriesReply, entryReply } from './stream-arguments.js';
import { SUBCOMMAND_KEY } from './stream-groups.js';

function streamOf(key: Bytes, { keyspace }: Execution): Stream {
  const stream = keyspace.read(key, 'stream');
  if (stream === undefined) throw new ErrorReply(NO_SUCH_KEY);
  return stream;
}

/** In the order of their names. */
function sorted<V>(map: ReadonlyMap<Bytes, V>): (readonly [name: Bytes, value: V])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

function entriesRead(group: Group): Reply {
  return group.entriesRead === UNKNOWN ? null : group.entriesRead;
}

function head(stream: Stream): [Reply, Reply][] {
  return [
    ['length', stream.entries.size],
    ['radix-tree-keys', stream.entries.blocks],
    ['radix-tree-nodes', stream.entries.blocks + 1],
    ['last-generated-id', idText(stream.lastId)],
    ['max-deleted-entry-id', idText(stream.maxDeletedId)],
    ['entries-added', stream.entriesAdded],
    ['recorded-first-entry-id', idText(stream.firstId)],
  ];
}

function info([key, ...options]: readonly Bytes[], execution: Execution): Reply {
  if (options.length > 0) return fullInfo(key, options, execution);
  const stream = streamOf(key, execution);
  const { first, last } = stream.entries;
  return new MapReply([
    ...head(stream),
    ['groups', stream.groups.size],
    ['first-entry', first ? entryReply(...first) : null],
    ['last-entry', last ? entryReply(...last) : null],
  ]);
}

function fullInfo(key: Bytes, options: readonly Bytes[], execution: Execution): Reply {
  const stream = streamOf(key, execution);
  if (option(options[0]) !== 'full') throw badSubcommand('XINFO', 'stream');
  let count = 10;
  if (options.length > 1) {
    if (options.length !== 3 || option(options[1]) !== 'count')
      throw badSubcommand('XINFO', 'stream');
    count = integer(options[2]);
    if (count < 0) count = 10;
  }
  const limit = count || Infinity;
  return new MapReply([
    ...head(stream),
    ['entries', entriesReply(stream, ID_MIN, ID_MAX, limit)],
    ['groups', sorted(stream.groups).map(([name, group]) => groupInfo(stream, name, group, limit))],
  ]);
}

function groupInfo(stream: Stream, name: Bytes, group: Group, limit: number): Reply {
  const pending: Reply[] = [];
  group.pending.visit(ID_MIN, ID_MAX, (id, { consumer, deliveredAtMs, deliveries }) => {
    return pending.push([idText(id), consumer.name, deliveredAtMs, deliveries]) < limit;
  });
  return new MapReply([
    ['name', name],
    ['last-delivered-id', idText(group.lastId)],
    ['entries-read', entriesRead(group)],
    ['lag', stream.lagOf(group) ?? null],
    ['pel-count', group.pending.size],
    ['pending', pending],
    ['consumers', sorted(group.consumers).map(([, consumer]) => consumerInfo(consumer, limit))],
  ]);
}

function consumerInfo({ name, seenAtMs, pending }: Consumer, limit: number): Reply {
  const entries: Reply[] = [];
  pending.visit(ID_MIN, ID_MAX, (id, { deliveredAtMs, deliveries }) => {
    return entries.push([idText(id), deliveredAtMs, deliveries]) < limit;
  });
  return new MapReply([
    ['name', name],
    ['seen-time', seenAtMs],
    ['pel-count', pending.size],
    ['pending', entries],
  ]);
}

function groups([key]: readonly Bytes[], execution: Execution): Reply {
  const stream = streamOf(key, execution);
  return sorted(stream.groups).map(
    ([name, group]) =>
      new MapReply([
        ['name', name],
        ['consumers', group.consumers.size],
        ['pending', group.pending.size],
        ['last-delivered-id', idText(group.lastId)],
        ['entries-read', entriesRead(group)],
        ['lag', stream.lagOf(group) ?? null],
      ]),
  );
}

function consumers([key, name]: readonly Bytes[], execution: Execution): Reply {
  const group = streamOf(key, execution).groups.get(name);
  if (group === undefined) {
    throw new ErrorReply(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
  }
  const { nowMs } = execution.keyspace;
  return sorted(group.consumers).map(
    ([, consumer]) =>
      new MapReply([
        ['name', consumer.name],
        ['pending', consumer.pending.size],
        ['idle', Math.max(0, nowMs - consumer.seenAtMs)],
      ]),
  );
}

const HELP = [
  'XINFO <subcommand> <key>. Subcommands are:',
  'CONSUMERS <group>: the consumers of a group.',
  'GROUPS: the groups of a stream.',
  'STREAM [FULL [COUNT n]]: the stream itself.',
  'HELP: this list.',
];

export const STREAM_INFO: readonly CommandSpec[] = [
  {
    name: 'xinfo|stream',
    arity: -3,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns what there is to know about a stream.',
    differs: 'The keys and nodes of the radix tree are those of other blocks.',
    keys: SUBCOMMAND_KEY,
    run: info,
  },
  {
    name: 'xinfo|groups',
    arity: 3,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns the groups of a stream.',
    keys: SUBCOMMAND_KEY,
    run: groups,
  },
  {
    name: 'xinfo|consumers',
    arity: 4,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns the consumers of a group.',
    keys: SUBCOMMAND_KEY,
    run: consumers,
  },
  {
    name: 'xinfo|help',
    arity: 2,
    flags: ['loading', 'stale'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Lists the subcommands.',
    run: () => HELP.map((line) => new Simple(line)),
  },
];
