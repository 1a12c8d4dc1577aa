/**
 * Ends a cluster from outside. Of a cluster of processes, only a history stays. The hosts of a cluster across machines
 * keep their memory, unless that is to be removed.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TramError } from '../errors.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import type { ClusterContext } from './cluster-context.js';
import { type HostProcess, hostProcesses, starterProcesses } from './host-processes.js';
import { endHost, hostsHere, killHost, type LocalHost, signal } from './local-host.js';
import type { Mirror } from './machines/mirror.js';
import { RemoteHost } from './machines/remote-host.js';
import { askToEnd, drain, endTrace, pause, replicasDown } from './oversight.js';
import { archiveLogs, removeStateDirectory } from './state-directory.js';

export interface Ending {
  /** Whether all replicas that were up had delivered everything. */
  readonly isDrained: boolean;
  /** Hosts that did not end by themselves. */
  readonly killed: readonly HostProcess[];
}

interface Target {
  /** Of the cluster. */
  readonly name: string;
  readonly arena: ArenaFile;
  readonly context: ClusterContext;
}

export const DRAIN_MS = 5000;
export const END_MS = 2000;
/** How long a host on another machine may take. */
const REMOTE_END_MS = 10_000;
const LOOK_MS = 10;

/** @param force  kills the hosts at once, and removes their logs */
export async function takeDown(target: Target, force: boolean): Promise<Ending> {
  const { arena, context } = target;
  const wasDrained = !force && (await drain(context, DRAIN_MS));
  const crashed = replicasDown(context);
  const isFirst = askToEnd(context);
  const killed = await endProcesses(arena.path, force ? 0 : END_MS);
  const isDrained = wasDrained && killed.length === 0;
  const { trace } = context.config;
  // Another process that took it down may have been interrupted before it wrote the last line of the history.
  if (trace !== undefined && (isFirst || !existsSync(join(trace, 'end.jsonl')))) {
    endTrace(context, crashed, isDrained);
  }
  if (force) removeStateDirectory(target.name);
  clearAway(target);
  return { isDrained, killed };
}

/** Waits until the hosts and their starter have ended, then kills the others. @returns the hosts that it has killed */
export async function endProcesses(path: string, timeoutMs: number): Promise<HostProcess[]> {
  const deadlineMs = Date.now() + timeoutMs;
  const isRunning = (): boolean =>
    hostProcesses(path).length > 0 || starterProcesses(path).length > 0;
  while (isRunning() && Date.now() < deadlineMs) await pause(LOOK_MS);
  // The starter first: it would restart hosts.
  for (const pid of starterProcesses(path)) signal(pid, 'SIGKILL');
  const killed = hostProcesses(path);
  for (const { pid } of killed) signal(pid, 'SIGKILL');
  while (isRunning()) await pause(LOOK_MS);
  return killed;
}

/**
 * Remove the memory of a cluster. Its logs and its history stay.
 * @returns false if the memory is by now that of another cluster, or if another process removes it
 */
export function clearAway({ name, arena, context }: Target): boolean {
  return arena.removeFile(() => {
    // Somebody may have just started a host on this memory: it must not go on where nobody finds it.
    askToEnd(context);
    // A new cluster of that name, which has the same directory, can't be started before the file is gone.
    archiveLogs(name);
  });
}

// --- across machines ---------------------------------------------------------------------------

/** What has become of a host. */
export interface EndedHost {
  readonly name: string;
  /** `null` if it was not running. */
  readonly pid: number | null;
  readonly wasKilled: boolean;
}

/** Ends a host on this machine. @param force  at once, and removes its memory */
export async function endLocal(local: LocalHost, force: boolean): Promise<EndedHost> {
  const { name, title, arena } = local;
  if (!force) {
    const { running, wasKilled } = await endHost(local, END_MS);
    return { name: title, pid: running?.pid ?? null, wasKilled };
  }
  const running = await killHost(local);
  arena.removeFile(() => removeStateDirectory(`${name}-${title}`));
  return { name: title, pid: running?.pid ?? null, wasKilled: running !== undefined };
}

/** The hosts of one machine, which all have its name, as one. */
export function oncePerMachine<Host extends { readonly name: string }>(
  hosts: readonly Host[],
): Host[] {
  return [...new Map(hosts.map((host) => [host.name, host])).values()];
}

/** Asks a host on another machine to end. @param force  also to remove its memory */
export async function endRemote(remote: RemoteHost, force: boolean): Promise<EndedHost> {
  const { pid } = remote.status.hosts[remote.host];
  await (force ? remote.forget(REMOTE_END_MS) : remote.stop(REMOTE_END_MS));
  return { name: remote.title, pid, wasKilled: false };
}

/** What has become of all hosts. */
export interface MachinesEnding {
  /** Of the cluster. */
  readonly name: string;
  readonly ended: readonly EndedHost[];
  /** Hosts that could not be asked, or may not have ended. */
  readonly missed: readonly { readonly name: string; readonly error: TramError }[];
}

/** Ends all hosts, on this machine and on others. @param path  the path of the configuration file */
export async function takeDownMachines(
  path: string,
  mirror: Mirror,
  force: boolean,
): Promise<MachinesEnding> {
  const { here, absent, name } = await hostsHere(path);
  const ended: EndedHost[] = [];
  const missed: { readonly name: string; readonly error: TramError }[] = [];
  const ask = async (host: number, title: string): Promise<void> => {
    try {
      ended.push(await endRemote(new RemoteHost(mirror, host, path), force));
    } catch (error) {
      if (!(error instanceof TramError)) throw error;
      missed.push({ name: title, error });
    }
  };
  const end = async (local: LocalHost): Promise<void> => {
    const here = await endLocal(local, force);
    const { host, title } = local;
    // A host that was replaced may have left memory here, and runs at the address in the file.
    if (here.pid === null && mirror.complaintOf(host) === undefined) await ask(host, title);
    else ended.push(here);
  };
  try {
    await Promise.all([...here.map(end), ...absent.map(({ host, machine }) => ask(host, machine))]);
  } finally {
    for (const { arena } of here) arena.close();
  }
  return { name, ended: oncePerMachine(ended), missed: oncePerMachine(missed) };
}
