/**
 * `tram up`: starts a cluster of processes that run on after the command has ended, and a process in the background that
 * restarts them if they end unexpectedly.
 */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Command } from 'commander';
import type { ClusterOptions } from '../config/options.js';
import { TramError } from '../errors.js';
import type { Logger } from '../hosting/own-hosts.js';
import { DEFAULT_NAME, makeStateDirectory, removeLastLogs } from '../hosting/state-directory.js';
import type { ClusterStatus } from '../hosting/status.js';
import { commandFor, parseName } from './cluster-name.js';
import { count, paint } from './colors.js';
import { ExitCode } from './exit-codes.js';
import { catchInterruption } from './interruption.js';
import { anyNumber, milliseconds } from './number-option.js';
import type { StarterOrders, StarterReport } from './starter-process.js';

interface UpFlags extends Partial<ClusterOptions> {
  readonly config?: string;
  readonly foreground?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

const DEFAULT_GROUPS = 8;
const DEFAULT_TIMEOUT_MS = 30_000;
const MEBIBYTE = 2 ** 20;

const HELP = `
The hosts are processes that share a file in /dev/shm. By default there are as many hosts as a group
has replicas, and each host runs one member of every group. With a multiple of that number, each
host runs members of a part of the groups. With fewer hosts, one host runs several members of a
group, and the group may lose its majority with that host.

By default as few hosts as possible lead groups (--leaders together). All hosts lead (--leaders
spread) if there are at least as many hosts as a group has replicas, and more cores than hosts.

If a cluster of that name is there whose hosts or starter have ended, the command goes on with it:
it starts the hosts that are down with the state that they left. It refuses options that differ from
those of the cluster. Only "tram down" removes the state.

With --durability and --journal, the state is also on disk: after "tram down", or after the machine
was restarted, the command recovers the cluster from its journals. That may take a while. If too few
journals are there, it refuses and says what is missing: see "tram recover --help".

The cluster runs until "tram down". A process in the background, the starter, restarts hosts that
end unexpectedly, at most 5 times a minute each. The hosts and the starter write their logs to a
directory that the command names: host-N.log and starter.log.

A configuration file has the same options in YAML, with their names in camel case
("payloadBytesMax: 4096"). Options on the command line take precedence.

The service is a JavaScript module that every replica loads. Its default export is made by
"defineService", or it exports "deliver(message, context)", which returns the reply. In that case, a
service that keeps state also exports "snapshot()" and "restore(snapshot)".

Examples:
  $ tram up
  $ tram up --groups 4 --tree depth --service ./bank.js --name bank
  $ tram up --config cluster.yaml --trace history

  Six processes instead of three, each with half of the groups:
    $ tram up --hosts 6

  Under a service manager, or to try something; Ctrl-C takes the cluster down:
    $ tram up --foreground

Exit codes:
  0    the cluster is up: every group has a leader; with --foreground, it was taken down
  1    the cluster did not start; nothing is left behind, except the state that was there before
  2    an option or the configuration file is wrong
  130  interrupted; the same
`;

export function registerUp(program: Command): void {
  program
    .command('up')
    .helpGroup('Run a cluster:')
    .summary('start a cluster of processes in the background')
    .description(
      'Starts a cluster as processes that share memory, and waits until every group has a leader.',
    )
    .option('--config <file>', 'read options from a YAML file')
    .option(
      '--name <name>',
      `the name of the cluster, for clients and commands (default: "${DEFAULT_NAME}")`,
      parseName,
    )
    .option(
      '--groups <n>',
      `number of replica groups, 1 to 64 (default: ${DEFAULT_GROUPS})`,
      anyNumber,
    )
    .option(
      '--leaders <where>',
      'which hosts lead groups: all of them (spread), or as few as possible (together)',
    )
    .option('--replicas <n>', 'members of each group: 1, 3, 5 or 7 (default: 3)', anyNumber)
    .option('--tree <tree>', 'base, breadth, depth, simple, or the parent of each group: -1,0,0')
    .option(
      '--hosts <n>',
      'number of processes: up to --replicas, or a multiple of it (default: --replicas)',
      anyNumber,
    )
    .option(
      '--service <file>',
      'module of the replicated service (default: none, replies are empty)',
    )
    .option(
      '--durability <mode>',
      'which messages survive a power cut: none, everySecond, or always (default: "none")',
    )
    .option('--journal <directory>', 'where the hosts keep their journals; needed for durability')
    .option(
      '--snapshot-bytes <n>',
      'bytes that a host journals between two snapshots of a group (default: 67108864)',
      anyNumber,
    )
    .option('--trace <directory>', 'write a history into this directory, for "tram check"')
    .option(
      '--clients <n>',
      'clients that may be connected at the same time (default: 16)',
      anyNumber,
    )
    .option('--payload-bytes-max <n>', 'largest payload (default: 1024)', anyNumber)
    .option('--reply-bytes-max <n>', 'largest reply (default: 1024)', anyNumber)
    .option(
      '--calls-max <n>',
      'unanswered messages that a client may have (default: 64)',
      anyNumber,
    )
    .option('--log-bytes <n>', 'size of each log (default: 131072)', anyNumber)
    .option('--inbox-bytes <n>', 'size of the inbox of each client (default: 32768)', anyNumber)
    .option(
      '--feed-bytes <n>',
      'size of the feed from a group to a child (default: 65536)',
      anyNumber,
    )
    .option('--heartbeat-ms <ms>', 'interval between heartbeats (default: 5)', anyNumber)
    .option(
      '--suspect-after-ms <ms>',
      'silence after which a leader is suspected (default: 500)',
      anyNumber,
    )
    .option(
      '--resend-after-ms <ms>',
      'silence after which a client sends again (default: 50)',
      anyNumber,
    )
    .option('--timeout-ms <ms>', 'how long the start may take', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--foreground', 'stay in the foreground and log events; Ctrl-C takes the cluster down')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: UpFlags) => {
      process.exitCode = await up(flags);
    });
}

