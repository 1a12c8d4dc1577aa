/** Commands that gateways send to shards, and that clients can't. */

import type { ChannelKind } from '../engine/channels.js';
import { type Bytes, NullArray, type Reply } from '../resp/reply.js';
import { type Protocol, ReplyWriter } from '../resp/writer.js';
import { forClient } from './scripting/calls.js';
import { compileScript } from './scripting/eval.js';
import type { Execution, Run } from './spec.js';

/** A command as a part of a transaction. */
export interface Queued {
  readonly name: string;
  readonly args: readonly Bytes[];
}

/** A command as a part of `.exec`. */
export interface ExecCommand extends Queued {
  /** The protocol of its reply. */
  readonly resp: Protocol;
}

/** A key, and the version that it had when the client began to watch it. */
export type Watched = readonly [key: Bytes, version: number];

/** The arguments of `.exec`. */
export function execArgs(watched: readonly Watched[], commands: readonly ExecCommand[]): Bytes[] {
  return [
    String(watched.length),
    ...watched.flatMap(([key, version]) => [key, String(version)]),
    ...commands.flatMap(({ name, args, resp }) => [
      name,
      String(resp),
      String(args.length),
      ...args,
    ]),
  ];
}

export function readExecArgs(args: readonly Bytes[]): {
  watched: readonly Watched[];
  commands: readonly ExecCommand[];
} {
  let at = 1;
  const watched: Watched[] = [];
  for (let left = Number(args[0]); left > 0; left--) {
    watched.push([args[at++], Number(args[at++])]);
  }
  const commands: ExecCommand[] = [];
  while (at < args.length) {
    const name = args[at++];
    const resp = Number(args[at++]) as Protocol;
    const count = Number(args[at++]);
    commands.push({ name, resp, args: args.slice(at, at + count) });
    at += count;
  }
  return { watched, commands };
}

/** The report of a shard about itself. */
export interface ShardReport {
  readonly keys: number;
  /** How many of them have an expiry time. */
  readonly expiring: number;
  readonly bytes: number;
  /** How many keys have expired. */
  readonly expired: number;
  /** How many keys commands have looked up to read them: found, and not found. */
  readonly hits: number;
  readonly misses: number;
  /** How many keys were evicted. */
  readonly evicted: number;
}

export const SHARD_REPORT = '.info';

/** @param reply  names and numbers in turn */
export function readShardReport(reply: Reply): ShardReport {
  const words = reply as readonly (string | number)[];
  const figures = words.flatMap((name, i) => (i % 2 === 0 ? [[name, words[i + 1]]] : []));
  return Object.fromEntries(figures) as ShardReport;
}

function shardReport({ keyspace, eviction }: Execution): ShardReport {
  const { entries, expiring, memory, counts } = keyspace;
  return { keys: entries.size, expiring, bytes: memory, ...counts, evicted: eviction.evicted };
}

/** The pairs of `.await`. */
function readPairs(args: readonly Bytes[]): Watched[] {
  const pairs: Watched[] = [];
  for (let i = 0; i < args.length; i += 2) pairs.push([args[i], Number(args[i + 1])]);
  return pairs;
}

export const INTERNAL: Readonly<Record<string, Run>> = {
  /**
   * Runs all commands as one. The reply has those of the commands as strings: each is what its client reads. If a watched key
   * has changed, the reply is a null array.
   */
  '.exec': (args, execution) => {
    const { watched, commands } = readExecArgs(args);
    const { keyspace } = execution;
    if (watched.some(([key, version]) => keyspace.versionOf(key) !== version)) {
      return NullArray.instance;
    }
    const writer = new ReplyWriter();
    return commands.map(({ name, args, resp }): Reply => {
      writer.clear();
      // It is too late to run a script in another way.
      writer.write(forClient(execution.run(name, args)), resp);
      return writer.written().toString('latin1');
    });
  },

  /** For INFO and metrics. */
  [SHARD_REPORT]: (_args, execution) => Object.entries(shardReport(execution)).flat(),

  /** For CONFIG GET: the settings of memory, as names and values. */
  '.settings': (_args, { eviction }) => Object.entries(eviction.settings).flat(),

  /** For CONFIG SET: the number of shards, and names and values. */
  '.configure': ([shards, ...pairs], { eviction }) => {
    const changes: Record<string, string> = {};
    for (let i = 0; i < pairs.length; i += 2) changes[pairs[i]] = pairs[i + 1];
    eviction.configure(changes, Number(shards));
    return 1;
  },

  /** The body of a script. */
  '.script': ([sha], { scripts }) => scripts.bodies.get(sha) ?? null,

  /** A script that some shard has run, or is about to run, by EVAL. All shards get it at the same place of the order. */
  '.announce': ([body], { scripts }) => {
    compileScript(body);
    return scripts.announce(body);
  },

  /** Whether all shards know a script. */
  '.announced': ([sha], { scripts }) => (scripts.isAnnounced(sha) ? 1 : 0),

  /** The codes of all libraries of functions. */
  '.libraries': (_args, { scripts }) => [...scripts.libraries.values()],

  /** The versions of keys, for clients that watch them. */
  '.versions': (keys, { keyspace }) => keys.map((key) => keyspace.versionOf(key)),

  /** The gateway has so many clients now that have subscribed: kind, name, gateway, number. */
  '.subscribe': ([kind, name, gateway, clients], { channels }) => {
    channels.subscribe(kind as ChannelKind, name, gateway, Number(clients));
    return 1;
  },

  /** Blocks until one of the keys does not have this version any more. */
  '.await': (args, execution) => {
    const pairs = readPairs(args);
    if (pairs.some(([key, version]) => execution.keyspace.versionOf(key) !== version)) return 1;
    return execution.block(
      pairs.map(([key]) => key),
      0,
      0,
    );
  },
};
