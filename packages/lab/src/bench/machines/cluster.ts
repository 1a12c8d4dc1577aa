/**
 * The cluster across machines that a benchmark measures: a running one, or one that it starts with all hosts on the loopback
 * of this machine. Hosts that it starts end with this process, and their files are removed.
 */
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machineNames } from 'tram-multicast/internal/config/machines.js';
import type { ClusterOptions } from 'tram-multicast/internal/config/options.js';
import { TramError } from 'tram-multicast/internal/errors.js';
import {
  type ClusterFile,
  readClusterFile,
} from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { machineArenaPath } from 'tram-multicast/internal/hosting/machines/own-arena.js';
import { makeSecret } from 'tram-multicast/internal/hosting/machines/secret.js';
import { freePorts, LOOPBACK } from '../systems/ports.js';
import { Servers } from '../systems/servers.js';
import type { Setup } from '../systems/system.js';
import { ringBytes } from '../systems/tram.js';
import { Observer } from './observer.js';

export interface MachinesCluster extends ClusterFile {
  readonly configFile: string;
  /** Where hosts serve their metrics, if the benchmark has started them. */
  readonly metrics: readonly string[];
  /** Of the hosts on this machine, if the benchmark has started them. */
  readonly pids: readonly number[];
  close(): Promise<void>;
}

/** A cluster whose hosts this process has started. */
export interface StartedCluster extends MachinesCluster {
  pidOf(host: number): number;
  /** Starts a host that has ended. */
  startAgain(host: number): void;
}

const TREE = 'base';
const MAIN = fileURLToPath(new URL('../../../../tram/dist/cli/main.js', import.meta.url));
const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta'];
const SECRET = 'cluster.secret';
const REPLY_BYTES_MAX = 16;

export async function runningCluster(configFile: string): Promise<MachinesCluster> {
  const file = await readClusterFile(configFile);
  return { ...file, configFile, metrics: [], pids: [], close: async () => undefined };
}

/** Default: the order of the paper, without durability. */
export type ChosenOptions = Pick<
  ClusterOptions,
  'tree' | 'order' | 'durability' | 'journal' | 'threads' | 'service'
>;

/** Starts one host for each member of a group; each host runs one member of every group. */
export async function startCluster(
  setup: Setup,
  signal: AbortSignal,
  options: ChosenOptions = {},
): Promise<StartedCluster> {
  const servers = new Servers('hosts', signal);
  try {
    const configFile = join(servers.folder, 'cluster.yaml');
    const all = await optionsOf(setup, options, nameIn(servers.folder));
    // JSON is YAML.
    writeFileSync(configFile, JSON.stringify(all, undefined, 2));
    makeSecret(join(servers.folder, SECRET));
    const file = await readClusterFile(configFile);
    const { machines } = file.config;
    const start = (name: string): void =>
      servers.start(name, process.execPath, [MAIN, 'host', name, '--config', configFile]);
    for (const host of machines.keys()) servers.alsoRemove(machineArenaPath(file.config, host));
    for (const name of machineNames(file.config)) start(name);
    await servers.ready('until every group has a leader', () => requireLeaders(file));
    const metrics = machines.flatMap(({ http }) =>
      http === undefined ? [] : `http://${http.address}:${http.port}/metrics`,
    );
    const names = machineNames(file.config);
    return {
      ...{ ...file, configFile, metrics, pids: servers.pids },
      pidOf: (host) => servers.pids[names.indexOf(machines[host].machine)],
      startAgain: (host) => start(machines[host].machine),
      close: () => servers.close(),
    };
  } catch (cause) {
    const log = servers.lastLines();
    await servers.close();
    signal.throwIfAborted();
    throw startFailed(cause, log);
  }
}

async function optionsOf(
  setup: Setup,
  chosen: ChosenOptions,
  name: string,
): Promise<ClusterOptions & { name: string }> {
  const { groups, replicas, clientsMax, outstandingMax, payloadBytesMax } = setup;
  const { threads = 1 } = chosen;
  const ports = await freePorts(2 * replicas, threads - 1);
  return {
    memory: 'machines',
    name,
    groups,
    replicas,
    tree: TREE,
    ...chosen,
    secret: SECRET,
    hosts: ports.slice(0, replicas).map((port, host) => ({
      ...{ name: NAMES[host], address: LOOPBACK, port, http: ports[replicas + host] },
    })),
    // All hosts share the cores of this machine.
    leaders: 'together',
    // Each host grants its share of the slots, and a client that has vanished keeps its slot for a while.
    clients: replicas * threads * (clientsMax + 1),
    callsMax: outstandingMax,
    payloadBytesMax,
    replyBytesMax: REPLY_BYTES_MAX,
    ...ringBytes(setup),
  };
}

/** The memory of hosts is named after the folder, so it is removed with the folder. */
function nameIn(folder: string): string {
  return basename(folder).replace(/^tram-/, '');
}

async function requireLeaders(file: ClusterFile): Promise<void> {
  const observer = Observer.open(file, LOOPBACK);
  try {
    const leaders = await observer.leaders();
    if (leaders.includes(undefined)) throw new Error('not every group has a leader');
  } finally {
    observer.close();
  }
}

function startFailed(cause: unknown, log: readonly string[]): TramError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new TramError('TRAM_START_FAILED', ["the hosts don't start:", message].join(' '), {
    hint: ['Their last log lines:', ...log].join('\n    '),
    cause,
  });
}
