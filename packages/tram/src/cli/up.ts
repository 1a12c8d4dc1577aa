/** `tram up`: starts a cluster of processes that go on after the command has ended. */
import type { Command } from 'commander';
import type { Cluster, Logger } from '../cluster.js';
import type { ClusterOptions } from '../config/options.js';
import { TramError } from '../errors.js';
import type { ClusterStatus } from '../hosting/status.js';
import {
  commandFor,
  DEFAULT_NAME,
  makeStateDirectory,
  parseName,
  removeStateDirectory,
} from './cluster-name.js';
import { count, paint } from './colors.js';
import { ExitCode } from './exit-codes.js';
import { catchInterruption, pauseUnless } from './interruption.js';
import { anyNumber, milliseconds } from './number-option.js';

interface UpFlags extends Partial<ClusterOptions> {
  readonly config?: string;
  readonly foreground?: boolean;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

const DEFAULT_GROUPS = 8;
const DEFAULT_TIMEOUT_MS = 30_000;
const LOOK_MS = 100;
const MEBIBYTE = 2 ** 20;

const HELP = `
The hosts are processes of their own, around a file of shared memory in /dev/shm. By default there
are as many as a group has replicas: host h runs member h of every group. With a multiple of that,
each runs a member of a share of the groups. With fewer, some host runs several members of each
group, and its loss may cost them their majority. What the hosts print goes to files in a state
directory, which is shown. The cluster runs until "tram down".

A configuration file holds the same options in YAML, under their names in camel case
("payloadBytesMax: 4096"); options on the command line take precedence. Without either, it is
${DEFAULT_GROUPS} groups of 3 replicas.

The service is a module that every replica loads: built JavaScript that exports
"deliver(message, context)", which returns the reply, and, if it keeps state, "snapshot()" and
"restore(snapshot)".

Examples:
  $ tram up
  $ tram up --groups 4 --tree depth --service ./bank.js --name bank
  $ tram up --config cluster.yaml --trace history

  Six processes instead of three, each with half of the groups:
    $ tram up --hosts 6

  For a service manager, or to try something: down again with Ctrl-C
    $ tram up --foreground

Exit codes:
  0    it is up: every group has a leader
  1    it could not be started; nothing is left behind
  2    an option or the configuration file is wrong
  130  interrupted; nothing is left behind
`;

export function registerUp(program: Command): void {
  program
    .command('up')
    .helpGroup('Run a cluster:')
    .summary('start a cluster of processes that goes on by itself')
    .description(
      'Starts a cluster as processes that share memory, and waits until every group has a leader.',
    )
    .option('--config <file>', 'options from a YAML file')
    .option(
      '--name <name>',
      `by which others find the cluster (default: "${DEFAULT_NAME}")`,
      parseName,
    )
    .option(
      '--groups <n>',
      `how many replica groups, 1 to 64 (default: ${DEFAULT_GROUPS})`,
      anyNumber,
    )
    .option('--replicas <n>', 'members of each group: 1, 3, 5 or 7 (default: 3)', anyNumber)
    .option('--tree <tree>', 'base, breadth, depth, simple, or the parent of each group: -1,0,0')
    .option(
      '--hosts <n>',
      'how many processes: up to the replicas (default), or a multiple of them',
      anyNumber,
    )
    .option('--service <file>', 'module of the replicated service; without one, replies are empty')
    .option('--trace <directory>', 'write a history there, for "tram check"')
    .option('--clients <n>', 'how many may be connected at one time (default: 16)', anyNumber)
    .option('--payload-bytes-max <n>', 'largest payload (default: 1024)', anyNumber)
    .option('--reply-bytes-max <n>', 'largest reply (default: 256)', anyNumber)
    .option('--calls-max <n>', 'unanswered messages of one client (default: 64)', anyNumber)
    .option('--log-bytes <n>', "each replica's log (default: 131072)", anyNumber)
    .option('--inbox-bytes <n>', 'on the way from a client to a group (default: 32768)', anyNumber)
    .option('--feed-bytes <n>', 'on the way from a group to a child (default: 65536)', anyNumber)
    .option(
      '--heartbeat-ms <ms>',
      'how often a replica shows that it is alive (default: 5)',
      anyNumber,
    )
    .option('--suspect-after-ms <ms>', 'how long a leader may be silent (default: 500)', anyNumber)
    .option(
      '--resend-after-ms <ms>',
      'how long a client waits for replies (default: 50)',
      anyNumber,
    )
    .option('--timeout-ms <ms>', 'how long the start may take', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--foreground', 'stay, tell what happens, and take it down with Ctrl-C')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: UpFlags) => {
      process.exitCode = await up(flags);
    });
}

