/** `tram down`: ends a cluster and removes what it leaves behind. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { HostProcess } from '../hosting/host-processes.js';
import type { AbsentHost } from '../hosting/local-host.js';
import { keptLogs } from '../hosting/state-directory.js';
import type { EndedHost, Ending } from '../hosting/take-down.js';
import type { Attached } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { count } from './colors.js';
import { ExitCode } from './exit-codes.js';

interface DownFlags extends Which {
  readonly all?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

interface Outcome extends Ending {
  readonly trace: string | undefined;
  /** The directory with the logs, if they are kept. */
  readonly logs: string | undefined;
}

const HELP = `
A cluster of processes: first the command waits, for at most 5 seconds, until all replicas that are
up have delivered what their groups have ordered. Then it tells the hosts to end, kills those that
have not ended after 2 seconds, and removes the shared memory and the state.

The logs stay until the next cluster of that name ends, and the command prints their directory. A
history (--trace) stays too. Its last line records whether the cluster was drained. It was not if a
client was connected, a group had no leader, or a host had to be killed.

With --force the command does not wait, kills the hosts at once, and also removes the logs. Use it
if the command can't read the memory, because another version of TRAM created it, its start was
interrupted, or its file is gone while hosts still run.

A cluster across machines (--config): the command ends the hosts that run on this machine, as
SIGTERM does, and names the hosts on other machines. With --all it also asks those to end. The
memory of the hosts and the state of their replicas stay in /dev/shm for the next start. With
--force they are removed. A host without memory recovers from the others. But if more than f of the
2f+1 members of a group lose their memory, the group loses its state; with --all --force, all groups
do. If a service manager runs the hosts, use it to end them: it may start them again otherwise.

Examples:
  $ tram down
  $ tram down --name bank && tram check history
  $ tram down --config cluster.yaml
  $ tram down --all --config cluster.yaml

Exit codes:
  0  the cluster, or all of its hosts on this machine, are down
  1  there is no such cluster, its memory can't be read, none of its hosts is on this machine, or,
     with --all, not all hosts could be ended
`;

export function registerDown(program: Command): void {
  program
    .command('down')
    .helpGroup('Run a cluster:')
    .summary('end a cluster and clean up')
    .description('Ends a cluster: lets it drain, ends its hosts, and removes its shared memory.')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--all', 'across machines: end the hosts of all machines, not only of this one')
    .option(
      '--force',
      'kill the hosts at once, and remove everything that has the name of the cluster',
    )
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: DownFlags) => {
      const { locate } = await import('./attached.js');
      const location = await locate(flags);
      if (location.memory === 'processes') {
        process.exitCode = await down({ ...flags, name: location.name });
        return;
      }
      const { config } = location;
      process.exitCode = await (flags.all ? downEverywhere : downHere)({ ...flags, config });
    });
}

async function down(flags: DownFlags): Promise<number> {
  const { withCluster } = await import('./attached.js');
  const { name, force = false } = flags;
  try {
    const outcome = await withCluster(flags, (cluster) => endCluster(cluster, force));
    tell(outcome, flags);
  } catch (error) {
    const isUnreadable = error instanceof TramError && UNREADABLE.has(error.code);
    if (!force || !isUnreadable) throw error;
    const killed = await removeUnread(name);
    tell({ isDrained: false, killed, trace: undefined, logs: undefined }, flags);
  }
  return ExitCode.fine;
}

const UNREADABLE: ReadonlySet<string> = new Set([
  'TRAM_NOT_FOUND',
  'TRAM_CORRUPT',
  'TRAM_VERSION_MISMATCH',
]);

async function endCluster(cluster: Attached, force: boolean): Promise<Outcome> {
  const { takeDown } = await import('../hosting/take-down.js');
  await warnOfClients(cluster);
  const { name, context } = cluster;
  const ending = await takeDown(cluster, force);
  return { ...ending, trace: context.config.trace, logs: keptLogs(name) };
}

async function warnOfClients({ context }: Attached): Promise<void> {
  const { statusOf } = await import('../hosting/status.js');
  const { connected } = statusOf(context).clients;
  if (connected === 0) return;
  process.stderr.write(
    `${count(connected, 'client is', 'clients are')} still connected: messages that are not answered yet may or may not be delivered\n`,
  );
}

async function removeUnread(name: string): Promise<HostProcess[]> {
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { endProcesses } = await import('../hosting/take-down.js');
  const { clearAwayUnread } = await import('./remains.js');
  const path = arenaPath(name);
  const killed = await endProcesses(path, 0);
  clearAwayUnread(name, path);
  return killed;
}

