/** `tram down`: ends a cluster and removes what it leaves behind. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { HostProcess } from '../hosting/host-processes.js';
import { removeStateDirectory } from '../hosting/state-directory.js';
import type { Attached } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { count } from './colors.js';
import { ExitCode } from './exit-codes.js';
import type { LocalHost } from './local-host.js';

interface DownFlags extends Which {
  readonly force?: boolean;
  readonly json?: boolean;
}

interface Outcome {
  /** Whether all replicas that were up had delivered everything. */
  readonly isDrained: boolean;
  /** Hosts that did not end by themselves. */
  readonly killed: readonly HostProcess[];
  readonly trace: string | undefined;
}

const DRAIN_MS = 5000;
const END_MS = 2000;
const LOOK_MS = 10;

const HELP = `
First the command waits, at most ${DRAIN_MS / 1000} seconds, until all replicas that are up have
delivered what their groups have ordered. Then it tells the hosts to end, kills those that have not
ended after ${END_MS / 1000} seconds, and removes the shared memory and the logs. A history (--trace)
stays. Its last line says whether the cluster was drained. It was not if a client was connected, a
group had no leader, or a host had to be killed.

With --force the command does not wait and kills the hosts at once. It also removes memory that it
can't read, because another version made it or a start was interrupted, and hosts whose memory
somebody has removed.

A cluster across machines (--config): the command ends the hosts that run on this machine, as
SIGTERM does, and names the machines of the others. The memory of the hosts stays, so that they can
start again; --force removes it. A host that has lost its memory recovers from the others. If more than f
members of a group lose theirs, the group loses its state.

Examples:
  $ tram down
  $ tram down --name bank && tram check history
  $ tram down --config cluster.yaml

Exit codes:
  0  it is down
  1  there is no such cluster, it can't be read, or none of its hosts is on this machine
`;

export function registerDown(program: Command): void {
  program
    .command('down')
    .helpGroup('Run a cluster:')
    .summary('end a cluster and clear up')
    .description(
      'Ends a cluster: lets it drain, ends its hosts, and removes its shared memory and logs.',
    )
    .addOption(nameOption())
    .addOption(configOption())
    .option('--force', 'end it at once, and remove all that has its name')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: DownFlags) => {
      const { locate } = await import('./attached.js');
      const location = await locate(flags);
      process.exitCode =
        location.memory === 'machines'
          ? await endHere({ ...flags, config: location.config })
          : await down({ ...flags, name: location.name });
    });
}

async function down(flags: DownFlags): Promise<number> {
  const { withCluster } = await import('./attached.js');
  const { name, force = false } = flags;
  try {
    const outcome = await withCluster(flags, (cluster) => takeDown(cluster, force));
    tell(outcome, flags);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    // A restart of the machine removes the memory and may leave the logs.
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
    `${count(connected, 'client is', 'clients are')} still connected: messages that are not answered yet may or may not be delivered\n`,
  );
}

/** Waits until the hosts and their starter have ended, then kills the others. @returns the hosts that it has killed */
async function endHosts(path: string, timeoutMs: number): Promise<HostProcess[]> {
  const { hostProcesses, starterProcesses } = await import('../hosting/host-processes.js');
  const { pause } = await import('../hosting/oversight.js');
  const deadlineMs = Date.now() + timeoutMs;
  const isRunning = (): boolean =>
    hostProcesses(path).length > 0 || starterProcesses(path).length > 0;
  while (isRunning() && Date.now() < deadlineMs) await pause(LOOK_MS);
  // The starter first: it would restart hosts.
  for (const pid of starterProcesses(path)) send(pid, 'SIGKILL');
  const killed = hostProcesses(path);
  for (const { pid } of killed) send(pid, 'SIGKILL');
  while (isRunning()) await pause(LOOK_MS);
  return killed;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Whether another `tram down`, which was interrupted, has written the last line of the history. */
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
      process.stderr.write(`host ${host} (process ${pid}) did not end in time and was killed\n`);
    }
  }
  process.stdout.write(`cluster "${name}" is down${isDrained ? '' : ', not drained'}\n`);
  if (trace !== undefined) process.stderr.write(`check its history with: tram check ${trace}\n`);
}

// --- across machines ---------------------------------------------------------------------------

/** What has become of a host on this machine. */
interface Ended {
  readonly name: string;
  /** `null` if it was not running. */
  readonly pid: number | null;
  readonly wasKilled: boolean;
}

async function endHere(flags: DownFlags & { readonly config: string }): Promise<number> {
  const { hostsHere } = await import('./local-host.js');
  const { here, elsewhere, name } = await hostsHere(flags);
  const { force = false, json } = flags;
  const command = commandFor(flags, force ? 'down --force' : 'down');
  const others = elsewhere.map((machine) => `${machine.name} (${machine.address})`).join(', ');
  if (here.length === 0) {
    throw new TramError(
      'TRAM_NOT_FOUND',
      `no host of cluster "${name}" runs on this machine or has left memory here`,
      {
        hint:
          others === ''
            ? `Start its hosts with \`${commandFor(flags, 'host NAME')}\`.`
            : `Run \`${command}\` on the machines of ${others}.`,
      },
    );
  }
  const ended: Ended[] = [];
  try {
    for (const local of here) ended.push(await endHost(local, force));
  } finally {
    for (const { arena } of here) arena.close();
  }
  if (json) {
    const memory = force ? 'removed' : 'kept';
    const names = elsewhere.map((machine) => machine.name);
    process.stdout.write(`${JSON.stringify({ name, hosts: ended, memory, elsewhere: names })}\n`);
    return ExitCode.fine;
  }
  const memory = force ? 'its memory is removed' : 'its memory stays for its next start';
  for (const { name, pid, wasKilled } of ended) {
    const how = pid === null ? 'was not running' : `(process ${pid}) is down`;
    process.stdout.write(`host ${name} ${how}${wasKilled ? ', killed' : ''}; ${memory}\n`);
  }
  if (others !== '') {
    process.stderr.write(`not on this machine: ${others}. Run \`${command}\` there.\n`);
  }
  return ExitCode.fine;
}

async function endHost(local: LocalHost, force: boolean): Promise<Ended> {
  const { pause } = await import('../hosting/oversight.js');
  const { participantOf } = await import('./local-host.js');
  const { arena, host, title, name } = local;
  const running = await participantOf(local);
  let wasKilled = force && running !== undefined;
  if (running !== undefined) {
    send(running.pid, force ? 'SIGKILL' : 'SIGTERM');
    const deadlineMs = Date.now() + END_MS;
    while (arena.isHostLocked(host)) {
      if (!wasKilled && Date.now() > deadlineMs) {
        wasKilled = true;
        send(running.pid, 'SIGKILL');
      }
      await pause(LOOK_MS);
    }
  }
  if (force) arena.removeFile(() => removeStateDirectory(`${name}-${title}`));
  return { name: title, pid: running?.pid ?? null, wasKilled };
}
