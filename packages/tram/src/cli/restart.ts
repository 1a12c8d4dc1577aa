/** `tram restart`: starts a host that has ended, and waits until its replicas have rejoined their groups. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { GroupStatus, ReplicaStatus } from '../hosting/status.js';
import {
  commandFor,
  configOption,
  makeStateDirectory,
  nameOption,
  type Which,
} from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import type { LocalHost, ReplicaHost } from './local-host.js';
import { milliseconds } from './number-option.js';
import { listed } from './replica-name.js';

interface RestartFlags extends Which {
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

/** A host that has been started. */
interface Starting {
  /** Where it prints. */
  readonly log: string;
  /** The host as it is now, if its memory can be read. */
  look(): Promise<LocalHost | undefined>;
  /** How its process has ended, if it has. */
  ended(): string | undefined;
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const LOOK_MS = 5;

const HELP = `
A host that was killed leaves the memory of its replicas behind: their logs and their promises. When
it starts again, its replicas resume with that memory. With --fresh they start with empty memory, as
on a new machine: they learn from the other members what they must promise, and fetch the state from
one of them. For that they need a leader and f + 1 other members: of three replicas, both others.

The command ends when all replicas of the host are members of their groups again and have delivered
what their groups had delivered when the command began. It does not wait for deliveries of a group
that has no majority.

A cluster across machines (--config): run the command on the machine of the host; on another machine
it says where that is. It starts "tram host" in the background. If a service manager runs your
hosts, use that instead. The command ends when the replicas are members again.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh
  $ tram restart g2/0 --config cluster.yaml

Exit codes:
  0  the replicas of the host have rejoined
  1  there is no such cluster, the host is running, is not on this machine, or did not start
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
      const { withHostOf } = await import('./local-host.js');
      const words = `restart ${replica}${flags.fresh ? ' --fresh' : ''}`;
      process.exitCode = await withHostOf(flags, replica, words, (host) => restart(host, flags));
    });
}

async function restart(target: ReplicaHost, flags: RestartFlags): Promise<number> {
  const { fresh = false, timeoutMs } = flags;
  await requireEnded(target);
  const startedMs = performance.now();
  const deadlineMs = Date.now() + timeoutMs;
  const targets = await deliveredBy(target);
  const starting =
    target.machine === undefined
      ? await startProcess(target, fresh, deadlineMs)
      : await startMachine(target, fresh);
  try {
    const replicas = await untilRejoined(target, starting, targets, deadlineMs);
    tell(target, replicas, performance.now() - startedMs, flags);
  } finally {
    starting.close();
  }
  return ExitCode.fine;
}

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

/**
 * By group: how many log entries its replicas had delivered, also those that have ended. The memory of one machine
 * tells that only of the replicas of its host.
 */
async function deliveredBy({ context }: LocalHost): Promise<number[]> {
  const { statusOf } = await import('../hosting/status.js');
  return statusOf(context).groups.map(({ replicas }) =>
    Math.max(...replicas.map(({ delivered }) => delivered)),
  );
}

async function startProcess(
  target: ReplicaHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Starting> {
  const { logFile, processStarter } = await import('../hosting/starters.js');
  const { name, path, host } = target;
  const logs = makeStateDirectory(name);
  let exit: string | undefined;
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

/** Starts `tram host` in a session of its own, so that it outlives this command and its terminal. */
async function startMachine(target: ReplicaHost, fresh: boolean): Promise<Starting> {
  const { spawn } = await import('node:child_process');
  const { closeSync, constants, openSync } = await import('node:fs');
  const { fileURLToPath } = await import('node:url');
  const { logFile } = await import('../hosting/starters.js');
  const { reopened } = await import('./local-host.js');
  const { removeUnlocked } = await import('../memory/processes/arena-file.js');
  const { name, config, path, host } = target;
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
    log,
    look: async () => {
      // Until the host has locked it, the file may be replaced.
      if (current?.arena.isHostLocked(current.host)) return current;
      close();
      current = await reopened(target);
      return current;
    },
    ended: () => exit,
    close,
  };
}

async function untilRejoined(
  { title, host }: ReplicaHost,
  starting: Starting,
  targets: readonly number[],
  deadlineMs: number,
): Promise<ReplicaStatus[]> {
  const { statusOf } = await import('../hosting/status.js');
  const { pause } = await import('../hosting/oversight.js');
  for (;;) {
    const local = await starting.look();
    const groups = local === undefined ? [] : statusOf(local.context).groups;
    const ours = groups
      .flatMap(({ replicas }) => replicas)
      .filter((replica) => replica.host === host);
    const missing = ours.filter(({ group, state, role, delivered }) => {
      if (state !== 'up' || role === 'recovering') return true;
      return delivered < targets[group] && hasMajority(groups[group]);
    });
    if (ours.length > 0 && missing.length === 0) return ours;
    const exit = starting.ended();
    if (exit !== undefined) {
      throw new TramError('TRAM_START_FAILED', `host ${title} has ended again: ${exit}`, {
        hint: `Read its log: ${starting.log}`,
      });
    }
    if (Date.now() > deadlineMs) {
      const names = ours.length === 0 ? 'its replicas' : listed(missing.map(({ name }) => name));
      throw new TramError(
        'TRAM_TIMEOUT',
        `host ${title} runs, but ${names} did not rejoin in time`,
        {
          hint:
            'See `tram status`. A group goes on once a majority of it is up. If more than half of its replicas ' +
            'were killed at once, its state may be lost: then start the cluster anew.',
        },
      );
    }
    await pause(LOOK_MS);
  }
}

/** A group without a majority delivers nothing. */
function hasMajority({ replicas }: GroupStatus): boolean {
  return 2 * replicas.filter(({ state }) => state === 'up').length > replicas.length;
}

function tell(
  { host, title, machine }: ReplicaHost,
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