async function up(flags: UpFlags): Promise<number> {
  const { resolveConfig } = await import('../config/config.js');
  const { NO_SALT } = await import('../protocol/layout.js');
  const { findRemains } = await import('./remains.js');
  const given = await optionsOf(flags);
  const { name = DEFAULT_NAME } = given;
  const options: ClusterOptions = { groups: DEFAULT_GROUPS, ...given, name, memory: 'processes' };
  resolveConfig(options, NO_SALT);
  const remains = await findRemains(name, given);
  const start = { options, resumes: remains !== 'nothing', flags };
  try {
    return remains === 'hosts down' ? await runUnder(start) : await runAnew(start);
  } catch (error) {
    throw start.resumes ? withWayOut(error, name) : error;
  }
}

interface Start {
  /** With a name. */
  readonly options: ClusterOptions;
  /** Does it go on with the state of a cluster that was there? */
  readonly resumes: boolean;
  readonly flags: UpFlags;
}

/** With this process as the starter, or with one that it leaves in the background. */
async function runAnew(start: Start): Promise<number> {
  const interruption = catchInterruption();
  try {
    const { signal } = interruption;
    return await (start.flags.foreground
      ? runInForeground(start, signal)
      : runInBackground(start, signal));
  } finally {
    interruption.release();
  }
}

/** Under the starter that runs. */
async function runUnder({ options, flags }: Start): Promise<number> {
  const { withCluster } = await import('./attached.js');
  const { statusOf } = await import('../hosting/status.js');
  const name = options.name!;
  if (flags.foreground) {
    throw new TramError('TRAM_EXISTS', `cluster "${name}" has a starter that runs`, {
      hint: `Start its hosts under that one: \`${commandFor({ name }, 'up')}\`.`,
    });
  }
  await startHosts(name, flags.timeoutMs);
  await withCluster({ name }, ({ context }) => report(statusOf(context), name, flags));
  resumed(name);
  return ExitCode.fine;
}

async function runInForeground(
  { options, resumes, flags }: Start,
  signal: AbortSignal,
): Promise<number> {
  const { startCluster, stay } = await import('./foreground.js');
  const name = options.name!;
  const cluster = await startCluster(options, resumes, flags.timeoutMs, signal, LOGGER);
  if (cluster === undefined) return interrupted(resumes);
  await report(cluster.status(), name, flags);
  if (resumes) resumed(name);
  await stay(cluster, name, signal);
  process.stderr.write(`cluster "${name}" is down\n`);
  return signal.reason === 'SIGINT' ? ExitCode.interrupted : ExitCode.fine;
}

