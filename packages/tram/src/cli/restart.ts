/**
 * `tram restart`: starts a host that has ended, and waits until its replicas have rejoined their groups; with `--all`,
 * restarts all hosts of a cluster of processes in turn.
 */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { LocalHost } from '../hosting/local-host.js';
import type { RemoteHost } from '../hosting/machines/remote-host.js';
import type { GroupStatus, ReplicaStatus } from '../hosting/status.js';
import type { Attached } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { milliseconds } from './number-option.js';
import type { ReplicaHost } from './replica-host.js';
import { listed } from './replica-name.js';

interface RestartFlags extends Which {
  readonly all?: boolean;
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

interface Rejoined {
  readonly replicas: readonly ReplicaStatus[];
  readonly tookMs: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;

const HELP = `
A host that has ended leaves the memory of its replicas behind: their logs and their promises. When
it starts again, its replicas resume with that memory. The command ends when they are members of
their groups again and have delivered what their groups had delivered when the command began. It
does not wait for deliveries of a group that has no majority.

With --fresh the replicas start with empty memory, as on a new machine. They learn from the other
members what they must promise, and fetch the state from one of them. For that, f+1 other members of
each group of 2f+1 must take part: of three replicas, both others. The command refuses --fresh if
there are fewer, because that could cost the last copy of the state.

With --all the command restarts all hosts of a cluster of processes, one after the other, while
clients use it. Other members take over where the host leads, the host stops in an orderly way, and
it starts with the memory and the state that it left. The next host follows when its replicas have
caught up. Each start loads the module of the service again, so this is also the way to upgrade a
service. The command begins only if all replicas take part, and ends at the first host that fails.

A cluster across machines (--config):
- A host on this machine must have ended. The command starts it, by "tram host" in the background.
- A host on another machine must run. The command asks it to stop in an orderly way and to start
  again. It exits with code 5, for its service manager to start it again. If it runs with the option
  --respawn, as hosts do that "tram restart" has started, it starts its successor itself.
- A host that has ended can't be started from another machine.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh
  $ tram restart g2/0 --config cluster.yaml
  $ tram restart --all

Exit codes:
  0    the replicas of the host have rejoined
  1    there is no such cluster; the host runs on this machine already, can't be reached, or did not
       start; or too few other members have the state (--fresh) or take part (--all)
  2    there is no such replica, or --all was used for a cluster across machines
  4    the host is not up again, or not all of its replicas have rejoined, in time
  130  interrupted; with --all, the hosts that follow were not restarted
`;

export function registerRestart(program: Command): void {
  program
    .command('restart')
    .helpGroup('Operate hosts and leaders:')
    .summary('start the host of a replica again, or restart all hosts in turn')
    .description(
      'Starts the host of a replica again, and waits until all its replicas have rejoined; or restarts all hosts in turn.',
    )
    .argument('[replica]', 'group/member, such as g2/0')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--all', 'restart all hosts of a cluster of processes, one after the other')
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
      const { withHostOf } = await import('./replica-host.js');
      const words = `restart ${replica}${flags.fresh ? ' --fresh' : ''}`;
      process.exitCode = await withHostOf(flags, replica, words, {
        local: (host) => restart(host, flags),
        remote: (host) => restartRemotely(host, flags),
      });
    });
}

async function restart(target: ReplicaHost, flags: RestartFlags): Promise<number> {
  await requireEnded(target);
  tell(target, await start(target, flags), flags);
  return ExitCode.fine;
}

async function restartRemotely(target: RemoteHost, flags: RestartFlags): Promise<number> {
  const { fresh = false, timeoutMs } = flags;
  const { host, title } = target;
  const startedMs = performance.now();
  const replicas = await target.restart(fresh, timeoutMs);
  const rejoined = { replicas, tookMs: performance.now() - startedMs };
  tell({ host, title, machine: title }, rejoined, flags);
  return ExitCode.fine;
}

async function start(
  target: LocalHost,
  { fresh = false, timeoutMs }: RestartFlags,
): Promise<Rejoined> {
  const { deliveredByGroup, requireOtherCopies, untilRejoined } = await import(
    '../hosting/rejoin.js'
  );
  const { startAgain } = await import('../hosting/start-again.js');
  const { statusOf } = await import('../hosting/status.js');
  const { context, host, title } = target;
  const startedMs = performance.now();
  const deadlineMs = Date.now() + timeoutMs;
  if (fresh) requireOtherCopies(await groupsOf(target), host, title);
  // The memory of one machine tells only of the replicas of its host.
  const targets = deliveredByGroup(statusOf(context).groups);
  const starting = await startAgain(target, fresh, deadlineMs);
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
      hint: 'Restart the hosts of machines one at a time, and look at `tram status` in between.',
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
  const { participantOf } = await import('../hosting/local-host.js');
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

function tell(
  { host, title, machine }: Pick<ReplicaHost, 'host' | 'title' | 'machine'>,
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
