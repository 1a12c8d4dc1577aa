/**
 * What a cluster is asked to be, checked and completed. Called by everything that starts a cluster, with
 * whatever the user passed; nothing after this doubts a number again.
 *
 * The outcome is plain data: it is sent to workers as it is, and stored in the arena as JSON for those who
 * attach. Every mistake is a `ConfigError` that says what was asked, what is allowed, and where.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ErrorCode, TramError, type TramErrorOptions } from './errors.js';
import { Layout, type Sizes } from './memory/layout.js';
import type { Timing } from './protocol/edges.js';
import { GROUPS_MAX, Overlay, OverlayError, parseTree, type Shape } from './protocol/overlay.js';

export const MEMORIES = ['threads', 'processes', 'simulated'] as const;

export type MemoryKind = (typeof MEMORIES)[number];

export interface ClusterOptions {
  /** How many replica groups: 1 to 64. */
  groups: number;
  /** Members of each group: 1, 3, 5 or 7. A group survives the loss of fewer than half. Default 3. */
  replicas?: number;
  /** A shape, or the parent of each group and -1 for the root: `[-1, 0, 0]` or `'-1,0,0'`. Default `base`. */
  tree?: Shape | (string & Record<never, never>) | readonly number[];
  /** What the cluster runs in: worker threads, processes of their own, or a simulation. Default `threads`. */
  memory?: MemoryKind;
  /** By which other processes find the cluster. */
  name?: string;
  /** The module of the replicated service: a URL, or a path from the working directory. */
  service?: URL | string;
  /**
   * How many threads or processes run the replicas: up to `replicas`, or a multiple of it. From `replicas` on the
   * loss of one costs no group two members. Default for processes: `replicas`; for threads: the number of cores
   * less one, since more busy threads than cores hold each other up.
   */
  hosts?: number;
  /** How many clients may be connected at one time. Default 16. */
  clients?: number;
  /** Default 1024. */
  payloadBytesMax?: number;
  /** Default 256. */
  replyBytesMax?: number;
  /** How many messages of one client may be unanswered at one time. Default 64. */
  callsMax?: number;
  /** Each replica's log; rounded up to a power of two, as the next two. Default 131072, or 8 of the largest messages. */
  logBytes?: number;
  /** What a client may have on its way to one group. Default 32768, or 8 of the largest messages. */
  inboxBytes?: number;
  /** What a group may have on its way to one child. Default 65536, or 8 of the largest messages. */
  feedBytes?: number;
  /** How often a replica shows that it is alive. Default 5. */
  heartbeatMs?: number;
  /** How long a leader may be silent before it is replaced. Default 500, or 20 heartbeats. */
  suspectAfterMs?: number;
  /** How long a client waits for replies before it writes a message again. Default 50. */
  resendAfterMs?: number;
  /** A directory for the history of the run, which `tram check` can judge. */
  trace?: string;
}

export type OptionName = keyof ClusterOptions;

/** Plain data, and the same after a detour through JSON. */
export interface ClusterConfig {
  readonly memory: MemoryKind;
  readonly hosts: number;
  readonly parents: readonly number[];
  readonly sizes: Sizes;
  readonly timing: Timing;
  readonly name?: string;
  /** The URL of the service's module. */
  readonly service?: string;
  /** An absolute path. */
  readonly trace?: string;
}

/** `path` leads to the value at fault: an option, perhaps an element of it; empty if there is no one value. */
export class ConfigError extends TramError {
  constructor(
    readonly path: readonly (string | number)[],
    message: string,
    options: TramErrorOptions & { readonly code?: ErrorCode } = {},
  ) {
    super(options.code ?? 'TRAM_INVALID_CONFIG', message, options);
  }
}

interface Range {
  readonly least: number;
  readonly most: number;
  readonly isFractional?: true;
}

const RING: Range = { least: 64, most: 2 ** 30 };
const BODY: Range = { least: 0, most: 2 ** 24 };
const DURATION: Range = { least: 1, most: 60_000, isFractional: true };

/** The numbers among the options. */
const RANGES = {
  groups: { least: 1, most: GROUPS_MAX },
  // A ballot has three bits for the member.
  replicas: { least: 1, most: 7 },
  hosts: { least: 1, most: 7 * GROUPS_MAX },
  clients: { least: 1, most: 1024 },
  payloadBytesMax: BODY,
  replyBytesMax: BODY,
  // A message names its client and its call in one word.
  callsMax: { least: 1, most: 32768 },
  logBytes: RING,
  inboxBytes: RING,
  feedBytes: RING,
  heartbeatMs: { least: 0.1, most: 1000, isFractional: true },
  suspectAfterMs: DURATION,
  resendAfterMs: DURATION,
} as const satisfies Partial<Record<OptionName, Range>>;

