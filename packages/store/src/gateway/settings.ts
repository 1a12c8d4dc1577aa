/**
 * The parameters that CONFIG GET and SET know. Some have an effect; others are there because clients ask for them. Those of memory are kept
 * by the shards, for all gateways.
 */

import { MEMORY_DEFAULTS, type MemorySettings, POLICIES } from '../engine/eviction.js';
import { matchesGlob } from '../engine/glob.js';
import { type Bytes, ErrorReply } from '../resp/reply.js';

interface Parameter {
  readonly initial: string;
  /** Checks a value, and returns it as CONFIG GET prints it. @throws Error that says what is wrong */
  readonly read?: (text: string) => string;
  readonly isFixed?: boolean;
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['k', 1e3],
  ['kb', 1024],
  ['m', 1e6],
  ['mb', 1024 ** 2],
  ['g', 1e9],
  ['gb', 1024 ** 3],
]);

/** `100mb` as a number of bytes; undefined if it is none. */
export function parseMemory(text: string): number | undefined {
  const match = /^(\d+)([a-z]*)$/i.exec(text);
  const unit = match ? UNITS.get(match[2].toLowerCase()) : undefined;
  return match && unit !== undefined ? Number(match[1]) * unit : undefined;
}

function memory(text: string): string {
  const bytes = parseMemory(text);
  if (bytes === undefined) throw new Error('argument must be a memory value');
  return String(bytes);
}

function integer(from: number, to: number): (text: string) => string {
  return (text) => {
    if (!/^-?\d+$/.test(text)) throw new Error("argument couldn't be parsed into an integer");
    const value = Number(text);
    if (value < from || value > to) {
      throw new Error(`argument must be between ${from} and ${to} inclusive`);
    }
    return String(value);
  };
}

function yesOrNo(text: string): string {
  if (!/^(yes|no)$/i.test(text)) throw new Error("argument must be 'yes' or 'no'");
  return text.toLowerCase();
}

function oneOf(words: readonly string[]): (text: string) => string {
  return (text) => {
    const word = text.toLowerCase();
    if (!words.includes(word)) {
      throw new Error(`argument(s) must be one of the following: ${words.join(', ')}`);
    }
    return word;
  };
}

const anything = (initial: string): Parameter => ({ initial, read: (text) => text });
const fixed = (initial: string): Parameter => ({ initial, isFixed: true });
const whole = (initial: number, from: number, to: number): Parameter => ({
  initial: String(initial),
  read: integer(from, to),
});
const flag = (initial: 'yes' | 'no'): Parameter => ({ initial, read: yesOrNo });
const size = (initial: number): Parameter => ({ initial: String(initial), read: memory });

const INT_MAX = 2 ** 31 - 1;
const DEFAULT_OUTPUT_LIMITS = 'normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60';

