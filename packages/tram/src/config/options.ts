/**
 * The options of a cluster. `OPTIONS` is the one list of them: the validator, the names, the defaults and a test of
 * docs/options.md follow it, for programs and for files.
 */
import { DURABILITIES, type Durability, ORDERS, type Order } from '../protocol/edges.js';
import { GROUPS_MAX, type Shape } from '../protocol/overlay.js';
import { ADDRESS, LISTENING_ENDPOINT, PORT } from './addresses.js';
import { choice, integer, type List, NAME, number, type Option, PATH, text } from './kinds.js';
import { LEADERS, type Leaders } from './placement.js';
import { SERVICE } from './service-url.js';

export const MEMORIES = ['threads', 'processes', 'machines'] as const;

export type MemoryKind = (typeof MEMORIES)[number];

export interface ClusterOptions {
  /** How many replica groups: 1 to 64. */
  groups: number;
  /** Members of each group: 1, 3, 5 or 7. A group tolerates the loss of fewer than half of them. Default 3. */
  replicas?: number | undefined;
  /** A shape, or the parent of each group and -1 for the root: `[-1, 0, 0]` or `'-1,0,0'`. Default `base`. */
  tree?: Shape | (string & Record<never, never>) | readonly number[] | undefined;
  /**
   * What a reply promises. `multicast`: all groups deliver in a consistent order. `strict`: also in real-time order. Once a
   * reply has shown the effect of a message, every message that is sent later finds the effect, at every group. Default
   * `multicast`.
   */
  order?: Order | undefined;
  /**
   * Which messages survive if all hosts lose power. `none`: none. `everySecond`: all but those of about the last second.
   * `always`: all that were replied to. Default `none`.
   */
  durability?: Durability | undefined;
  /** The directory of the journals, one folder for each host. Required unless `durability` is `none`. */
  journal?: string | undefined;
  /** How many bytes of a group's entries a host journals before it takes a snapshot of the group. Default 67108864. */
  snapshotBytes?: number | undefined;
  /** What runs the replicas: worker threads, processes or machines. Default `threads`. */
  memory?: MemoryKind | undefined;
  /** The name under which other processes find the cluster. */
  name?: string | undefined;
  /** The module of the replicated service: a URL, or a path relative to the working directory. */
  service?: URL | string | undefined;
  /**
   * How many threads or processes run the replicas: up to `replicas`, or a multiple of it. With at least `replicas`
   * hosts, the crash of one costs no group two members. Default for processes: `replicas`; for threads: the number of
   * cores less one, since busy threads slow each other down if there are more of them than cores. With `memory:
   * 'machines'`: the list of machines, as many as `replicas` or a multiple of it, or as `members` needs.
   */
  hosts?: number | readonly MachineOptions[] | undefined;
  /**
   * Which hosts lead groups: all hosts alike (`spread`), or as few as possible (`together`). Default on machines:
   * `spread`; on threads and processes: `spread` if there are at least `replicas` hosts and more cores than hosts, since
   * otherwise messages wait for hosts that wait for a core.
   */
  leaders?: Leaders | undefined;
  /**
   * How many threads each machine runs its replicas on, at most as many as it has groups. Each thread has a port: `port` and
   * those that follow it. With `memory: 'machines'` only. Default 1.
   */
  threads?: number | undefined;
  /** For each group, the names of its members' hosts. With `memory: 'machines'` only. Default: spread evenly. */
  members?: readonly (readonly string[])[] | undefined;
  /** The file with the secret that hosts and clients share. With `memory: 'machines'`, which requires it. */
  secret?: string | undefined;
  /** Of the addresses of the hosts: raise it with every change of one. With `memory: 'machines'` only. Default 1. */
  revision?: number | undefined;
  /** The libfabric provider. With `memory: 'machines'` only. Default `tcp`. */
  provider?: string | undefined;
  /** How many clients may be connected at a time. Default 16. */
  clients?: number | undefined;
  /** The largest payload of a message. Default 1024. */
  payloadBytesMax?: number | undefined;
  /** The largest reply of a group. Default 1024. */
  replyBytesMax?: number | undefined;
  /** How many unanswered messages one client may have. Default 64. */
  callsMax?: number | undefined;
  /** The size of each replica's log, rounded up to a power of two. Default 131072, or 8 of the largest messages. */
  logBytes?: number | undefined;
  /** The size of a client's ring to one group, rounded up likewise. Default 32768, or 8 of the largest messages. */
  inboxBytes?: number | undefined;
  /** The size of a group's ring to one child, rounded up likewise. Default 65536, or 8 of the largest messages. */
  feedBytes?: number | undefined;
  /** The interval between heartbeats of a replica. Default 5. */
  heartbeatMs?: number | undefined;
  /** How long a leader may be silent before the others suspect it. Default 500, or 20 heartbeats. */
  suspectAfterMs?: number | undefined;
  /** How long a client waits for replies before it resends a message. Default 50. */
  resendAfterMs?: number | undefined;
  /** A directory for the history of the run, which `tram check` can judge. */
  trace?: string | undefined;
}

