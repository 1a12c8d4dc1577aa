/**
 * Restarts a host on this machine: starts it so that it outlives this process and its terminal, and waits until its
 * replicas take part again.
 */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hostsWith } from '../config/machines.js';
import { PARTICIPANT } from '../memory/arena.js';
import { removeUnlocked } from '../memory/processes/arena-file.js';
import type { ClusterContext } from './cluster-context.js';
import { endHost, type LocalHost, reopened, withMachine } from './local-host.js';
import { claimFreshRestart, keepDownUntilStarted } from './oversight.js';
import {
  deliveredByGroup,
  refusalAfterEnd,
  requireOtherCopies,
  type StartedHost,
  savedStateCheck,
  untilRejoined,
} from './rejoin.js';
import { type BeforeEnd, handOver } from './rolling-restart.js';
import { logFile, processStarter } from './starters.js';
import { makeStateDirectory } from './state-directory.js';
import { type GroupStatus, type ReplicaStatus, statusOf } from './status.js';

/** How long a host may take to stop its replicas. What they leave takes its own time. */
const END_MS = 10_000;

interface RestartSettings {
  readonly fresh: boolean;
  /** How long it may take from its start until its replicas take part. */
  readonly timeoutMs: number;
  readonly beforeEnd?: BeforeEnd | undefined;
}

/**
 * A host of a cluster of processes that runs is stopped in order first. (One of a cluster across machines is asked to
 * restart: `machines/remote-host.ts`.)
 * @param seen  shows the whole cluster; across machines, the memory of the host itself tells only of its own replicas
 * @returns its replicas
 * @throws TRAM_LAST_COPY, TRAM_SNAPSHOT_FAILED, TRAM_START_FAILED, TRAM_STATE_LOST, TRAM_TIMEOUT
 */
export async function restartHost(
  target: LocalHost,
  { fresh, timeoutMs, beforeEnd }: RestartSettings,
  seen: ClusterContext = target.context,
): Promise<ReplicaStatus[]> {
  const { host, title, machine } = target;
  const { groups } = statusOf(seen);
  if (fresh) requireOtherCopies(groups, hostsWith(seen.config.threads, host), title);
  if (machine !== undefined) return startHost(target, { fresh, timeoutMs }, seen, groups);
  const release = fresh ? claimFreshRestart(seen) : undefined;
  try {
    await handOver(seen, [host]);
    await beforeEnd?.();
    const requireSaved = savedStateCheck(seen, [host], title);
    await endHost(target, END_MS);
    if (!fresh) requireSaved();
    const refusal = fresh ? refusalAfterEnd(statusOf(seen).groups, [host], title) : undefined;
    const isFresh = fresh && refusal === undefined;
    const replicas = await startHost(target, { fresh: isFresh, timeoutMs }, seen, groups);
    if (refusal !== undefined) throw refusal;
    return replicas;
  } finally {
    release?.();
  }
}

/**
 * The same for a host that is down.
 * @param before  the groups before its end
 * @throws TRAM_HOST_RUNNING if another process starts it; TRAM_START_FAILED, TRAM_STATE_LOST, TRAM_TIMEOUT
 */
export async function startHost(
  target: LocalHost,
  { fresh, timeoutMs }: { readonly fresh: boolean; readonly timeoutMs: number },
  seen: ClusterContext = target.context,
  before: readonly GroupStatus[] = statusOf(seen).groups,
): Promise<ReplicaStatus[]> {
  const deadlineMs = Date.now() + timeoutMs;
  const starting = await startAgain(target, fresh, deadlineMs);
  const targets = deliveredByGroup(before);
  try {
    const replicas: ReplicaStatus[] = [];
    // The memory of a machine tells of each of its hosts apart.
    for (const host of starting.hosts) {
      const one = { ...starting, hosts: [host], groups: () => starting.groupsOf(host) };
      replicas.push(...(await untilRejoined(one, targets, deadlineMs)));
    }
    if (seen === target.context) return replicas;
    // Across machines it is a copy, which shows this later.
    const copied = { ...starting, groups: () => statusOf(seen).groups };
    return await untilRejoined(copied, targets, deadlineMs);
  } finally {
    starting.close();
  }
}

/** A host that has been started, with all hosts of its machine; to be closed by the caller. */
interface Starting extends Omit<StartedHost, 'groups'> {
  /** As the memory of one of the hosts shows them. */
  groupsOf(host: number): Promise<readonly GroupStatus[]>;
  close(): void;
}

/** What has been started. */
interface Started {
  readonly log: string;
  /** The host as it is now, if its memory can be read. */
  look(host: number): Promise<LocalHost | undefined>;
  ended(): string | undefined;
  close(): void;
}

/** @throws TRAM_START_FAILED */
async function startAgain(
  target: LocalHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Starting> {
  const { host, title, machine, context } = target;
  const hosts = hostsWith(context.config.threads, host);
  const before = await withMachine(
    target,
    (all) => new Map(all.map((one) => [one.host, incarnationOf(one)])),
  );
  const { look, ...started } =
    machine === undefined
      ? await startProcess(target, fresh, deadlineMs)
      : await startMachine(target, machine, fresh);
  const groupsOf = async (one: number): Promise<readonly GroupStatus[]> => {
    const local = await look(one);
    // Until it begins its next incarnation, its memory shows the one that has ended.
    if (local === undefined || incarnationOf(local) === before.get(one)) return [];
    return statusOf(local.context).groups;
  };
  return { hosts, title, groupsOf, ...started };
}

/** Of its first replica: it changes with every start. */
function incarnationOf({ host, context: { map, arena } }: LocalHost): number {
  const [first] = map.participantsOf(host);
  return arena.words[map.participant(first) + PARTICIPANT.incarnation];
}

async function startProcess(
  target: LocalHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Started> {
  const { name, path, host, context } = target;
  const logs = makeStateDirectory(name);
  let exit: string | undefined;
  // The starter of the cluster leaves it to us.
  keepDownUntilStarted(context, host);
  const handle = processStarter(path, logs).start(host, !fresh, {
    onReport: () => undefined,
    onExit: (why) => {
      exit = why;
    },
  });
  try {
    await handle.ready(deadlineMs);
  } catch (error) {
    await handle.kill();
    throw error;
  }
  handle.detach();
  return {
    log: logFile(logs, host),
    look: async () => target,
    ended: () => exit,
    close: () => undefined,
  };
}

/** Starts `tram host` in a session of its own, with all hosts of the machine. If it is asked to restart, it starts its successor itself. */
async function startMachine(target: LocalHost, machine: string, fresh: boolean): Promise<Started> {
  const { name, config } = target;
  // Without memory, the host learns from the others that it had some, and recovers from them.
  if (fresh) {
    await withMachine(target, (all) => {
      for (const { path, host } of all) removeUnlocked(path, host);
    });
  }
  const log = logFile(makeStateDirectory(`${name}-${machine}`), machine);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
  let exit: string | undefined;
  const args = [main, 'host', machine, '--config', config!, '--respawn'];
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ['ignore', descriptor, descriptor],
  });
  closeSync(descriptor);
  child.on('exit', (code, signal) => {
    exit = signal ?? `exit code ${code}`;
  });
  child.unref();
  let current: LocalHost | undefined;
  const close = (): void => {
    current?.arena.close();
    current = undefined;
  };
  return {
    log,
    look: async (host) => {
      // Until the host has locked it, the file may be replaced.
      if (current?.host === host && current.arena.isHostLocked(host)) return current;
      close();
      current = await reopened({ ...target, host });
      return current;
    },
    ended: () => exit,
    close,
  };
}