function tell({ isDrained, killed, trace, logs }: Outcome, { name, force, json }: DownFlags): void {
  if (json) {
    const hosts = killed.map(({ host, pid }) => ({ host, pid }));
    const kept = { trace: trace ?? null, logs: logs ?? null };
    const outcome = { name, drained: isDrained, killed: hosts, ...kept };
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
    return;
  }
  if (!force) {
    for (const { host, pid } of killed) {
      process.stderr.write(`host ${host} (process ${pid}) did not end in time and was killed\n`);
    }
  }
  process.stdout.write(`cluster "${name}" is down${isDrained ? '' : ', not drained'}\n`);
  if (logs !== undefined) process.stderr.write(`its logs stay in ${logs}\n`);
  if (trace !== undefined) process.stderr.write(`check its history with: tram check ${trace}\n`);
}

// --- across machines ---------------------------------------------------------------------------

type MachineFlags = DownFlags & { readonly config: string };

/** Only the hosts of this machine: to end a whole cluster, one has to say so. */
async function downHere(flags: MachineFlags): Promise<number> {
  const { hostsHere, isOwnAddress } = await import('../hosting/local-host.js');
  const { endLocal, oncePerMachine } = await import('../hosting/take-down.js');
  const { here, absent, name } = await hostsHere(flags.config);
  const elsewhere = absent.filter(({ address }) => !isOwnAddress(address));
  if (here.length === 0) throw noneHere(name, absent, elsewhere.length > 0, flags);
  const ended: EndedHost[] = [];
  try {
    // All at once: those of one machine end together.
    ended.push(...(await Promise.all(here.map((local) => endLocal(local, flags.force ?? false)))));
  } finally {
    for (const { arena } of here) arena.close();
  }
  const names = [...new Set(elsewhere.map(({ machine }) => machine))];
  tellHosts(name, oncePerMachine(ended), names, flags);
  if (names.length > 0 && !flags.json) {
    process.stderr.write(
      `not on this machine: ${placesOf(elsewhere)}. ${howToEnd(flags, 'them')}\n`,
    );
  }
  return ExitCode.fine;
}

async function downEverywhere(flags: MachineFlags): Promise<number> {
  const { Mirror } = await import('../hosting/machines/mirror.js');
  const { takeDownMachines } = await import('../hosting/take-down.js');
  const { config, force = false, json } = flags;
  const mirror = await Mirror.open(config);
  try {
    const { name, ended, missed } = await takeDownMachines(config, mirror, force);
    const names = missed.map((host) => host.name);
    tellHosts(name, ended, names, flags);
    if (force && !json) {
      process.stderr.write('the memory of these hosts is removed: what only they had is lost\n');
    }
    for (const { error } of missed) process.stderr.write(`${error.message}\n  ${error.hint}\n`);
    return missed.length === 0 ? ExitCode.fine : ExitCode.failure;
  } finally {
    await mirror.close();
  }
}

/** @param areElsewhere  some have addresses of other machines */
function noneHere(
  name: string,
  absent: readonly AbsentHost[],
  areElsewhere: boolean,
  flags: MachineFlags,
): TramError {
  const howToStart = `If they were never started: \`${commandFor(flags, 'host NAME')}\`.`;
  const hint = howToEnd(flags, placesOf(absent));
  return new TramError(
    'TRAM_NOT_FOUND',
    `no host of cluster "${name}" runs on this machine or has left memory here`,
    { hint: areElsewhere ? hint : `${hint} ${howToStart}` },
  );
}

function placesOf(machines: readonly AbsentHost[]): string {
  const places = machines.map(({ machine, address }) => `${machine} (${address})`);
  return [...new Set(places)].join(', ');
}

function howToEnd(flags: MachineFlags, whom: string): string {
  const words = flags.force ? 'down --force' : 'down';
  return `To end ${whom}, run \`${commandFor(flags, `${words} --all`)}\`, or \`${commandFor(flags, words)}\` on their machines.`;
}

/** @param missed  the names of the hosts that were not ended */
function tellHosts(
  name: string,
  ended: readonly EndedHost[],
  missed: readonly string[],
  { force, json }: DownFlags,
): void {
  if (json) {
    const memory = force ? 'removed' : 'kept';
    process.stdout.write(`${JSON.stringify({ name, hosts: ended, memory, elsewhere: missed })}\n`);
    return;
  }
  const memory = force ? 'its memory is removed' : 'its memory stays for its next start';
  for (const { name: host, pid, wasKilled } of ended) {
    const how = pid === null ? 'was not running' : `(process ${pid}) is down`;
    process.stdout.write(`host ${host} ${how}${wasKilled ? ', killed' : ''}; ${memory}\n`);
  }
}
