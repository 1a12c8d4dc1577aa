/**
 * `tram restart`: restarts a host, and waits until its replicas have rejoined their groups; with `--all`, restarts all
 * hosts in turn.
 */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { RemoteHost } from '../hosting/machines/remote-host.js';
import type { Restarted } from '../hosting/rolling-restart.js';
import type { ReplicaStatus } from '../hosting/status.js';
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
A host that runs hands its leaderships over and stops in an orderly way first. A host that has ended
leaves the memory of its replicas behind: their logs and their promises. When it starts again, its
replicas resume with that memory. The command ends when they are members of their groups again and
have delivered what their groups had delivered when the command began. It does not wait for
deliveries of a group that has no majority.

With --fresh the replicas start with empty memory, as on a new machine. They learn from the other
members what they must promise, and fetch the state from one of them. For that, f+1 other members of
each group of 2f+1 must take part: of three replicas, both others. The command refuses --fresh if
there are fewer, because that could cost the last copy of the state. If others end while the host
does, it is restarted with its memory, and the command fails.

With --all the command restarts all hosts, one after the other, while clients use the cluster. Other members take over where the host leads, the host stops in an orderly way, and
it starts with the memory and the state that it left. The next host follows when its replicas have
caught up. Each start loads the module of the service again, so this is also the way to upgrade a
service. The command ends a host only if all replicas take part, every group has a leader, and no
host is stopped (SIGSTOP). It ends at the first host that fails.

A cluster across machines (--config):
- A host that has ended is started by "tram host" in the background, on its own machine only.
- A host that runs is asked to stop in an orderly way and to start again, on any machine. It exits
  with code 5, for its service manager to start it again. If it runs with the option --respawn, as
  hosts do that "tram restart" has started, it starts its successor itself.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh
  $ tram restart g2/0 --config cluster.yaml
  $ tram restart --all
  $ tram restart --all --config cluster.yaml

Exit codes:
  0    the replicas of the host have rejoined
  1    there is no such cluster; the host hangs, can't be reached, or did not start; or too few other
       members have the state (--fresh) or take part (--all)
  2    there is no such replica
  4    the host is not up again, or not all of its replicas have rejoined, in time
  130  interrupted; with --all, the hosts that follow were not restarted
`;

export function registerRestart(program: Command): void {
  program
    .command('restart')
    .helpGroup('Operate hosts and leaders:')
    .summary('restart the host of a replica, or all hosts in turn')
    .description(
      'Restarts the host of a replica, and waits until all its replicas have rejoined; or restarts all hosts in turn.',
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
      const { withHostOf } = await import('./replica-host.js');
      const words = `restart ${replica}${flags.fresh ? ' --fresh' : ''}`;
      process.exitCode = await withHostOf(flags, replica, words, {
        local: (host) => restart(host, flags),
        remote: (host) => restartRemotely(host, flags),
      });
    });
}

async function restart(target: ReplicaHost, flags: RestartFlags): Promise<number> {
  const { fresh = false, timeoutMs } = flags;
  const { machine } = target;
  await requireRestartable(target);
  const { doesMachineRun } = await import('../hosting/local-host.js');
  // It may belong to a service manager, which would start it as well.
  if (machine !== undefined && (await doesMachineRun(target, timeoutMs))) {
    return restartAsked(target, flags);
  }
  const { restartHost } = await import('../hosting/start-again.js');
  const { withSeen } = await import('./attached.js');
  const startedMs = performance.now();
  const how = { fresh, timeoutMs };
  const replicas =
    machine !== undefined && fresh
      ? await withSeen(target, ({ context }) => restartHost(target, how, context))
      : await restartHost(target, how);
  tell(target, { replicas, tookMs: performance.now() - startedMs }, flags);
  return ExitCode.fine;
}

/** A host on this machine, which is asked as if it were on another one. */
async function restartAsked({ config, host }: ReplicaHost, flags: RestartFlags): Promise<number> {
  const { Mirror } = await import('../hosting/machines/mirror.js');
  const { RemoteHost } = await import('../hosting/machines/remote-host.js');
  const mirror = await Mirror.open(config!);
  try {
    return await restartRemotely(new RemoteHost(mirror, host, config!), flags);
  } finally {
    await mirror.close();
  }
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

/** @throws TRAM_CLOSED, TRAM_HOST_RUNNING if the process of the host hangs, and so could not end in order */
async function requireRestartable(target: ReplicaHost): Promise<void> {
  const { processOf } = await import('../hosting/local-host.js');
  const { statusOf } = await import('../hosting/status.js');
  const { name, context, title, replica } = target;
  if (statusOf(context).state === 'closing') {
    throw new TramError('TRAM_CLOSED', `cluster "${name}" is being taken down`, {
      hint: `Wait until it is down, then start it with \`${commandFor(target, 'up')}\`.`,
    });
  }
  const running = await processOf(target);
  if (!running?.isStopped) return;
  throw new TramError(
    'TRAM_HOST_RUNNING',
    `host ${title}, which runs ${replica}, is stopped (SIGSTOP), but has not ended, as process ${running.pid}`,
    { hint: `End it first with \`${commandFor(target, `kill ${replica}`)}\`.` },
  );
}

async function restartAll(flags: RestartFlags): Promise<number> {
  const { attachByName, locate } = await import('./attached.js');
  const { attachToMachines } = await import('../hosting/attachment.js');
  const { AttachedHosts } = await import('../hosting/attached-hosts.js');
  const { SILENT } = await import('../hosting/own-hosts.js');
  const { catchInterruption } = await import('./interruption.js');
  const location = await locate(flags);
  const attachment =
    location.memory === 'machines'
      ? await attachToMachines(location.config)
      : attachByName({ ...flags, name: location.name });
  const { signal, release } = catchInterruption();
  const { timeoutMs } = flags;
  const onRestarted = (restarted: Restarted): void => tellTurn(restarted, flags);
  try {
    const hosts = new AttachedHosts(attachment, SILENT);
    await hosts.restartAll({ signal, timeoutMs, onRestarted });
    return ExitCode.fine;
  } catch (error) {
    if (!(error instanceof TramError) || error.code !== 'TRAM_ABORTED') throw error;
    process.stderr.write(`${error.message}\n`);
    return ExitCode.interrupted;
  } finally {
    release();
    await attachment.close();
  }
}

// --- output ------------------------------------------------------------------------------------

function tellTurn({ host, title, replicas, tookMs }: Restarted, flags: RestartFlags): void {
  if (flags.json) {
    const isNamed = title !== String(host);
    tellJson({ host, ...(isNamed && { name: title }) }, { replicas, tookMs }, flags);
    return;
  }
  const names = listed(replicas.map(({ name }) => name));
  process.stdout.write(`host ${title} was restarted in ${Math.round(tookMs)} ms: ${names}\n`);
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
    ? 'with empty memory; its replicas have got the state back'
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
