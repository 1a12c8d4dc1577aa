/** Streams: entries that consumers have got and not acknowledged. */

import type { Consumer, Fields, Group, Pending, Stream } from '../engine/stream.js';
import { ID_MAX, ID_MIN, idText, parseId, type StreamId } from '../engine/stream-ids.js';
import { type Bytes, ErrorReply, NullArray, type Reply } from '../resp/reply.js';
import { integer, option, syntaxError } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Execution } from './spec.js';
import { entryReply, idArgument, rangeEnd } from './stream-arguments.js';

function noGroup(key: Bytes, group: Bytes): ErrorReply {
  return new ErrorReply(`NOGROUP No such key '${key}' or consumer group '${group}'`);
}

function xack([key, name, ...texts]: readonly Bytes[], { keyspace }: Execution): Reply {
  const group = keyspace.forWrite(key, 'stream')?.groups.get(name);
  if (group === undefined) return 0;
  const ids = texts.map((text) => idArgument(text));
  let acknowledged = 0;
  for (const id of ids) if (group.acknowledge(id)) acknowledged++;
  if (acknowledged > 0) keyspace.changed(key);
  return acknowledged;
}

// ── XPENDING ──

function xpending(args: readonly Bytes[], execution: Execution): Reply {
  const [key, name, ...rest] = args;
  const { keyspace } = execution;
  if (rest.length === 0) {
    const group = keyspace.read(key, 'stream')?.groups.get(name);
    if (group === undefined) throw noGroup(key, name);
    return pendingSummary(group);
  }
  // Redis does not mind arguments that are left over.
  if (rest.length < 3 || rest.length > 6) throw syntaxError();
  let minIdleMs = 0;
  if (option(rest[0]) === 'idle') {
    minIdleMs = integer(rest[1]);
    if (rest.length < 5) throw syntaxError();
    rest.splice(0, 2);
  }
  const count = Math.max(0, integer(rest[2]));
  const from = rangeEnd(rest[0], 'start');
  const to = rangeEnd(rest[1], 'end');
  const group = keyspace.read(key, 'stream')?.groups.get(name);
  if (group === undefined) throw noGroup(key, name);
  const pending = rest.length > 3 ? group.consumers.get(rest[3])?.pending : group.pending;
  const found: Reply[] = [];
  if (count === 0) return found;
  pending?.visit(from, to, (id, { consumer, deliveredAtMs, deliveries }) => {
    const idleMs = Math.max(0, keyspace.nowMs - deliveredAtMs);
    if (idleMs >= minIdleMs) found.push([idText(id), consumer.name, idleMs, deliveries]);
    return found.length < count;
  });
  return found;
}

