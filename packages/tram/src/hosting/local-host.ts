/**
 * A host that runs on this machine, or has run here: it can be signalled, and started again. A host on another machine
 * can only be asked (`machines/remote-host.ts`).
 *
 * A cluster of processes is on this machine as a whole. The hosts of a cluster across machines that are here are those
 * whose memory is in /dev/shm.
 */
import { networkInterfaces } from 'node:os';
import { hostsWith, type Machine } from '../config/machines.js';
import { TramError } from '../errors.js';
import { HOST, HOST_STATE, hostStateOf } from '../memory/arena.js';
import { type ArenaFile, openArenaFile } from '../memory/processes/arena-file.js';
import { ClusterContext } from './cluster-context.js';
import { type HostProcess, hasOpen, hostProcesses, isStopped } from './host-processes.js';
import { type ClusterFile, readClusterFile } from './machines/cluster-file.js';
import { machineArenaPath, requireSame } from './machines/own-arena.js';
import { keepDown, pause } from './oversight.js';
import { STOP_MS } from './rolling-restart.js';
import { statusOf } from './status.js';

export interface LocalHost {
  /** The name of its cluster. */
  readonly name: string;
  /** The configuration file of its cluster, if that is known. */
  readonly config?: string | undefined;
  readonly host: number;
  /** The name that users see: its number, or the name of its machine. */
  readonly title: string;
  readonly path: string;
  readonly arena: ArenaFile;
  /** On machines, only what concerns this host can be read through it. */
  readonly context: ClusterContext;
  /** The name of its machine, if the cluster is on machines. */
  readonly machine?: string;
  /** The other hosts of its machine that have memory here, to be closed by the caller. */
  readonly besides?: () => LocalHost[];
}

/** A host that has just taken its lock may not have written its process number yet. */
const SIGN_MS = 1000;
/** How long a killed process may take to end. */
const DEATH_MS = 5000;
const LOOK_MS = 5;

/** Whether this machine has the address. */
export function isOwnAddress(address: string): boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return address.startsWith('127.') || interfaces.some((own) => own.address === address);
}

/** A host of a cluster across machines that has no memory on this one. */
export interface AbsentHost extends Machine {
  readonly host: number;
}

/**
 * All hosts of a cluster across machines: those that have memory on this machine, to be closed by the caller, and the
 * others.
 * @param path  the path of the configuration file
 */
export async function hostsHere(
  path: string,
): Promise<{ here: LocalHost[]; absent: AbsentHost[]; name: string }> {
  const file = await readClusterFile(path);
  const { machines, name = 'cluster' } = file.config;
  const here: LocalHost[] = [];
  const absent: AbsentHost[] = [];
  for (const [host, machine] of machines.entries()) {
    const local = openHere(file, path, host);
    if (local === undefined) absent.push({ ...machine, host });
    else here.push(local);
  }
  return { here, absent, name };
}

/**
 * `undefined` if the host has no memory on this machine.
 * @param path  the path of the configuration file
 */
export function openHere(file: ClusterFile, path: string, host: number): LocalHost | undefined {
  const { config, credentials } = file;
  const { digest } = credentials;
  const { machine } = config.machines[host];
  const arena = openIfThere(machineArenaPath(config, host));
  if (arena === undefined) return undefined;
  const context = ClusterContext.onMachines(config, digest, (map) => {
    requireSame(arena, digest, map);
    return { arena };
  });
  const { name = 'cluster' } = config;
  const besides = (): LocalHost[] =>
    hostsWith(config.threads, host)
      .filter((other) => other !== host)
      .flatMap((other) => openHere(file, path, other) ?? []);
  const common = { host, title: machine, path: arena.path, arena, context, machine, besides };
  return { name, config: path, ...common };
}