export interface MachineOptions {
  /** Letters, digits, dots, dashes and underscores. */
  name: string;
  /** An IPv4 address, or a name that resolves to one. */
  address: string;
  /** The port at which other hosts and clients reach its memory; with several `threads`, the first of them. */
  port: number;
  /** Where it serves /metrics, /healthz and /readyz: a port of loopback, or `'10.0.0.1:7412'`. Default: nowhere. */
  http?: number | string | undefined;
}

export type OptionName = keyof ClusterOptions;

const MACHINE_EXAMPLE = '{ name: alpha, address: 10.0.0.1, port: 7411 }';

const MACHINES: List = {
  expected: `a list of machines such as ${MACHINE_EXAMPLE}`,
  elements: {
    expected: `a machine such as ${MACHINE_EXAMPLE}`,
    fields: {
      name: { kind: NAME, required: 'always' },
      address: { kind: ADDRESS, required: 'always' },
      port: { kind: PORT, required: 'always' },
      http: { kind: LISTENING_ENDPOINT },
    } satisfies Record<keyof MachineOptions, Option>,
  },
};

const MEMBERS: List = {
  expected: 'a list with the hosts of each group',
  elements: {
    expected: 'a list of hosts',
    elements: text('the name of a host', () => true),
  },
};

const TREE: List = {
  expected: 'a shape or a list of parents',
  elements: {
    expected: 'the number of a group, or -1 for the root',
    accepts: (value) => typeof value === 'number',
  },
  or: text('a shape', () => true),
};

/** `tcp`, or one provider layered over another: `tcp;ofi_rxm`. */
const PROVIDER = text('the name of a libfabric provider such as tcp', (provider) =>
  /^[A-Za-z0-9_-]+(?:;[A-Za-z0-9_-]+)*$/.test(provider),
);

// A ballot has three bits for the member.
const REPLICAS = [1, 3, 5, 7];
const BODY_BYTES = integer(0, 2 ** 24);
const RING_BYTES = integer(64, 2 ** 30);
const DURATION_MS = number(1, 60_000);
const LARGEST_MESSAGES = '8 of the largest messages';

/** @internal In the order in which docs/options.md describes them. */
export const OPTIONS = {
  groups: { kind: integer(1, GROUPS_MAX), required: 'always' },
  replicas: {
    kind: choice(REPLICAS),
    default: 3,
    hint: 'A group with an even number of replicas tolerates no more failures than one with a replica less.',
  },
  tree: { kind: TREE, default: 'base' },
  order: { kind: choice(ORDERS), default: 'multicast' },
  durability: { kind: choice(DURABILITIES), default: 'none' },
  journal: { kind: PATH },
  snapshotBytes: { kind: integer(4096, 2 ** 40), default: 67_108_864 },
  memory: { kind: choice(MEMORIES), default: 'threads' },
  name: { kind: NAME },
  service: { kind: SERVICE },
  hosts: {
    kind: integer(1, Math.max(...REPLICAS) * GROUPS_MAX),
    onMachines: MACHINES,
    required: 'on machines',
    computed: 'processes: `replicas`; threads: the number of cores less one',
    hint: 'hosts is a number of threads or processes, or with "memory: machines" a list of machines.',
  },
  leaders: { kind: choice(LEADERS), computed: '`spread`; with few cores: `together`' },
  threads: { onMachines: integer(1, GROUPS_MAX), default: 1 },
  members: { onMachines: MEMBERS, computed: 'spread evenly' },
  secret: {
    onMachines: PATH,
    required: 'on machines',
    hint: 'Create the file with `tram secret cluster.secret`, copy it to all machines, and add "secret: cluster.secret".',
  },
  revision: { onMachines: integer(1, 32_767), default: 1 },
  provider: { onMachines: PROVIDER, default: 'tcp' },
  clients: { kind: integer(1, 1024), default: 16 },
  payloadBytesMax: { kind: BODY_BYTES, default: 1024 },
  replyBytesMax: { kind: BODY_BYTES, default: 1024 },
  // A message names its client and its call in one word.
  callsMax: { kind: integer(1, 32_768), default: 64 },
  logBytes: { kind: RING_BYTES, default: 131_072, computed: LARGEST_MESSAGES },
  inboxBytes: { kind: RING_BYTES, default: 32_768, computed: LARGEST_MESSAGES },
  feedBytes: { kind: RING_BYTES, default: 65_536, computed: LARGEST_MESSAGES },
  heartbeatMs: { kind: number(0.1, 1000), default: 5 },
  suspectAfterMs: { kind: DURATION_MS, default: 500, computed: '20 heartbeats' },
  resendAfterMs: { kind: DURATION_MS, default: 50 },
  trace: { kind: PATH },
} as const satisfies Record<OptionName, Option>;

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];