function pendingSummary({ pending, consumers }: Group): Reply {
  if (pending.size === 0) return [0, null, null, NullArray.instance];
  const counts = [...consumers.values()]
    .filter((consumer) => consumer.pending.size > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((consumer) => [consumer.name, String(consumer.pending.size)]);
  return [pending.size, idText(pending.first![0]), idText(pending.last![0]), counts];
}

// ── XCLAIM and XAUTOCLAIM ──

interface Claim {
  idleMs: number | undefined;
  atMs: number | undefined;
  deliveries: number | undefined;
  force: boolean;
  justId: boolean;
  lastId: StreamId | undefined;
}

function parseClaim(args: readonly Bytes[], from: number): Claim {
  const claim: Claim = {
    idleMs: undefined,
    atMs: undefined,
    deliveries: undefined,
    force: false,
    justId: false,
    lastId: undefined,
  };
  for (let i = from; i < args.length; i++) {
    const name = option(args[i]);
    const hasValue = i + 1 < args.length;
    const bad = `ERR Invalid ${name.toUpperCase()} option argument for XCLAIM`;
    if (name === 'force') claim.force = true;
    else if (name === 'justid') claim.justId = true;
    else if (name === 'idle' && hasValue) claim.idleMs = integer(args[++i], bad);
    else if (name === 'time' && hasValue) claim.atMs = integer(args[++i], bad);
    else if (name === 'retrycount' && hasValue) claim.deliveries = integer(args[++i], bad);
    else if (name === 'lastid' && hasValue) claim.lastId = idArgument(args[++i]);
    else throw new ErrorReply(`ERR Unrecognized XCLAIM option '${args[i]}'`);
  }
  return claim;
}

function minIdle(arg: Bytes, name: string): number {
  return Math.max(0, integer(arg, `ERR Invalid min-idle-time argument for ${name}`));
}

interface ClaimTarget {
  readonly stream: Stream;
  readonly group: Group;
}

function targetOf(key: Bytes, name: Bytes, { keyspace }: Execution): ClaimTarget {
  const stream = keyspace.forWrite(key, 'stream');
  const group = stream?.groups.get(name);
  if (stream === undefined || group === undefined) throw noGroup(key, name);
  return { stream, group };
}

/** When the entries count as delivered: not in the future, and not before time began. */
function deliveredAt({ idleMs, atMs }: Claim, nowMs: number): number {
  const at = idleMs !== undefined ? nowMs - idleMs : (atMs ?? nowMs);
  return at < 0 || at > nowMs ? nowMs : at;
}

function xclaim(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const [key, name, consumerName, minIdleText] = args;
  const { stream, group } = targetOf(key, name, execution);
  const minIdleMs = minIdle(minIdleText, 'XCLAIM');
  let at = 4;
  const ids: StreamId[] = [];
  for (; at < args.length; at++) {
    const id = parseId(args[at]);
    if (id === undefined) break;
    ids.push(id);
  }
  const claim = parseClaim(args, at);
  let isChanged = false;
  if (claim.lastId !== undefined && claim.lastId > group.lastId) {
    group.lastId = claim.lastId;
    isChanged = true;
  }
  const atMs = deliveredAt(claim, keyspace.nowMs);
  const claimed: Reply[] = [];
  let consumer: Consumer | undefined;
  for (const id of ids) {
    const pending = group.pending.get(id);
    const fields = stream.entries.get(id);
    if (fields === undefined) {
      if (group.acknowledge(id)) isChanged = true;
      continue;
    }
    if (pending === undefined && !claim.force) continue;
    if (pending !== undefined && isTooFresh(pending, minIdleMs, keyspace.nowMs)) continue;
    consumer ??= group.consumer(consumerName, keyspace.nowMs);
    const deliveries = (pending?.deliveries ?? 1) + (claim.justId ? 0 : 1);
    group.assign(id, consumer, atMs, claim.deliveries ?? deliveries);
    claimed.push(claimReply(id, fields, claim.justId));
    isChanged = true;
  }
  if (isChanged) keyspace.changed(key);
  return claimed;
}

function isTooFresh({ deliveredAtMs }: Pending, minIdleMs: number, nowMs: number): boolean {
  return minIdleMs > 0 && nowMs - deliveredAtMs < minIdleMs;
}

function claimReply(id: StreamId, fields: Fields, justId: boolean): Reply {
  return justId ? idText(id) : entryReply(id, fields);
}

/** For each entry that is to be claimed, so many are looked at. */
const ATTEMPTS = 10;

function xautoclaim(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const [key, name, consumerName, minIdleText, start] = args;
  const minIdleMs = minIdle(minIdleText, 'XAUTOCLAIM');
  const from = rangeEnd(start, 'start');
  let count = 100;
  let justId = false;
  for (let i = 5; i < args.length; i++) {
    const word = option(args[i]);
    if (word === 'count' && i + 1 < args.length) {
      count = integer(args[++i], 'ERR COUNT must be > 0');
      if (count < 1 || count > 2 ** 63 / 16) throw new ErrorReply('ERR COUNT must be > 0');
    } else if (word === 'justid') justId = true;
    else throw syntaxError();
  }
  const { stream, group } = targetOf(key, name, execution);
  const looked: [StreamId, Pending][] = [];
  group.pending.visit(
    from,
    ID_MAX,
    (id, pending) => looked.push([id, pending]) <= count * ATTEMPTS,
  );
  const claimed: Reply[] = [];
  const deleted: Bytes[] = [];
  let consumer: Consumer | undefined;
  let at = 0;
  for (
    ;
    at < Math.min(looked.length, count * ATTEMPTS) && claimed.length + deleted.length < count;
    at++
  ) {
    const [id, pending] = looked[at];
    const fields = stream.entries.get(id);
    if (fields === undefined) {
      group.acknowledge(id);
      deleted.push(idText(id));
      continue;
    }
    if (isTooFresh(pending, minIdleMs, keyspace.nowMs)) continue;
    consumer ??= group.consumer(consumerName, keyspace.nowMs);
    group.assign(id, consumer, keyspace.nowMs, pending.deliveries + (justId ? 0 : 1));
    claimed.push(claimReply(id, fields, justId));
  }
  if (claimed.length + deleted.length > 0) keyspace.changed(key);
  return [idText(looked[at]?.[0] ?? ID_MIN), claimed, deleted];
}

export const STREAM_PENDING: readonly CommandSpec[] = [
  {
    name: 'xack',
    arity: -4,
    flags: ['write', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Acknowledges entries that a consumer of a group has got.',
    keys: ONE_KEY,
    run: xack,
  },
  {
    name: 'xpending',
    arity: -3,
    flags: ['readonly'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Returns which entries of a group are not acknowledged.',
    keys: ONE_KEY,
    run: xpending,
  },
  {
    name: 'xclaim',
    arity: -6,
    flags: ['write', 'fast'],
    category: 'stream',
    since: '5.0.0',
    summary: 'Gives entries that are not acknowledged to another consumer.',
    keys: ONE_KEY,
    run: xclaim,
  },
  {
    name: 'xautoclaim',
    arity: -6,
    flags: ['write', 'fast'],
    category: 'stream',
    since: '6.2.0',
    summary: 'Gives entries that were not acknowledged for some time to another consumer.',
    keys: ONE_KEY,
    run: xautoclaim,
  },
];