const PARAMETERS: Readonly<Record<string, Parameter>> = {
  // With an effect at this gateway.
  'client-output-buffer-limit': anything(DEFAULT_OUTPUT_LIMITS),
  'client-query-buffer-limit': size(1024 ** 3),
  maxclients: whole(10_000, 1, 2 ** 32 - 1),
  'proto-max-bulk-len': size(512 * 1024 ** 2),
  requirepass: anything(''),
  'slowlog-log-slower-than': whole(10_000, -1, INT_MAX),
  'slowlog-max-len': whole(128, 0, INT_MAX),
  'tcp-keepalive': whole(300, 0, INT_MAX),
  timeout: whole(0, 0, INT_MAX),
  // What the store was started with.
  appendonly: fixed('no'),
  appendfsync: fixed('everysec'),
  bind: fixed(''),
  'cluster-enabled': fixed('no'),
  databases: fixed('1'),
  dir: fixed(''),
  port: fixed('0'),
  'tls-port': fixed('0'),
  unixsocket: fixed(''),
  // Without an effect.
  activedefrag: flag('no'),
  activerehashing: flag('yes'),
  'busy-reply-threshold': whole(5000, 0, INT_MAX),
  dbfilename: anything('dump.rdb'),
  'hash-max-listpack-entries': whole(512, 0, INT_MAX),
  'hash-max-listpack-value': whole(64, 0, INT_MAX),
  'hash-max-ziplist-entries': whole(512, 0, INT_MAX),
  'hash-max-ziplist-value': whole(64, 0, INT_MAX),
  hz: whole(10, 1, 500),
  'latency-monitor-threshold': whole(0, 0, INT_MAX),
  'latency-tracking': flag('yes'),
  'lazyfree-lazy-eviction': flag('no'),
  'lazyfree-lazy-expire': flag('no'),
  'lazyfree-lazy-server-del': flag('no'),
  'lazyfree-lazy-user-del': flag('no'),
  'lazyfree-lazy-user-flush': flag('no'),
  'list-compress-depth': whole(0, 0, INT_MAX),
  'list-max-listpack-size': whole(-2, -5, INT_MAX),
  'list-max-ziplist-size': whole(-2, -5, INT_MAX),
  loglevel: anything('notice'),
  'lua-time-limit': whole(5000, 0, INT_MAX),
  'min-replicas-max-lag': whole(10, 0, INT_MAX),
  'min-replicas-to-write': whole(0, 0, INT_MAX),
  'notify-keyspace-events': anything(''),
  'repl-timeout': whole(60, 1, INT_MAX),
  save: anything(''),
  'set-max-intset-entries': whole(512, 0, INT_MAX),
  'stop-writes-on-bgsave-error': flag('yes'),
  'stream-node-max-bytes': size(4096),
  'stream-node-max-entries': whole(100, 0, INT_MAX),
  'tracking-table-max-keys': whole(1_000_000, 0, INT_MAX),
  'zset-max-listpack-entries': whole(128, 0, INT_MAX),
  'zset-max-listpack-value': whole(64, 0, INT_MAX),
  'zset-max-ziplist-entries': whole(128, 0, INT_MAX),
  'zset-max-ziplist-value': whole(64, 0, INT_MAX),
};

/** As `MEMORY_DEFAULTS` has them. */
const OF_SHARDS: Readonly<Record<string, NonNullable<Parameter['read']>>> = {
  maxmemory: memory,
  'maxmemory-policy': oneOf(POLICIES),
  'maxmemory-samples': integer(1, 64),
  'lfu-log-factor': integer(0, INT_MAX),
  'lfu-decay-time': integer(0, INT_MAX),
};

/** When a client that does not read is disconnected. */
export interface OutputLimit {
  /** 0: never. */
  readonly hardBytes: number;
  readonly softBytes: number;
  readonly softSeconds: number;
}

export type Pair = readonly [name: string, value: string];

/** Whether one of the patterns means a parameter that the shards keep. */
export function concernShards(patterns: readonly Bytes[]): boolean {
  return Object.keys(MEMORY_DEFAULTS).some((name) => matches(patterns, name));
}

function matches(patterns: readonly Bytes[], name: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern.toLowerCase(), name));
}

export class Settings {
  readonly #values = new Map<string, string>();
  needsPassword = false;
  maxClients = 0;
  timeoutMs = 0;
  keepAliveMs = 0;
  bulkBytesMax = 0;
  requestBytesMax = 0;
  /** A command that takes as many microseconds is slow; negative: none is. */
  slowerThanUs = 0;
  slowLogMax = 0;
  #outputLimits = new Map<string, OutputLimit>();

  /** @param initial  what the store was started with */
  constructor(initial: Readonly<Record<string, string>> = {}) {
    for (const [name, parameter] of Object.entries(PARAMETERS)) {
      this.#values.set(name, initial[name] ?? parameter.initial);
    }
    this.#apply();
  }

  get(name: string): string {
    return this.#values.get(name) ?? '';
  }

  outputLimit(type: 'normal' | 'pubsub'): OutputLimit {
    return this.#outputLimits.get(type)!;
  }

  /** The parameters that match one of the patterns. @param ofShards  what the shards keep */
  matching(patterns: readonly Bytes[], ofShards: Readonly<Partial<MemorySettings>> = {}): Pair[] {
    return [...this.#values, ...Object.entries(ofShards)].filter(([name]) =>
      matches(patterns, name),
    );
  }