type NumberName = keyof typeof RANGES;
type RingName = 'logBytes' | 'inboxBytes' | 'feedBytes';

/** Listed in the order in which they are documented. */
export const OPTION_NAMES = Object.keys({
  groups: true,
  replicas: true,
  tree: true,
  memory: true,
  name: true,
  service: true,
  hosts: true,
  clients: true,
  payloadBytesMax: true,
  replyBytesMax: true,
  callsMax: true,
  logBytes: true,
  inboxBytes: true,
  feedBytes: true,
  heartbeatMs: true,
  suspectAfterMs: true,
  resendAfterMs: true,
  trace: true,
} satisfies Record<OptionName, true>) as OptionName[];

const DEFAULT_REPLICAS = 3;
const DEFAULT_CLIENTS = 16;
const DEFAULT_PAYLOAD_BYTES_MAX = 1024;
const DEFAULT_REPLY_BYTES_MAX = 256;
const DEFAULT_CALLS_MAX = 64;
const DEFAULT_RING_BYTES = { logBytes: 131_072, inboxBytes: 32_768, feedBytes: 65_536 } as const;
const SNAPSHOT_CHUNK_BYTES = 16_384;
/** Unless asked otherwise, a ring has room for so many messages of the largest size. */
const DEFAULT_RING_MESSAGES = 8;

const DEFAULT_HEARTBEAT_MS = 5;
const DEFAULT_SUSPECT_AFTER_MS = 500;
const DEFAULT_SUSPECT_AFTER_HEARTBEATS = 20;
const DEFAULT_RESEND_AFTER_MS = 50;
/** Where there is nothing to do, hearts beat so many times more slowly. */
const REST_HEARTBEATS = 20;

/** Above this, a word of the arena could not be named by a signed 32-bit number. Leaves room for the board. */
const MEMORY_BYTES_MAX = 8_000_000_000;

const WORD_BYTES = Int32Array.BYTES_PER_ELEMENT;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** Two letters at least: `C:\service.js` is a path. */
const URL_SCHEME = /^[a-z][a-z0-9+.-]+:/i;
const SERVICE_SCHEMES = ['file:', 'data:'];

/**
 * @param salt a random word, known only to the cluster's own processes (`Window`)
 * @param directory where relative paths begin
 * @param cores how many there are
 */
export function resolveConfig(
  options: ClusterOptions,
  salt: number,
  directory: string = process.cwd(),
  cores: number = availableParallelism(),
): ClusterConfig {
  const given = knownOptions(options);
  const memory = checkMemory(given.memory);
  const groups = numberOf(given, 'groups');
  if (groups === undefined) {
    throw new ConfigError(['groups'], `groups is required: ${expectation(RANGES.groups)}`);
  }
  const replicas = checkReplicas(numberOf(given, 'replicas'));
  const config: ClusterConfig = {
    memory,
    hosts:
      checkHosts(numberOf(given, 'hosts'), groups, replicas) ??
      usualHosts(memory, groups, replicas, cores),
    parents: checkTree(given.tree, groups),
    sizes: resolveSizes(given, groups, replicas, salt),
    timing: resolveTiming(given),
    ...(given.name !== undefined && { name: checkName(given.name) }),
    ...(given.service !== undefined && { service: serviceUrl(given.service, directory) }),
    ...(given.trace !== undefined && { trace: checkTrace(given.trace, directory) }),
  };
  requireAddressable(config);
  return config;
}

/** How much shared memory the regions of all replicas and clients take. */
export function memoryBytes(config: Pick<ClusterConfig, 'sizes'>): number {
  const { groups, replicas, clients } = config.sizes;
  const { replicaRegionWords, clientRegionWords } = new Layout(config.sizes);
  const words = groups * replicas * replicaRegionWords + clients * clientRegionWords;
  return words * WORD_BYTES;
}

type Given = { readonly [name in OptionName]?: unknown };