async function up(flags: UpFlags): Promise<number> {
  const { resolveConfig } = await import('../config/config.js');
  const options = await optionsOf(flags);
  resolveConfig(options, 0);
  const name = options.name!;
  await makeWay(name);
  const interruption = catchInterruption();
  try {
    const cluster = await start(options, flags, interruption.signal);
    if (cluster === undefined) return ExitCode.interrupted;
    await report(cluster, name, flags);
    if (flags.foreground) return await stay(cluster, name, interruption.signal);
    await cluster.detach();
    return ExitCode.fine;
  } finally {
    interruption.release();
  }
}

/** From the file and, before that, from the command line. */
async function optionsOf(flags: UpFlags): Promise<ClusterOptions> {
  const { ConfigError } = await import('../config/mistakes.js');
  const { OPTION_NAMES } = await import('../config/options.js');
  const { config: file } = flags;
  const fromFile = file === undefined ? undefined : await readFile(file);
  if (fromFile?.memory === 'machines') {
    throw new ConfigError(['memory'], `${file} describes a cluster across machines`, {
      hint: `Start each of its hosts where it is to run, with \`tram host NAME --config ${file}\`.`,
    });
  }
  if (fromFile?.memory !== undefined && fromFile.memory !== 'processes') {
    throw new ConfigError(
      ['memory'],
      `${file} asks for memory: ${fromFile.memory}, but "tram up" starts processes: leave that line out`,
    );
  }
  const given = OPTION_NAMES.filter((option) => flags[option] !== undefined);
  return {
    name: DEFAULT_NAME,
    groups: DEFAULT_GROUPS,
    ...fromFile,
    ...Object.fromEntries(given.map((option) => [option, flags[option]])),
    memory: 'processes',
  };
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

/** Remove what is left of a cluster of that name. @throws TRAM_EXISTS if it is alive */
async function makeWay(name: string): Promise<void> {
  const { existsSync } = await import('node:fs');
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { withCluster } = await import('./attached.js');
  const { clearAway, requireDead, requireNoOrphans } = await import('./remains.js');
  const path = arenaPath(name);
  if (!existsSync(path)) return requireNoOrphans(name, path);
  await withCluster(name, async (cluster) => {
    requireDead(cluster);
    clearAway(cluster);
  });
  process.stderr.write(`removed what was left of cluster "${name}": all of its hosts had ended\n`);
}

/** Nothing is left behind if it fails. `undefined` if it was interrupted. */
async function start(
  options: ClusterOptions,
  flags: UpFlags,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  const { Cluster } = await import('../cluster.js');
  const name = options.name!;
  const logDirectory = makeStateDirectory(name);
  const { timeoutMs: startTimeoutMs, foreground } = flags;
  const logger = foreground ? LOGGER : undefined;
  try {
    return await Cluster.start({
      ...options,
      logDirectory,
      startTimeoutMs,
      signal,
      ...(logger && { logger }),
    });
  } catch (error) {
    const isOthers = error instanceof TramError && error.code === 'TRAM_EXISTS';
    if (!isOthers) removeStateDirectory(name);
    if (!signal.aborted) throw error;
    process.stderr.write('interrupted: the cluster was taken down again\n');
    return undefined;
  }
}

const LOGGER: Logger = {
  info: (message) => process.stderr.write(`${message}\n`),
  warn: (message) => process.stderr.write(`${message}\n`),
  error: (message) => process.stderr.write(`${message}\n`),
};

async function report(
  cluster: Cluster,
  name: string,
  { json, foreground }: UpFlags,
): Promise<void> {
  const { stateDirectory } = await import('./cluster-name.js');
  const { arenaPath } = await import('../memory/processes/arena-file.js');
  const { statSync } = await import('node:fs');
  const status = cluster.status();
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
  const size = `${count(groups.length, 'group')} of ${count(groups[0]!.replicas.length, 'replica')}`;
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
      const { leader, ballot } = groups[group]!;
      return `${label.padEnd(width)}  leader g${group}/${leader}, ballot ${ballot}\n`;
    })
    .join('');
}

function nextSteps(name: string): string {
  const steps: [string, string][] = [
    ['send --to 0 --text hello', 'multicast a message'],
    ['status --watch', 'see what happens'],
    ['kill g0/0', 'see a new leader take over'],
    ['down', 'end it'],
  ];
  const width = Math.max(...steps.map(([words]) => commandFor({ name }, words).length));
  return steps
    .map(([words, why]) => `  ${commandFor({ name }, words).padEnd(width)}  ${why}\n`)
    .join('');
}

/** Until a signal comes, or somebody takes the cluster down. */
async function stay(cluster: Cluster, name: string, signal: AbortSignal): Promise<number> {
  while (!signal.aborted && cluster.status().state !== 'closing')
    await pauseUnless(signal, LOOK_MS);
  process.stderr.write(`taking cluster "${name}" down\n`);
  await cluster.close();
  if (signal.aborted) removeStateDirectory(name);
  return signal.reason === 'SIGINT' ? ExitCode.interrupted : ExitCode.fine;
}
