/**
 * A host that runs on this machine, or has run here: what `kill`, `restart` and `down` work on. A signal reaches only
 * processes of this machine, so for a host on another one these commands say where to run them.
 *
 * A cluster of processes is on this machine as a whole. The hosts of a cluster across machines that are here are those
 * whose memory is in /dev/shm.
 */
import { networkInterfaces } from 'node:os';
import type { MachinesConfig } from '../config/config.js';
import type { Machine } from '../config/machines.js';
import { TramError } from '../errors.js';
import { ClusterContext } from '../hosting/cluster-context.js';
import { type HostProcess, hasOpen, hostProcesses, isStopped } from '../hosting/host-processes.js';
import { type ClusterFile, readClusterFile } from '../hosting/machines/cluster-file.js';
import { machineArenaPath, requireSame } from '../hosting/machines/machine.js';
import { pause } from '../hosting/oversight.js';
import { statusOf } from '../hosting/status.js';
import { HOST } from '../memory/arena.js';
import { type ArenaFile, openArenaFile } from '../memory/processes/arena-file.js';
import { Layout } from '../protocol/layout.js';
import { locate, withCluster } from './attached.js';
import { commandFor, type Which } from './cluster-name.js';
import { parseReplica } from './replica-name.js';

export interface LocalHost extends Which {
  readonly host: number;
  /** As users know it: its number, or the name of its machine. */
  readonly title: string;
  readonly path: string;
  readonly arena: ArenaFile;
  /** On machines, only what concerns this host can be read through it. */
  readonly context: ClusterContext;
  /** The name of its machine, if the cluster is on machines. */
  readonly machine?: string;
}

export interface ReplicaHost extends LocalHost {
  /** `g2/0` */
  readonly replica: string;
}

/** A host that has just taken its lock may not have written its process number yet. */
const SIGN_MS = 1000;
const LOOK_MS = 5;

/**
 * Runs `use` on the host of a replica.
 * @param words  the command, to be repeated by the user on another machine
 * @throws TRAM_NOT_FOUND if it is not on this machine
 */
export async function withHostOf<Result>(
  which: Which,
  replica: string,
  words: string,
  use: (host: ReplicaHost) => Promise<Result>,
): Promise<Result> {
  const location = await locate(which);
  if (location.memory === 'processes') {
    return withCluster(
      { ...which, name: location.name },
      ({ context, path, arena, name, config }) => {
        const { group, member } = parseReplica(replica, context);
        const host = context.map.hostOf(context.layout.replicaParticipant(group, member));
        const local = { name, config, host, title: String(host), path, arena, context };
        return use({ ...local, replica: `g${group}/${member}` });
      },
    );
  }
  const file = await readClusterFile(location.config);
  const { config, credentials } = file;
  const { group, member } = parseReplica(replica, file);
  const participant = new Layout(config.sizes).replicaParticipant(group, member);
  const host = ClusterContext.mapOnMachines(config, credentials.digest).hostOf(participant);
  const local = openHere(file, which, host);
  const name = `g${group}/${member}`;
  if (local === undefined) throw notHere(which, config.machines[host], name, words);
  try {
    return await use({ ...local, replica: name });
  } finally {
    local.arena.close();
  }
}

function notHere(
  which: Which,
  { name: machine, address }: Machine,
  replica: string,
  words: string,
): TramError {
  const host = `host ${machine}, which runs ${replica}`;
  // After a reboot, for example.
  if (isOwnAddress(address)) {
    return new TramError('TRAM_UNAVAILABLE', `${host}, does not run here and has left no memory`, {
      hint: `Start it with \`${commandFor(which, `host ${machine}`)}\`.`,
    });
  }
  return new TramError('TRAM_NOT_FOUND', `${host}, is not on this machine`, {
    hint: `Run \`${commandFor(which, words)}\` on the machine of ${machine} (${address}).`,
  });
}

/** Whether this machine has the address. */
function isOwnAddress(address: string): boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return address.startsWith('127.') || interfaces.some((own) => own.address === address);
}

/**
 * All hosts of a cluster across machines: those that have memory on this machine, to be closed by the caller, and those
 * that belong on other machines.
 */
export async function hostsHere(
  which: Which & { readonly config: string },
): Promise<{ here: LocalHost[]; elsewhere: MachinesConfig['machines']; name: string }> {
  const file = await readClusterFile(which.config);
  const { machines, name = 'cluster' } = file.config;
  const found = machines.map((_, host) => openHere(file, which, host));
  return {
    here: found.flatMap((local) => local ?? []),
    elsewhere: machines.filter(
      ({ address }, host) => found[host] === undefined && !isOwnAddress(address),
    ),
    name,
  };
}

/** `undefined` if the host has no memory on this machine. */
function openHere(
  { config, credentials: { digest } }: ClusterFile,
  which: Which,
  host: number,
): LocalHost | undefined {
  const { name: machine } = config.machines[host];
  const arena = openIfThere(machineArenaPath(config, machine));
  if (arena === undefined) return undefined;
  const context = ClusterContext.onMachines(config, digest, (map) => {
    requireSame(arena, digest, map);
    return { arena };
  });
  const { path } = arena;
  const { name = 'cluster' } = config;
  return { name, config: which.config, host, title: machine, path, arena, context, machine };
}

function openIfThere(path: string): ArenaFile | undefined {
  try {
    return openArenaFile(path);
  } catch (error) {
    if (error instanceof TramError && error.code === 'TRAM_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The host with the memory that it has now, to be closed by the caller. `undefined` if it has none that can be read. */
export async function reopened(which: LocalHost): Promise<LocalHost | undefined> {
  const file = await readClusterFile(which.config!);
  try {
    return openHere(file, which, which.host);
  } catch (error) {
    // The host is creating it.
    if (error instanceof TramError && error.retry === 'safe') return undefined;
    throw error;
  }
}

/** The process that runs the host, or `undefined` if none does. @throws TRAM_UNAVAILABLE if it can't be signalled */
export async function participantOf(local: LocalHost): Promise<HostProcess | undefined> {
  const { host, arena, path, context, machine, title } = local;
  if (machine === undefined) return hostProcesses(path).find((one) => one.host === host);
  const deadlineMs = Date.now() + SIGN_MS;
  while (arena.isHostLocked(host)) {
    const pid = arena.words[context.map.host(host) + HOST.pid];
    if (hasOpen(pid, path)) return { pid, host, isStopped: isStopped(pid) };
    if (Date.now() > deadlineMs) {
      throw new TramError(
        'TRAM_UNAVAILABLE',
        `host ${title} runs, but can't be signalled from here`,
        {
          hint: 'It runs as another user or in another container: run the command there.',
        },
      );
    }
    await pause(LOOK_MS);
  }
  return undefined;
}

/** The names of its replicas, and of those among them that lead. */
export function replicasOf({ context, host, machine }: LocalHost): {
  readonly replicas: string[];
  readonly led: string[];
} {
  const replicas = context.map.participantsOf(host).map((replica) => context.nameOf(replica));
  const { groups } = statusOf(context);
  const led =
    machine === undefined
      ? groups.flatMap(({ group, leader }) => (leader === undefined ? [] : `g${group}/${leader}`))
      : groups.flatMap((group) =>
          // The memory of one machine does not tell who leads, but whether a replica of this machine does.
          group.replicas.filter(({ role }) => role === 'leader').map(({ name }) => name),
        );
  return { replicas, led: led.filter((name) => replicas.includes(name)) };
}
