/** `tram down`: ends a cluster and removes what it leaves behind. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { HostProcess } from '../hosting/host-processes.js';
import type { Attached } from './attached.js';
import { nameOption, removeStateDirectory } from './cluster-name.js';
import { count } from './colors.js';
import { ExitCode } from './exit-codes.js';

interface DownFlags {
  readonly name: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

interface Outcome {
  /** Was everything delivered that was going to be? */
  readonly isDrained: boolean;
  /** Hosts that did not end by themselves. */
  readonly killed: readonly HostProcess[];
  readonly trace: string | undefined;
}

const DRAIN_MS = 5000;
const END_MS = 2000;
const LOOK_MS = 10;

const HELP = `
First it waits, at most ${DRAIN_MS / 1000} seconds, until all replicas that are up have
delivered what their groups have. Then it tells the hosts to end, kills those that have not
after ${END_MS / 1000} seconds, and removes the shared memory and the logs. A history (--trace)
stays, and its last line says whether the cluster was drained: it was not if a client was still
connected, a group had no leader, or a host had to be killed.

--force waits for nothing, kills the hosts at once, and also clears away what can't be read: the
memory of another version or of a start that was given up half-way, or hosts whose memory
somebody has removed.

Examples:
  $ tram down
  $ tram down --name bank && tram check history

Exit codes:
  0  it is down
  1  there is no such cluster, or it can't be read
`;

export function registerDown(program: Command): void {
  program
    .command('down')
    .helpGroup('Run a cluster:')
    .summary('end a cluster and clear up')
    .description(
      'Ends a cluster: lets it drain, ends its hosts, removes its shared memory and logs.',
    )
    .addOption(nameOption())
    .option('--force', 'at once, and whatever is there under that name')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: DownFlags) => {
      process.exitCode = await down(flags);
    });
}

async function down(flags: DownFlags): Promise<number> {
  const { withCluster } = await import('./attached.js');
  const { name, force = false } = flags;
  try {
    const outcome = await withCluster(name, (cluster) => takeDown(cluster, force));
    tell(outcome, flags);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    // A restart of the machine takes the memory and may leave the logs.
    const hadLogs = error.code === 'TRAM_NOT_FOUND' && removeStateDirectory(name);
    if (!hadLogs && !(force && UNREADABLE.has(error.code))) throw error;
    const killed = force ? await removeUnread(name) : [];
    tell({ isDrained: false, killed, trace: undefined }, flags);
  }
  return ExitCode.fine;
}

const UNREADABLE: ReadonlySet<string> = new Set([
  'TRAM_NOT_FOUND',
  'TRAM_CORRUPT',
  'TRAM_VERSION_MISMATCH',
]);

async function takeDown(cluster: Attached, force: boolean): Promise<Outcome> {
  const { askToEnd, drain, endTrace, replicasDown } = await import('../hosting/oversight.js');
  const { clearAway } = await import('./remains.js');
  const { path, context } = cluster;
  await warnOfClients(cluster);
  const wasDrained = !force && (await drain(context, DRAIN_MS));
  const crashed = replicasDown(context);
  const isFirst = askToEnd(context);
  const killed = await endHosts(path, force ? 0 : END_MS);
  const isDrained = wasDrained && killed.length === 0;
  const { trace } = context.config;
  if (trace !== undefined && (isFirst || !(await hasEnd(trace)))) {
    endTrace(context, crashed, isDrained);
  }
  clearAway(cluster);
  return { isDrained, killed, trace };
}

async function warnOfClients({ context }: Attached): Promise<void> {
  const { statusOf } = await import('../hosting/status.js');
  const { connected } = statusOf(context).clients;
  if (connected === 0) return;
  process.stderr.write(
    `${count(connected, 'client is', 'clients are')} still connected: what is not answered yet may or may not be delivered\n`,
  );
}

/** Wait until all host processes have ended, then kill the rest. Returns those. */
async function endHosts(path: string, timeoutMs: number): Promise<HostProcess[]> {
  const { hostProcesses } = await import('../hosting/host-processes.js');
  const { pause } = await import('../hosting/oversight.js');
  const deadlineMs = Date.now() + timeoutMs;
  while (hostProcesses(path).length > 0 && Date.now() < deadlineMs) await pause(LOOK_MS);
  const killed = hostProcesses(path);
  for (const { pid } of killed) process.kill(pid, 'SIGKILL');
  while (hostProcesses(path).length > 0) await pause(LOOK_MS);
  return killed;
}

/** If another `tram down` was interrupted, did it get that far? */
async function hasEnd(trace: string): Promise<boolean> {
  const { existsSync } = await import('node:fs');
  const { join } = await import('node:path');
  return existsSync(join(trace, 'end.jsonl'));
}

async function removeUnread(name: string): Promise<HostProcess[]> {
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { clearAwayUnread } = await import('./remains.js');
  const path = arenaPath(name);
  const killed = await endHosts(path, 0);
  clearAwayUnread(name, path);
  return killed;
}

function tell({ isDrained, killed, trace }: Outcome, { name, force, json }: DownFlags): void {
  if (json) {
    const hosts = killed.map(({ host, pid }) => ({ host, pid }));
    const outcome = { name, drained: isDrained, killed: hosts, trace: trace ?? null };
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
    return;
  }
  if (!force) {
    for (const { host, pid } of killed) {
      process.stderr.write(`host ${host} (process ${pid}) did not end by itself and was killed\n`);
    }
  }
  process.stdout.write(`cluster "${name}" is down${isDrained ? '' : ', not drained'}\n`);
  if (trace !== undefined) process.stderr.write(`its history: tram check ${trace}\n`);
}