function knownOptions(options: unknown): Given {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new ConfigError([], `the options must be an object, not ${describeValue(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!(OPTION_NAMES as string[]).includes(key)) throw unknownOption(key);
  }
  return { ...options };
}

export function unknownOption(key: string): ConfigError {
  const nearest = nearestName(key, OPTION_NAMES);
  const remedy =
    nearest === undefined
      ? `the options are ${OPTION_NAMES.join(', ')}`
      : `did you mean ${nearest}?`;
  return new ConfigError([key], `unknown option ${quote(key)}: ${remedy}`);
}

/** As it stands in "must be …, not …". */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return `the string ${quote(value)}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function expectation({ least, most, isFractional }: Range): string {
  return `${isFractional ? 'a number' : 'an integer'} from ${least} to ${most}`;
}

function numberOf(given: Given, name: NumberName): number | undefined {
  const value = given[name];
  if (value === undefined) return undefined;
  const range: Range = RANGES[name];
  const isRight =
    typeof value === 'number' &&
    (range.isFractional || Number.isInteger(value)) &&
    value >= range.least &&
    value <= range.most;
  if (isRight) return value;
  throw new ConfigError(
    [name],
    `${name} must be ${expectation(range)}, not ${describeValue(value)}`,
  );
}

function textOf(value: unknown, name: OptionName): string {
  if (typeof value === 'string') return value;
  throw new ConfigError([name], `${name} must be a string, not ${describeValue(value)}`);
}

function checkMemory(value: unknown): MemoryKind {
  if (value === undefined) return 'threads';
  const text = textOf(value, 'memory');
  const memory = MEMORIES.find((known) => known === text);
  if (memory !== undefined) return memory;
  throw new ConfigError(['memory'], `memory must be ${listed(MEMORIES)}, not ${quote(text)}`);
}

function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function checkReplicas(replicas = DEFAULT_REPLICAS): number {
  if (replicas % 2 === 1) return replicas;
  throw new ConfigError(['replicas'], `replicas must be odd, not ${replicas}`, {
    hint: `A group of ${replicas} survives no more losses than one of ${replicas - 1}.`,
  });
}

function usualHosts(memory: MemoryKind, groups: number, replicas: number, cores: number): number {
  if (memory !== 'threads') return replicas;
  const most = Math.min(cores - 1, groups * replicas);
  return most < replicas ? Math.max(1, most) : most - (most % replicas);
}

function checkHosts(
  hosts: number | undefined,
  groups: number,
  replicas: number,
): number | undefined {
  if (hosts === undefined || hosts < replicas) return hosts;
  // More than one host for each replica would leave some without any.
  const most = groups * replicas;
  if (hosts % replicas === 0 && hosts <= most) return hosts;
  throw new ConfigError(
    ['hosts'],
    most === replicas
      ? `hosts must be 1 to ${replicas}, the number of replicas, not ${hosts}`
      : `hosts must be 1 to ${replicas}, or a multiple of replicas up to ${most}, not ${hosts}`,
    { hint: 'A host runs one member of each of its groups, so that its loss costs no group two.' },
  );
}

function checkTree(tree: unknown, groups: number): readonly number[] {
  try {
    const parents = new Overlay(parentsOf(tree, groups)).parents;
    if (parents.length === groups) return parents;
    throw new OverlayError(`tree has ${parents.length} groups, but groups is ${groups}`);
  } catch (error) {
    if (!(error instanceof OverlayError)) throw error;
    const { code, message } = error;
    throw new ConfigError(['tree'], message, { code, cause: error });
  }
}

function parentsOf(tree: unknown, groups: number): number[] {
  if (tree === undefined) return parseTree('base', groups);
  if (typeof tree === 'string') return parseTree(tree, groups);
  if (Array.isArray(tree)) return Array.from(tree, checkParent);
  throw new ConfigError(
    ['tree'],
    `tree must be a shape or a list of parents, not ${describeValue(tree)}`,
  );
}

function checkParent(parent: unknown, group: number): number {
  if (typeof parent === 'number') return parent;
  throw new ConfigError(
    ['tree', group],
    `tree[${group}], the parent of group ${group}, must be a number, not ${describeValue(parent)}`,
  );
}

function resolveSizes(given: Given, groups: number, replicas: number, salt: number): Sizes {
  const fixed = {
    groups,
    replicas,
    clients: numberOf(given, 'clients') ?? DEFAULT_CLIENTS,
    payloadBytesMax: numberOf(given, 'payloadBytesMax') ?? DEFAULT_PAYLOAD_BYTES_MAX,
    replyBytesMax: numberOf(given, 'replyBytesMax') ?? DEFAULT_REPLY_BYTES_MAX,
    callsMax: numberOf(given, 'callsMax') ?? DEFAULT_CALLS_MAX,
    snapshotChunkBytes: SNAPSHOT_CHUNK_BYTES,
    origin: 0,
    salt: salt | 0,
  };
  // Asked for nothing, the layout makes each ring just large enough for the largest message.
  const smallest = new Layout({ ...fixed, logBytes: 0, inboxBytes: 0, feedBytes: 0 });
  const { entryWordsMax, inboxRecordWordsMax } = smallest;
  const ring = (name: RingName, recordWords: number, leastWords: number): number =>
    ringBytes(name, numberOf(given, name), fixed.payloadBytesMax, {
      recordBytes: recordWords * WORD_BYTES,
      leastBytes: leastWords * WORD_BYTES,
    });
  return {
    ...fixed,
    logBytes: ring('logBytes', entryWordsMax, smallest.logWords),
    inboxBytes: ring('inboxBytes', inboxRecordWordsMax, smallest.inboxWords),
    feedBytes: ring('feedBytes', entryWordsMax, smallest.feedWords),
  };
}

/** @param leastBytes a power of two */
function ringBytes(
  name: RingName,
  asked: number | undefined,
  payloadBytesMax: number,
  { recordBytes, leastBytes }: { readonly recordBytes: number; readonly leastBytes: number },
): number {
  if (asked === undefined) {
    return Math.max(DEFAULT_RING_BYTES[name], DEFAULT_RING_MESSAGES * recordBytes);
  }
  // Whatever is above half of it is rounded up to it, or beyond.
  if (asked > leastBytes / 2) return asked;
  const contents = name === 'logBytes' ? 'two messages of that size' : 'one message of that size';
  throw new ConfigError(
    [name],
    `${name} is ${asked}, too small for payloadBytesMax ${payloadBytesMax}: ` +
      `${contents} must fit, which takes ${leastBytes} bytes`,
  );
}

function resolveTiming(given: Given): Timing {
  const heartbeatMs = numberOf(given, 'heartbeatMs') ?? DEFAULT_HEARTBEAT_MS;
  const suspectAfterMs =
    numberOf(given, 'suspectAfterMs') ??
    Math.max(DEFAULT_SUSPECT_AFTER_MS, DEFAULT_SUSPECT_AFTER_HEARTBEATS * heartbeatMs);
  const resendAfterMs = numberOf(given, 'resendAfterMs') ?? DEFAULT_RESEND_AFTER_MS;
  if (suspectAfterMs < 2 * heartbeatMs) {
    throw new ConfigError(
      ['suspectAfterMs'],
      `suspectAfterMs must be at least twice heartbeatMs, ${2 * heartbeatMs}, not ${suspectAfterMs}`,
      { hint: 'Otherwise one late heartbeat deposes a leader that is well.' },
    );
  }
  const heartbeatUs = microseconds(heartbeatMs);
  const suspectAfterUs = microseconds(suspectAfterMs);
  return {
    heartbeatUs,
    // Never so long that a host which is busy takes one that rests for dead.
    restUs: Math.max(heartbeatUs, Math.min(heartbeatUs * REST_HEARTBEATS, suspectAfterUs / 2)),
    suspectAfterUs,
    askAgainUs: 2 * heartbeatUs,
    backOffUs: 2 * heartbeatUs,
    resendAfterUs: microseconds(resendAfterMs),
  };
}

function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000);
}

