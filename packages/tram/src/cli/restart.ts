/** `tram restart`: starts a host that has ended, and waits until its replicas have rejoined their groups. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { RemoteHost } from '../hosting/machines/remote-host.js';
import type { ReplicaStatus } from '../hosting/status.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { milliseconds } from './number-option.js';
import type { ReplicaHost } from './replica-host.js';
import { listed } from './replica-name.js';

interface RestartFlags extends Which {
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;

const HELP = `
A host that was killed leaves the memory of its replicas behind: their logs and their promises. When
it starts again, its replicas resume with that memory. With --fresh they start with empty memory, as
on a new machine: they learn from the other members what they must promise, and fetch the state from
one of them. For that they need a leader and f + 1 other members: of three replicas, both others.

The command ends when all replicas of the host are members of their groups again and have delivered
what their groups had delivered when the command began. It does not wait for deliveries of a group
that has no majority.

A cluster across machines (--config): on the machine of the host, the command starts a host that has
ended, by "tram host" in the background. On another machine, it asks a host that runs to end in order
and to start again. The host then exits with code 5, for its service manager to start it again; if
"tram restart" had started it, it starts its successor itself. A host that has ended can't be started
from another machine. The command ends when the replicas are members again.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh
  $ tram restart g2/0 --config cluster.yaml

Exit codes:
  0  the replicas of the host have rejoined
  1  there is no such cluster, or the host is running on this machine, can't be reached on another
     one, did not start, or has the last copies of a group's state (--fresh)
  2  there is no such replica
  4  the host runs, but not all of its replicas have rejoined in time
`;

export function registerRestart(program: Command): void {
  program
    .command('restart')
    .helpGroup('Make things go wrong:')
    .summary('start the host of a replica again, and wait until it has rejoined')
    .description(
      'Starts the process that hosts a replica again, and waits until all its replicas have rejoined.',
    )
    .argument('<replica>', 'group/member, such as g2/0')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--fresh', 'start with empty memory')
    .option('--timeout-ms <ms>', 'how long to wait', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (replica: string, flags: RestartFlags) => {
      const { withHostOf } = await import('./replica-host.js');
      const words = `restart ${replica}${flags.fresh ? ' --fresh' : ''}`;
      process.exitCode = await withHostOf(flags, replica, words, {
        local: (host) => restart(host, flags),
        remote: (host) => restartRemotely(host, flags),
      });
    });
}

async function restartRemotely(target: RemoteHost, flags: RestartFlags): Promise<number> {
  const { fresh = false, timeoutMs } = flags;
  const { host, title } = target;
  const startedMs = performance.now();
  const replicas = await target.restart(fresh, timeoutMs);
  tell({ host, title, machine: title }, replicas, performance.now() - startedMs, flags);
  return ExitCode.fine;
}

async function restart(target: ReplicaHost, flags: RestartFlags): Promise<number> {
  const { deliveredByGroup, untilRejoined } = await import('../hosting/rejoin.js');
  const { startAgain } = await import('../hosting/start-again.js');
  const { statusOf } = await import('../hosting/status.js');
  const { fresh = false, timeoutMs } = flags;
  await requireEnded(target);
  const startedMs = performance.now();
  const deadlineMs = Date.now() + timeoutMs;
  // The memory of one machine tells only what the replicas of its host had delivered.
  const targets = deliveredByGroup(statusOf(target.context).groups);
  const starting = await startAgain(target, fresh, deadlineMs);
  try {
    const replicas = await untilRejoined(starting, targets, deadlineMs);
    tell(target, replicas, performance.now() - startedMs, flags);
  } finally {
    starting.close();
  }
  return ExitCode.fine;
}

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
  replicas: readonly ReplicaStatus[],
  tookMs: number,
  { fresh = false, json }: RestartFlags,
): void {
  if (json) {
    const rejoined = replicas.map(({ name, role, incarnation, delivered }) => ({
      name,
      role,
      incarnation,
      delivered,
    }));
    const name = machine === undefined ? {} : { name: machine };
    const report = { host, ...name, fresh, tookMs: Math.round(tookMs), replicas: rejoined };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return;
  }
  const how = fresh
    ? 'with empty memory; its replicas fetched the state from others'
    : 'with the memory that it had left behind';
  const names = listed(replicas.map(({ name }) => name));
  process.stdout.write(
    `host ${title} is up again, ${how}\nrejoined after ${Math.round(tookMs)} ms: ${names}\n`,
  );
}
