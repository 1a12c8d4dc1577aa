/**
 * `tram restart`: starts a host that has ended, and waits until its replicas have rejoined their groups; with `--all`,
 * restarts all hosts of a cluster of processes in turn.
 */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { StartedHost } from '../hosting/rejoin.js';
import { makeStateDirectory } from '../hosting/state-directory.js';
import type { GroupStatus, ReplicaStatus } from '../hosting/status.js';
import type { Attached } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import type { LocalHost, ReplicaHost } from './local-host.js';
import { milliseconds } from './number-option.js';
import { listed } from './replica-name.js';

interface RestartFlags extends Which {
  readonly all?: boolean;
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

/** A host that has been started, and what is kept open to look at it. */
interface Starting extends StartedHost {
  close(): void;
}

interface Rejoined {
  readonly replicas: readonly ReplicaStatus[];
  readonly tookMs: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;

const HELP = `
A host that was killed leaves the memory of its replicas behind: their logs and their promises. When
it starts again, its replicas resume with that memory. With --fresh they start with empty memory, as
on a new machine: they learn from the other members what they must promise, and fetch the state from
one of them. For that they need f + 1 other members that take part: of three replicas, both others.
The command refuses --fresh if there are fewer, since that could cost the last copy of the state.

The command ends when all replicas of the host are members of their groups again and have delivered
what their groups had delivered when the command began. It does not wait for deliveries of a group
that has no majority.

With --all the command restarts all hosts, one after the other, while the cluster serves its
clients. Each host hands its leaderships over, ends in order, and starts with the memory that it
left. The next one follows when its replicas have caught up. Each start loads the module of the
service again, so this is also the way to upgrade a service. The command does not begin unless all
replicas take part, and ends at the first host that fails.

A cluster across machines (--config): run the command on the machine of the host; on another machine
it says where that is. It starts "tram host" in the background. If a service manager runs your
hosts, use that instead. The command ends when the replicas are members again.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh
  $ tram restart g2/0 --config cluster.yaml
  $ tram restart --all

Exit codes:
  0    the replicas of the host have rejoined
  1    there is no such cluster, the host is running, is not on this machine, or did not start
  2    there is no such replica
  4    the host runs, but not all of its replicas have rejoined in time
  130  interrupted, with --all: the hosts that follow were not restarted
`;

export function registerRestart(program: Command): void {
  program
    .command('restart')
    .helpGroup('Make things go wrong:')
    .summary('start the host of a replica again, or restart all hosts in turn')
    .description(
      'Starts the process that hosts a replica again, and waits until all its replicas have rejoined; or restarts all hosts in turn.',
    )
    .argument('[replica]', 'group/member, such as g2/0')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--all', 'restart all hosts, one after the other')
    .option('--fresh', 'start with empty memory')
    .option('--timeout-ms <ms>', 'how long to wait for each host', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--json', 'print one JSON object; with --all, one per host and line')
    .addHelpText('after', HELP)
    .action(async (replica: string | undefined, flags: RestartFlags) => {
      if ((replica === undefined) !== (flags.all === true) || (flags.all && flags.fresh)) {
        throw new TramError('TRAM_INVALID_ARGUMENT', 'restart needs a replica, or --all', {
          hint: 'Name one replica, such as g2/0, with or without --fresh; or give --all alone.',
        });
      }
      if (replica === undefined) {
        process.exitCode = await restartAll(flags);
        return;
      }
      const { withHostOf } = await import('./local-host.js');
      const words = `restart ${replica}${flags.fresh ? ' --fresh' : ''}`;
      process.exitCode = await withHostOf(flags, replica, words, (host) => restart(host, flags));
    });
}

async function restart(target: ReplicaHost, flags: RestartFlags): Promise<number> {
  await requireEnded(target);
  tell(target, await start(target, flags), flags);
  return ExitCode.fine;
}

async function start(
  target: LocalHost,
  { fresh = false, timeoutMs }: RestartFlags,
): Promise<Rejoined> {
  const { deliveredByGroup, requireOtherCopies, untilRejoined } = await import(
    '../hosting/rejoin.js'
  );
  const { statusOf } = await import('../hosting/status.js');
  const { machine, context, host, title } = target;
  const startedMs = performance.now();
  const deadlineMs = Date.now() + timeoutMs;
  if (fresh) requireOtherCopies(await groupsOf(target), host, title);
  // The memory of one machine tells only of the replicas of its host.
  const targets = deliveredByGroup(statusOf(context).groups);
  const starting =
    machine === undefined
      ? await startProcess(target, fresh, deadlineMs)
      : await startMachine(target, fresh);
  try {
    const replicas = await untilRejoined(starting, targets, deadlineMs);
    return { replicas, tookMs: performance.now() - startedMs };
  } finally {
    starting.close();
  }
}

/** All groups of the cluster, also those on other machines. @throws TRAM_UNREACHABLE */
async function groupsOf(target: LocalHost): Promise<readonly GroupStatus[]> {
  const { withSeen } = await import('./attached.js');
  const { statusOf } = await import('../hosting/status.js');
  if (target.machine === undefined) return statusOf(target.context).groups;
  return withSeen(target, async ({ context }) => statusOf(context).groups);
}

// --- all hosts ---------------------------------------------------------------------------------

async function restartAll(flags: RestartFlags): Promise<number> {
  const { locate, withCluster } = await import('./attached.js');
  const { catchInterruption } = await import('./interruption.js');
  const location = await locate(flags);
  if (location.memory === 'machines') {
    throw new TramError('TRAM_INVALID_ARGUMENT', '--all is for clusters of processes', {
      hint: 'Restart the hosts of machines one at a time, each on its machine, and look at `tram status` in between.',
    });
  }
  const interruption = catchInterruption();
  try {
    return await withCluster({ ...flags, name: location.name }, (cluster) =>
      restartEach(cluster, flags, interruption.signal),
    );
  } catch (error) {
    if (!(error instanceof TramError) || error.code !== 'TRAM_ABORTED') throw error;
    process.stderr.write(`${error.message}\n`);
    return ExitCode.interrupted;
  } finally {
    interruption.release();
  }
}

async function restartEach(
  cluster: Attached,
  flags: RestartFlags,
  signal: AbortSignal,
): Promise<number> {
  const { endHostProcess } = await import('../hosting/host-processes.js');
  const { keepDown } = await import('../hosting/oversight.js');
  const { handOver, restartInTurn, STOP_MS } = await import('../hosting/rolling-restart.js');
  const { context, arena } = cluster;
  const control = {
    context,
    stop: async (host: number): Promise<void> => {
      await handOver(context, host);
      keepDown(context, host);
      await endHostProcess(arena, host, 'SIGTERM', STOP_MS);
    },
    restart: async (host: number): Promise<void> => {
      const rejoined = await start({ ...cluster, host, title: String(host) }, flags);
      if (flags.json) return tellJson({ host }, rejoined, flags);
      const names = listed(rejoined.replicas.map(({ name }) => name));
      const tookMs = Math.round(rejoined.tookMs);
      process.stdout.write(`host ${host} was restarted in ${tookMs} ms: ${names}\n`);
    },
  };
  await restartInTurn(control, { signal });
  return ExitCode.fine;
}

// --- one host ----------------------------------------------------------------------------------

async function requireEnded(target: ReplicaHost): Promise<void> {
  const { participantOf } = await import('./local-host.js');
  const { statusOf } = await import('../hosting/status.js');
  const { name, arena, context, host, title, replica } = target;
  if (statusOf(context).state === 'closing') {
    throw new TramError('TRAM_CLOSED', `cluster "${name}" is being taken down`, {
      hint: `Wait until it is down, then start it with \`${commandFor(target, 'up')}\`.`,
    });
  }
  const running = await participantOf(target);
  if (running === undefined && !arena.isHostLocked(host)) return;
  const who = running === undefined ? '' : `, as process ${running.pid}`;
  const how = running?.isStopped ? 'stopped (SIGSTOP), but has not ended' : 'running';
  throw new TramError(
    'TRAM_HOST_RUNNING',
    `host ${title}, which runs ${replica}, is ${how}${who}`,
    {
      hint: `End it first with \`${commandFor(target, `kill ${replica}`)}\`.`,
    },
  );
}

async function startProcess(
  target: LocalHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Starting> {
  const { logFile, processStarter } = await import('../hosting/starters.js');
  const { keepDown } = await import('../hosting/oversight.js');
  const { statusOf } = await import('../hosting/status.js');
  const { name, path, host, title, context } = target;
  const logs = makeStateDirectory(name);
  let exit: string | undefined;
  // The starter of the cluster leaves it to us.
  keepDown(context, host);
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
    host,
    title,
    log: logFile(logs, host),
    groups: () => statusOf(context).groups,
    ended: () => exit,
    close: () => undefined,
  };
}

/** Starts `tram host` in a session of its own, so that it outlives this command and its terminal. */
async function startMachine(target: LocalHost, fresh: boolean): Promise<Starting> {
  const { spawn } = await import('node:child_process');
  const { closeSync, constants, openSync } = await import('node:fs');
  const { fileURLToPath } = await import('node:url');
  const { logFile } = await import('../hosting/starters.js');
  const { reopened } = await import('./local-host.js');
  const { removeUnlocked } = await import('../memory/processes/arena-file.js');
  const { statusOf } = await import('../hosting/status.js');
  const { name, config, path, host, title } = target;
  const machine = target.machine!;
  // Without memory, the host learns from the others that it had some, and recovers from them.
  if (fresh) removeUnlocked(path, host);
  const log = logFile(makeStateDirectory(`${name}-${machine}`), machine);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  const main = fileURLToPath(new URL('./main.js', import.meta.url));
  let exit: string | undefined;
  const child = spawn(process.execPath, [main, 'host', machine, '--config', config!], {
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
    host,
    title,
    log,
    groups: async () => {
      // Until the host has locked it, the file may be replaced.
      if (!current?.arena.isHostLocked(current.host)) {
        close();
        current = await reopened(target);
      }
      return current === undefined ? [] : statusOf(current.context).groups;
    },
    ended: () => exit,
    close,
  };
}

function tell(
  { host, title, machine }: ReplicaHost,
  rejoined: Rejoined,
  flags: RestartFlags,
): void {
  const { replicas, tookMs } = rejoined;
  if (flags.json) {
    tellJson({ host, ...(machine !== undefined && { name: machine }) }, rejoined, flags);
    return;
  }
  const how = flags.fresh
    ? 'with empty memory; its replicas fetched the state from others'
    : 'with the memory that it had left behind';
  const names = listed(replicas.map(({ name }) => name));
  process.stdout.write(
    `host ${title} is up again, ${how}\nrejoined after ${Math.round(tookMs)} ms: ${names}\n`,
  );
}

function tellJson(
  host: { readonly host: number; readonly name?: string },
  { replicas, tookMs }: Rejoined,
  { fresh = false }: RestartFlags,
): void {
  const rejoined = replicas.map(({ name, role, incarnation, delivered }) => ({
    name,
    role,
    incarnation,
    delivered,
  }));
  const report = { ...host, fresh, tookMs: Math.round(tookMs), replicas: rejoined };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
