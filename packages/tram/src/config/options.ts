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
import type { Timing } from '../protocol/edges.js';
import { Layout, type Sizes } from '../protocol/layout.js';
import { GROUPS_MAX, Overlay, OverlayError, parseTree, type Shape } from '../protocol/overlay.js';
import {
  ConfigError,
  checkFilled,
  checkName,
  checkNumber,
  checkText,
  describeValue,
  expectation,
  listed,
  mustBe,
  nearestName,
  quote,
  type Range,
} from './checks.js';
import { type MachineOptions, type Machines, refuseMachines, resolveMachines } from './machines.js';

export { ConfigError } from './checks.js';
export type { Endpoint, Machine, MachineOptions, Machines } from './machines.js';

export const MEMORIES = ['threads', 'processes', 'machines', 'simulated'] as const;

export type MemoryKind = (typeof MEMORIES)[number];

export interface ClusterOptions {
  /** How many replica groups: 1 to 64. */
  groups: number;
  /** Members of each group: 1, 3, 5 or 7. A group survives the loss of fewer than half. Default 3. */
  replicas?: number;
  /** A shape, or the parent of each group and -1 for the root: `[-1, 0, 0]` or `'-1,0,0'`. Default `base`. */
  tree?: Shape | (string & Record<never, never>) | readonly number[];
  /** What the cluster runs in: worker threads, processes, machines, or a simulation. Default `threads`. */
  memory?: MemoryKind;
  /** By which other processes find the cluster. */
  name?: string;
  /** The module of the replicated service: a URL, or a path from the working directory. */
  service?: URL | string;
  /**
   * How many threads or processes run the replicas: up to `replicas`, or a multiple of it. From `replicas` on the
   * loss of one costs no group two members. Default for processes: `replicas`; for threads: the number of cores
   * less one, since more busy threads than cores hold each other up. With `memory: 'machines'`: the machines, as many
   * as `replicas` or a multiple of it, or as `members` needs.
   */
  hosts?: number | readonly MachineOptions[];
  /** For each group the names of the hosts of its members. With `memory: 'machines'` only. Default: spread evenly. */
  members?: readonly (readonly string[])[];
  /** The file with the secret by which hosts and clients know each other. With `memory: 'machines'`, where it is required. */
  secret?: string;
  /** Of libfabric. With `memory: 'machines'` only. Default `tcp`. */
  provider?: string;
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
export interface ClusterConfig extends Partial<Machines> {
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

/** Of a cluster across machines. */
export type MachinesConfig = ClusterConfig & Machines & { readonly memory: 'machines' };

export function isOnMachines(config: ClusterConfig): config is MachinesConfig {
  return config.memory === 'machines';
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
  members: true,
  secret: true,
  provider: true,
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
  const shape = { groups, replicas };
  const machines = memory === 'machines' ? resolveMachines(given, shape, directory) : undefined;
  if (machines === undefined) refuseMachines(given, memory);
  const config: ClusterConfig = {
    memory,
    hosts:
      machines?.machines.length ??
      checkHosts(numberOf(given, 'hosts'), groups, replicas) ??
      usualHosts(memory, groups, replicas, cores),
    ...machines,
    parents: checkTree(given.tree, groups),
    sizes: resolveSizes(given, groups, replicas, salt),
    timing: resolveTiming(given),
    ...(given.name !== undefined && { name: checkName(given.name, ['name']) }),
    ...(given.service !== undefined && { service: serviceUrl(given.service, directory) }),
    ...(given.trace !== undefined && {
      trace: resolve(directory, checkFilled(given.trace, ['trace'])),
    }),
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

function numberOf(given: Given, name: NumberName): number | undefined {
  const value = given[name];
  return value === undefined ? undefined : checkNumber(value, [name], RANGES[name]);
}

function checkMemory(value: unknown): MemoryKind {
  if (value === undefined) return 'threads';
  const text = checkText(value, ['memory']);
  const memory = MEMORIES.find((known) => known === text);
  if (memory !== undefined) return memory;
  throw new ConfigError(['memory'], `memory must be ${listed(MEMORIES)}, not ${quote(text)}`);
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
  throw mustBe(['tree'], 'a shape or a list of parents', tree);
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

function serviceUrl(value: unknown, directory: string): string {
  const text = value instanceof URL ? value.href : checkFilled(value, ['service']);
  if (!URL_SCHEME.test(text)) return pathToFileURL(resolve(directory, text)).href;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && SERVICE_SCHEMES.includes(url.protocol)) return url.href;
  throw new ConfigError(
    ['service'],
    `service must be a path or a URL with ${listed(SERVICE_SCHEMES)}, not ${quote(text)}`,
  );
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