/** Calls `use` with all hosts of the machine of this one, in their order. On processes, each host is alone. */
export async function withMachine<Result>(
  local: LocalHost,
  use: (hosts: readonly LocalHost[]) => Result | Promise<Result>,
): Promise<Result> {
  const besides = local.besides?.() ?? [];
  try {
    return await use([local, ...besides].sort((one, other) => one.host - other.host));
  } finally {
    for (const { arena } of besides) arena.close();
  }
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
export async function reopened({ config, host }: LocalHost): Promise<LocalHost | undefined> {
  const file = await readClusterFile(config!);
  try {
    return openHere(file, config!, host);
  } catch (error) {
    // The host is creating it.
    if (error instanceof TramError && error.retry === 'safe') return undefined;
    throw error;
  }
}

/** The process that runs the host, or `undefined` if none does. @throws TRAM_UNAVAILABLE if it can't be signalled */
async function participantOf(local: LocalHost): Promise<HostProcess | undefined> {
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

/** The names of the replicas that end with it, and of those among them that lead. */
export async function replicasOf(
  local: LocalHost,
): Promise<{ readonly replicas: string[]; readonly led: string[] }> {
  const found = await withMachine(local, (hosts) => hosts.map(ownReplicasOf));
  return {
    replicas: found.flatMap(({ replicas }) => replicas),
    led: found.flatMap(({ led }) => led),
  };
}

function ownReplicasOf({ context, host, machine }: LocalHost): {
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

/** Sends SIGKILL, and waits until the process has ended. @returns the process; `undefined` if the host did not run */
export async function killHost(local: LocalHost): Promise<HostProcess | undefined> {
  return withMachine(local, async (hosts) => {
    const running = await firstRunning(hosts);
    leaveDown(local);
    if (running === undefined) return undefined;
    signal(running.pid, 'SIGKILL');
    await untilDead(hosts);
    return running;
  });
}

/**
 * Sends SIGTERM, and SIGKILL if the host has not stopped in time, or another host of its machine.
 * @param timeoutMs  how long it may take to stop its replicas. If it does, it also gets the time to write what they leave
 */
export async function endHost(
  local: LocalHost,
  timeoutMs: number,
): Promise<{ readonly running: HostProcess | undefined; readonly wasKilled: boolean }> {
  return withMachine(local, async (hosts) => {
    const running = await firstRunning(hosts);
    leaveDown(local);
    if (running === undefined) return { running, wasKilled: false };
    signal(running.pid, 'SIGTERM');
    const askedMs = Date.now();
    const limitMs = (): number => (hosts.every(hasStopped) ? STOP_MS : timeoutMs);
    while (hosts.some(isLocked) && Date.now() - askedMs < limitMs()) await pause(LOOK_MS);
    const wasKilled = hosts.some(isLocked);
    if (wasKilled) await killHost(local);
    return { running, wasKilled };
  });
}

/**
 * Do the hosts of its machine run? They start and end together: while only some of them run, this waits for what comes of it.
 * @throws TRAM_HOST_RUNNING if it takes too long
 */
export async function doesMachineRun(local: LocalHost, timeoutMs: number): Promise<boolean> {
  const deadlineMs = Date.now() + timeoutMs;
  return withMachine(local, async (hosts) => {
    for (;;) {
      const running = hosts.filter(isLocked);
      if (running.length === 0 || running.length === hosts.length) return running.length > 0;
      if (Date.now() > deadlineMs) {
        throw new TramError(
          'TRAM_HOST_RUNNING',
          `host ${local.title} has not ended yet: only some of its threads have`,
          { hint: 'Look at its log. If it hangs, end it with `tram kill`.' },
        );
      }
      await pause(LOOK_MS);
    }
  });
}

/** The process that runs the host, or another host of its machine; `undefined` if none does. */
export function processOf(local: LocalHost): Promise<HostProcess | undefined> {
  return withMachine(local, firstRunning);
}

/** The process that runs them, also if some of them have ended already. */
async function firstRunning(hosts: readonly LocalHost[]): Promise<HostProcess | undefined> {
  for (const host of hosts) {
    const running = await participantOf(host);
    if (running !== undefined) return running;
  }
  return undefined;
}

function isLocked({ arena, host }: LocalHost): boolean {
  return arena.isHostLocked(host);
}

/** Does the host no longer run its replicas? If its process is still there, it writes what they leave. */
function hasStopped({ arena, context, host }: LocalHost): boolean {
  return hostStateOf(arena.words[context.map.host(host) + HOST.state]) === HOST_STATE.ended;
}

/** The starter of a cluster of processes must not restart the host. */
function leaveDown({ machine, context, host }: LocalHost): void {
  if (machine === undefined) keepDown(context, host);
}

/** @returns false if the process has ended meanwhile */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

/** The kernel releases the locks of a process once all of its threads have ended. */
async function untilDead(hosts: readonly LocalHost[]): Promise<void> {
  const deadlineMs = Date.now() + DEATH_MS;
  while (hosts.some(isLocked)) {
    if (Date.now() > deadlineMs) {
      const [{ title }] = hosts;
      throw new TramError('TRAM_SYSTEM', `host ${title} was killed but has not ended yet`, {
        hint: 'The kernel may be busy with it. Look again with `tram status`.',
      });
    }
    await pause(LOOK_MS);
  }
}