async function runInBackground(
  { options, resumes, flags }: Start,
  signal: AbortSignal,
): Promise<number> {
  const { withCluster } = await import('./attached.js');
  const { statusOf } = await import('../hosting/status.js');
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { existsSync } = await import('node:fs');
  const name = options.name!;
  const starter = await forkStarter(name);
  const giveUp = (): void => void starter.kill('SIGINT');
  signal.addEventListener('abort', giveUp);
  try {
    const reported = reportOf(starter);
    const { timeoutMs } = flags;
    starter.send({ options, resumes, timeoutMs } satisfies StarterOrders);
    const outcome = await reported;
    if (outcome.what !== 'up') await untilEnded(starter);
    if (outcome.what !== 'up' && !existsSync(arenaPath(name))) removeLastLogs(name);
    if (outcome.what !== 'up' && signal.aborted) return interrupted(resumes);
    if (outcome.what === 'failed') {
      const { code, message, hint } = outcome;
      throw code === undefined ? new Error(message) : new TramError(code, message, { hint });
    }
    await withCluster({ name }, ({ context }) => report(statusOf(context), name, flags));
    if (resumes) resumed(name);
    return ExitCode.fine;
  } finally {
    signal.removeEventListener('abort', giveUp);
    if (starter.connected) starter.disconnect();
    starter.unref();
  }
}

function interrupted(resumes: boolean): number {
  const left = resumes ? 'the hosts that it started are' : 'the cluster is';
  process.stderr.write(`interrupted: ${left} down again\n`);
  return ExitCode.interrupted;
}

/** Starts the starter in a session of its own, so that it outlives this command and its terminal. */
async function forkStarter(name: string): Promise<ChildProcess> {
  const { fork } = await import('node:child_process');
  const { closeSync, constants, openSync } = await import('node:fs');
  const { join } = await import('node:path');
  const { fileURLToPath } = await import('node:url');
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const log = join(makeStateDirectory(name), 'starter.log');
  const descriptor = openSync(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    const script = fileURLToPath(new URL('./starter-process.js', import.meta.url));
    return fork(script, [arenaPath(name)], {
      detached: true,
      stdio: ['ignore', descriptor, descriptor, 'ipc'],
    });
  } finally {
    closeSync(descriptor);
  }
}

function reportOf(starter: ChildProcess): Promise<StarterReport> {
  return new Promise((resolve) => {
    starter.once('message', (message: StarterReport) => resolve(message));
    starter.once('exit', (code, signal) => {
      const message = `the process that starts the hosts has ended: ${signal ?? `exit code ${code}`}`;
      resolve({ what: 'failed', code: 'TRAM_START_FAILED', message, hint: undefined });
    });
  });
}

async function untilEnded(starter: ChildProcess): Promise<void> {
  if (starter.exitCode === null && starter.signalCode === null) await once(starter, 'exit');
}

/** The options that the user gives. Those of the command line take precedence over those of the file. */
async function optionsOf(flags: UpFlags): Promise<Partial<ClusterOptions>> {
  const { ConfigError } = await import('../config/mistakes.js');
  const { OPTION_NAMES } = await import('../config/options.js');
  const { config: file } = flags;
  const fromFile = file === undefined ? undefined : await readFile(file);
  if (fromFile?.memory === 'machines') {
    throw new ConfigError(['memory'], `${file} describes a cluster across machines`, {
      hint: `Start each host on its machine with \`tram host NAME --config ${file}\`.`,
    });
  }
  if (fromFile?.memory !== undefined && fromFile.memory !== 'processes') {
    throw new ConfigError(
      ['memory'],
      `${file} asks for memory: ${fromFile.memory}, but "tram up" starts processes: remove that line`,
    );
  }
  const given = OPTION_NAMES.filter((option) => flags[option] !== undefined);
  return { ...fromFile, ...Object.fromEntries(given.map((option) => [option, flags[option]])) };
}

async function readFile(file: string): Promise<ClusterOptions> {
  const { readConfigFile } = await import('../config/file.js');
  try {
    return await readConfigFile(file);
  } catch (error) {
    if (!(error instanceof TramError) || error.code !== 'TRAM_NOT_FOUND') throw error;
    throw new TramError('TRAM_INVALID_ARGUMENT', `--config: ${error.message}`, { cause: error });
  }
}

