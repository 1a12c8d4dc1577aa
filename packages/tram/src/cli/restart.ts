/** `tram restart`: a host that has ended runs again, and its replicas rejoin their groups. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { GroupStatus, ReplicaStatus } from '../hosting/status.js';
import type { Attached } from './attached.js';
import { commandFor, makeStateDirectory, nameOption } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { milliseconds } from './number-option.js';
import { listed, parseReplica } from './replica-name.js';

interface RestartFlags {
  readonly name: string;
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const LOOK_MS = 5;

const HELP = `
A host that was killed has left its replicas' memory behind: their logs and what they have
promised. Started again, they take that up. With --fresh they forget it and start with nothing,
as on a new machine: they learn from the others what they must promise, and fetch the state from
one of them. For that they need a leader and f + 1 others: of three replicas, both.

The command ends when all replicas of the host are members of their groups again and have
delivered what the groups had delivered when it began; as far as a majority of the group is up.

Examples:
  $ tram kill g2/0 && tram restart g2/0
  $ tram kill g2/0 && tram restart g2/0 --fresh

Exit codes:
  0  its replicas have rejoined
  1  there is no such cluster, the host is running, or it did not start
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
    .argument('<replica>', 'group/member, as in g2/0')
    .addOption(nameOption())
    .option('--fresh', 'with empty memory')
    .option('--timeout-ms <ms>', 'how long that may take', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (replica: string, flags: RestartFlags) => {
      const { withCluster } = await import('./attached.js');
      process.exitCode = await withCluster(flags.name, (cluster) =>
        restart(cluster, replica, flags),
      );
    });
}

async function restart(cluster: Attached, text: string, flags: RestartFlags): Promise<number> {
  const { context } = cluster;
  const { group, member } = parseReplica(text, context);
  const { map, layout } = context;
  const host = map.hostOf(layout.replicaProcess(group, member));
  await requireEnded(cluster, host, `g${group}/${member}`);
  const startedMs = performance.now();
  const deadlineMs = Date.now() + flags.timeoutMs;
  const targets = await deliveredBy(cluster);
  await startHost(cluster, host, flags.fresh === true, deadlineMs);
  const replicas = await untilRejoined(cluster, host, targets, deadlineMs);
  tell(replicas, host, performance.now() - startedMs, flags);
  return ExitCode.fine;
}

async function requireEnded(cluster: Attached, host: number, replica: string): Promise<void> {
  const { hostProcesses } = await import('../hosting/host-processes.js');
  const { statusOf } = await import('../hosting/status.js');
  const { name, path, arena, context } = cluster;
  if (statusOf(context).state === 'closing') {
    throw new TramError('TRAM_CLOSED', `cluster "${name}" is being taken down`);
  }
  const running = hostProcesses(path).find((candidate) => candidate.host === host);
  if (running === undefined && !arena.isHostLocked(host)) return;
  const who = running === undefined ? '' : `, as process ${running.pid}`;
  const how = running?.isStopped ? 'stopped (SIGSTOP), but has not ended' : 'running';
  throw new TramError('TRAM_HOST_RUNNING', `host ${host}, which runs ${replica}, is ${how}${who}`, {
    hint: `End it first: \`${commandFor(cluster, `kill ${replica}`)}\`.`,
  });
}

/** How much each group has delivered: replicas that have ended have left that behind, too. */
async function deliveredBy({ context }: Attached): Promise<number[]> {
  const { statusOf } = await import('../hosting/status.js');
  return statusOf(context).groups.map(({ replicas }) =>
    Math.max(...replicas.map(({ delivered }) => delivered)),
  );
}

async function startHost(
  { name, path }: Attached,
  host: number,
  fresh: boolean,
  deadlineMs: number,
): Promise<void> {
  const { processStarter } = await import('../hosting/starters.js');
  const starter = processStarter(path, makeStateDirectory(name));
  const handle = starter.start(host, !fresh, {
    onReport: () => undefined,
    onExit: () => undefined,
  });
  try {
    await handle.ready(deadlineMs);
  } catch (error) {
    await handle.kill();
    throw error;
  }
  handle.detach();
}

async function untilRejoined(
  { context, arena, path }: Attached,
  host: number,
  targets: readonly number[],
  deadlineMs: number,
): Promise<ReplicaStatus[]> {
  const { statusOf } = await import('../hosting/status.js');
  const { pause } = await import('../hosting/oversight.js');
  for (;;) {
    const { groups } = statusOf(context);
    const ours = groups.flatMap(({ replicas }) =>
      replicas.filter((replica) => replica.host === host),
    );
    const missing = ours.filter(({ group, state, role, delivered }) => {
      if (state !== 'up' || role === 'recovering') return true;
      return delivered < targets[group]! && hasMajority(groups[group]!);
    });
    if (missing.length === 0) return ours;
    if (!arena.isHostLocked(host)) {
      throw new TramError('TRAM_START_FAILED', `host ${host} of ${path} has ended again`, {
        hint: 'Look at its log: `tram up` has shown where it is.',
      });
    }
    if (Date.now() > deadlineMs) {
      const names = listed(missing.map(({ name }) => name));
      throw new TramError(
        'TRAM_TIMEOUT',
        `host ${host} runs, but ${names} did not rejoin in time`,
        {
          hint:
            'See `tram status`. A group goes on once a majority of it is up; if more than half of it had been ' +
            'killed, its state may be lost, and the cluster must be started afresh.',
        },
      );
    }
    await pause(LOOK_MS);
  }
}

/** Else nothing is delivered until more come back, and there is nothing to wait for. */
function hasMajority({ replicas }: GroupStatus): boolean {
  return 2 * replicas.filter(({ state }) => state === 'up').length > replicas.length;
}

function tell(
  replicas: readonly ReplicaStatus[],
  host: number,
  tookMs: number,
  { fresh = false, json }: RestartFlags,
): void {
  if (json) {
    const lives = replicas.map(({ name, role, incarnation, delivered }) => ({
      name,
      role,
      incarnation,
      delivered,
    }));
    const report = { host, fresh, tookMs: Math.round(tookMs), replicas: lives };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return;
  }
  const how = fresh
    ? 'with empty memory: they fetched the state from others'
    : 'with the memory that they had left behind';
  const names = listed(replicas.map(({ name }) => name));
  process.stdout.write(
    `host ${host} is up again, ${how}\nrejoined after ${Math.round(tookMs)} ms: ${names}\n`,
  );
}