  /**
   * @returns the checked values of this gateway, and those of the shards
   * @throws ErrorReply if one of them is wrong: all are set or none
   */
  check(pairs: readonly (readonly [name: Bytes, value: Bytes])[]): {
    readonly own: readonly Pair[];
    readonly ofShards: Partial<MemorySettings>;
  } {
    const checked = pairs.map(([name, value]): Pair => {
      const lower = name.toLowerCase();
      const parameter = parameterOf(lower);
      if (parameter === undefined) {
        throw new ErrorReply(
          `ERR Unknown option or number of arguments for CONFIG SET - '${name}'`,
        );
      }
      return [lower, checkedValue(name, value, parameter)];
    });
    const names = checked.map(([name]) => name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) throw failed(twice, 'duplicate parameter');
    return {
      own: checked.filter(([name]) => Object.hasOwn(PARAMETERS, name)),
      ofShards: Object.fromEntries(checked.filter(([name]) => Object.hasOwn(OF_SHARDS, name))),
    };
  }

  /** @param pairs  that were checked */
  set(pairs: readonly Pair[]): void {
    for (const [name, value] of pairs) this.#values.set(name, value);
    this.#apply();
  }

  #apply(): void {
    this.needsPassword = this.get('requirepass') !== '';
    this.maxClients = Number(this.get('maxclients'));
    this.timeoutMs = Number(this.get('timeout')) * 1000;
    this.keepAliveMs = Number(this.get('tcp-keepalive')) * 1000;
    this.bulkBytesMax = Number(this.get('proto-max-bulk-len'));
    this.requestBytesMax = Number(this.get('client-query-buffer-limit'));
    this.slowerThanUs = Number(this.get('slowlog-log-slower-than'));
    this.slowLogMax = Number(this.get('slowlog-max-len'));
    this.#outputLimits = readOutputLimits(this.get('client-output-buffer-limit'));
  }
}

function parameterOf(name: string): Parameter | undefined {
  if (Object.hasOwn(PARAMETERS, name)) return PARAMETERS[name];
  return Object.hasOwn(OF_SHARDS, name) ? { initial: '', read: OF_SHARDS[name] } : undefined;
}

function checkedValue(name: Bytes, value: Bytes, { read, isFixed }: Parameter): string {
  if (isFixed || read === undefined) throw failed(name, "can't set immutable config");
  try {
    if (name.toLowerCase() === 'client-output-buffer-limit') {
      return writeOutputLimits(readOutputLimits(`${DEFAULT_OUTPUT_LIMITS} ${value}`));
    }
    return read(value);
  } catch (error) {
    throw failed(name, (error as Error).message);
  }
}

function failed(name: Bytes, why: string): ErrorReply {
  return new ErrorReply(`ERR CONFIG SET failed (possibly related to argument '${name}') - ${why}`);
}

/** Groups of four words: type of client, hard limit, soft limit, seconds. */
function readOutputLimits(text: string): Map<string, OutputLimit> {
  const words = text.trim().split(/\s+/);
  if (words.length % 4 !== 0)
    throw new Error('Wrong number of arguments in buffer limit configuration.');
  const limits = new Map<string, OutputLimit>();
  for (let i = 0; i < words.length; i += 4) {
    const type = words[i].toLowerCase().replace('replica', 'slave');
    if (!['normal', 'slave', 'pubsub'].includes(type)) {
      throw new Error('Invalid client class specified in buffer limit configuration.');
    }
    const [hardBytes, softBytes] = [parseMemory(words[i + 1]), parseMemory(words[i + 2])];
    const softSeconds = /^\d+$/.test(words[i + 3]) ? Number(words[i + 3]) : undefined;
    if (hardBytes === undefined || softBytes === undefined || softSeconds === undefined) {
      throw new Error('Error in hard, soft or soft_seconds setting in buffer limit configuration.');
    }
    limits.set(type, { hardBytes, softBytes, softSeconds });
  }
  return limits;
}

function writeOutputLimits(limits: ReadonlyMap<string, OutputLimit>): string {
  return [...limits]
    .map(([type, limit]) => `${type} ${limit.hardBytes} ${limit.softBytes} ${limit.softSeconds}`)
    .join(' ');
}