/** Starts the hosts that are down, with the memory that they left. The starter of the cluster supervises them again. */
async function startHosts(name: string, timeoutMs: number): Promise<void> {
  const { startHost } = await import('../hosting/start-again.js');
  const { untilLed } = await import('../hosting/oversight.js');
  const { withCluster } = await import('./attached.js');
  const deadlineMs = Date.now() + timeoutMs;
  await withCluster({ name }, async ({ path, arena, context }) => {
    const hosts = Array.from({ length: context.map.hosts }, (_, host) => host);
    const start = async (host: number): Promise<void> => {
      const target = { name, host, title: String(host), path, arena, context };
      try {
        await startHost(target, { fresh: false, timeoutMs });
      } catch (error) {
        // Another process has started it.
        if (!(error instanceof TramError) || error.code !== 'TRAM_HOST_RUNNING') throw error;
      }
    };
    await Promise.all(hosts.filter((host) => !arena.isHostLocked(host)).map(start));
    await untilLed(context, deadlineMs);
  });
}

function resumed(name: string): void {
  process.stderr.write(`resumed cluster "${name}" with the state that it left\n`);
}

/** A cluster that has left its state, but can't go on with it. */
function withWayOut(error: unknown, name: string): unknown {
  if (!(error instanceof TramError) || error.code !== 'TRAM_STATE_LOST') return error;
  const hint = `Remove what is left with \`${commandFor({ name }, 'down')}\`, then start the cluster anew.`;
  return new TramError(error.code, error.message, { hint, cause: error });
}

const LOGGER: Logger = {
  info: (message) => process.stderr.write(`${message}\n`),
  warn: (message) => process.stderr.write(`${message}\n`),
  error: (message) => process.stderr.write(`${message}\n`),
};

async function report(
  status: ClusterStatus,
  name: string,
  { json, foreground }: UpFlags,
): Promise<void> {
  const { stateDirectory } = await import('../hosting/state-directory.js');
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { statSync } = await import('node:fs');
  const memory = arenaPath(name);
  const memoryBytes = statSync(memory).size;
  const logs = stateDirectory(name);
  if (json) {
    process.stdout.write(
      `${JSON.stringify(toJson(status, { name, memory, memoryBytes, logs }))}\n`,
    );
    return;
  }
  process.stdout.write(await treeWithLeaders(status));
  const { groups, hosts } = status;
  const size = `${count(groups.length, 'group')} of ${count(groups[0].replicas.length, 'replica')}`;
  process.stderr.write(
    `\n${paint('green', 'up')}: cluster "${name}", ${size} on ${count(hosts.length, 'process', 'processes')}\n` +
      `memory  ${memory} (${Math.ceil(memoryBytes / MEBIBYTE)} MiB)\n` +
      `logs    ${logs}\n`,
  );
  if (!foreground) process.stderr.write(`\nNext:\n${nextSteps(name)}`);
}

interface Places {
  readonly name: string;
  readonly memory: string;
  readonly memoryBytes: number;
  readonly logs: string;
}

function toJson({ groups, hosts }: ClusterStatus, places: Places): unknown {
  return {
    ...places,
    groups: groups.map(({ group, parent, leader, ballot }) => ({ group, parent, leader, ballot })),
    hosts: hosts.map(({ host, pid }) => ({ host, pid })),
  };
}

async function treeWithLeaders({ groups }: ClusterStatus): Promise<string> {
  const { treeOf } = await import('./status-view.js');
  const lines = treeOf(groups.map(({ parent }) => parent));
  const width = Math.max(...lines.map(({ label }) => label.length));
  return lines
    .map(({ group, label }) => {
      const { leader, ballot } = groups[group];
      return `${label.padEnd(width)}  leader g${group}/${leader}, ballot ${ballot}\n`;
    })
    .join('');
}

function nextSteps(name: string): string {
  const steps: [string, string][] = [
    ['send --to 0 --text hello', 'multicast a message'],
    ['status --watch', 'watch the cluster'],
    ['kill g0/0', 'kill a host; another replica takes over'],
    ['down', 'end the cluster'],
  ];
  const width = Math.max(...steps.map(([words]) => commandFor({ name }, words).length));
  return steps
    .map(([words, why]) => `  ${commandFor({ name }, words).padEnd(width)}  ${why}\n`)
    .join('');
}