/** It becomes part of a file's name. */
function checkName(value: unknown): string {
  const name = textOf(value, 'name');
  if (NAME.test(name)) return name;
  throw new ConfigError(
    ['name'],
    'name must be 1 to 64 letters, digits, dots, dashes and underscores, ' +
      `a letter or digit first, not ${quote(name)}`,
  );
}

function serviceUrl(value: unknown, directory: string): string {
  const text = value instanceof URL ? value.href : textOf(value, 'service');
  if (text === '') throw new ConfigError(['service'], 'service must not be empty');
  if (!URL_SCHEME.test(text)) return pathToFileURL(resolve(directory, text)).href;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && SERVICE_SCHEMES.includes(url.protocol)) return url.href;
  throw new ConfigError(
    ['service'],
    `service must be a path or a URL with ${listed(SERVICE_SCHEMES)}, not ${quote(text)}`,
  );
}

function checkTrace(value: unknown, directory: string): string {
  const path = textOf(value, 'trace');
  if (path === '') throw new ConfigError(['trace'], 'trace must not be empty');
  return resolve(directory, path);
}

function requireAddressable(config: ClusterConfig): void {
  const bytes = memoryBytes(config);
  if (bytes <= MEMORY_BYTES_MAX) return;
  throw new ConfigError(
    [],
    `the cluster would take ${gigabytes(bytes)} of shared memory; ` +
      `${gigabytes(MEMORY_BYTES_MAX)} is the most`,
    {
      hint: 'Ask for less: payloadBytesMax, logBytes, inboxBytes, feedBytes, clients, callsMax, replyBytesMax.',
    },
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** The known name that `name` may have been meant for, if one is close enough. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  const asked = plain(name);
  let nearest: string | undefined;
  let nearestEdits = Math.floor(asked.length / 3) + 1;
  for (const candidate of known) {
    const edits = editDistance(asked, plain(candidate));
    if (edits < nearestEdits) {
      nearest = candidate;
      nearestEdits = edits;
    }
  }
  const isBeginning = (candidate: string): boolean =>
    asked.length >= 3 && plain(candidate).startsWith(asked);
  return nearest ?? known.find(isBeginning);
}

/** `payload_bytes_max` and `Payload-Bytes-Max` are only spelled otherwise. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** How many letters must be put in, taken out or replaced. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
