/** `tram host`: runs one host of a cluster across machines, until a signal ends it. */
import type { Server } from 'node:http';
import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import type { Logger } from 'pino';
import type { Endpoint } from '../config/addresses.js';
import { usefulThreads } from '../config/threads.js';
import { TramError } from '../errors.js';
import type { HostReport } from '../hosting/host.js';
import type { MachineHosts } from '../hosting/machines/machine-hosts.js';
import type { HostRequest } from '../hosting/machines/requests.js';
import { ExitCode } from './exit-codes.js';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

interface HostFlags {
  readonly config: string;
  readonly respawn?: boolean;
  readonly logLevel: (typeof LEVELS)[number];
}

const HELP = `
All machines have the same configuration file. It names the hosts, and the file with the secret of
the cluster. Create the secret once with "tram secret", and copy it to all machines.

Start the hosts in any order. At its first start a host waits for all others, and logs for which
ones. After that, a group works whenever a majority of its replicas is up.

SIGTERM and Ctrl-C stop the host in an orderly way: other replicas take over where it leads, and its
replicas leave their state in /dev/shm. The next start resumes with this state and with the memory
of the host. A host that was killed has left only the memory. After a reboot the memory is gone, and
the host recovers from the other members of its groups.

With a journal (durability: always or everySecond), all machines may lose their memory. The hosts
then wait for each other, log for which ones, and recover the cluster from their journals.

The host logs one JSON object per line to stdout (pino). If another host can't be reached, or has
another secret or configuration, it logs that and keeps trying. If the configuration has an "http"
port for the host, it serves /healthz, /readyz and /metrics there.

With "threads: N" in the configuration, this process runs N hosts, one on each of N threads. They use
N ports, of which "port" is the first. If one of them fails, the whole process ends.

Commands on other machines can ask the host to end (tram kill, tram down --all) or to restart (tram
restart). To restart, it ends with exit code 5, so that its service manager starts it again (systemd:
Restart=on-failure). With --respawn it starts its successor itself, in the background.

Examples:
  On each machine, with the name of its host:
    $ tram host alpha --config cluster.yaml

  From any machine that has the configuration and the secret:
    $ tram status --config cluster.yaml
    $ tram send --config cluster.yaml --to 1,4 --text hello

Exit codes:
  0    a signal or another machine ended the host
  1    the host can't start: the port is in use, a file or libfabric is missing, other users can
       read the secret, the service can't be loaded, or the host is running already
  2    there is no such host, or the configuration is wrong
  5    another machine asked the host to restart; its service manager is to start it again
`;

export function registerHost(program: Command): void {
  program
    .command('host')
    .helpGroup('Run a cluster across machines:')
    .summary('run one host of a cluster across machines')
    .description(
      'Runs one host of a cluster across machines (memory: machines), in the foreground.',
    )
    .argument('<name>', 'the name of the host in the configuration')
    .option('--config <file>', 'the configuration file of the cluster', 'cluster.yaml')
    .option('--respawn', 'start a successor when asked to restart, instead of exiting with code 5')
    .addOption(
      new Option('--log-level <level>', 'the lowest level that is logged')
        .choices(LEVELS)
        .default('info'),
    )
    .addHelpText('after', HELP)
    .action(async (name: string, flags: HostFlags) => {
      process.exitCode = await runHost(name, flags);
    });
}

async function runHost(name: string, flags: HostFlags): Promise<number> {
  const { config: path, logLevel, respawn = false } = flags;
  const { pino } = await import('pino');
  const { readClusterFile } = await import('../hosting/machines/cluster-file.js');
  const { catchInterruption } = await import('./interruption.js');
  const { signal, release } = catchInterruption();
  const { config, credentials } = await readClusterFile(path);
  const logger = pino({ level: logLevel, base: { host: name } });
  const { machines, threads } = config;
  const loggerOf = (host: number): Logger =>
    threads === 1 ? logger : logger.child({ thread: host % threads });
  const { openHosts } = await import('../hosting/machines/machine-hosts.js');
  let request: HostRequest | undefined;
  try {
    const hosts = await openHosts({
      config,
      credentials,
      machine: name,
      logOf: (host) => (level, text) => loggerOf(host)[level](text),
      reportOf: (host) => reporter(loggerOf(host)),
    });
    const cores = availableParallelism();
    const useful = usefulThreads(config, name, cores);
    if (threads < useful) {
      logger.info(
        `runs on ${threads} of ${cores} cores. It leads enough groups for "threads: ${useful}" in the configuration`,
      );
    }
    const http = machines.find(({ machine }) => machine === name)?.http;
    request = await runHosts(hosts, http, logger, signal);
  } catch (error) {
    // A bug: its stack helps to find it.
    if (!(error instanceof TramError)) logger.fatal(error);
    throw error;
  } finally {
    release();
  }
  logger.info(
    `ends: it was asked to by ${request === undefined ? signal.reason : 'another machine'}`,
  );
  if (request !== 'restart' && request !== 'restart-fresh') return ExitCode.fine;
  if (!respawn) return ExitCode.restart;
  await startSuccessor();
  return ExitCode.fine;
}

/** @returns what another machine has asked for, if that is why the hosts have ended */
async function runHosts(
  hosts: MachineHosts,
  http: Endpoint | undefined,
  logger: Logger,
  signal: AbortSignal,
): Promise<HostRequest | undefined> {
  const stop = (): void => hosts.stop();
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  let health: Server | undefined;
  try {
    health = http && (await serve(hosts, http, logger));
  } catch (error) {
    stop();
    await hosts.run();
    throw error;
  }
  try {
    return await hosts.run();
  } finally {
    signal.removeEventListener('abort', stop);
    health?.close();
    health?.closeAllConnections();
  }
}

/** Runs the same command again, in a session of its own. */
async function startSuccessor(): Promise<void> {
  const { spawn } = await import('node:child_process');
  const [command, ...args] = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  spawn(command, args, { detached: true, stdio: 'inherit' }).unref();
}

function reporter(logger: Logger): (report: HostReport) => void {
  return (report) => {
    if (report.what === 'ready') {
      logger.info('runs its replicas');
      return;
    }
    if (report.what === 'progress') {
      logger.info(report.text);
      return;
    }
    if (report.what === 'trouble') {
      logger.error(report.text);
      return;
    }
    const { group, member, ballot } = report;
    const text = `g${group}/${member} leads its group under ballot ${ballot}`;
    logger.info({ group, member, ballot }, text);
  };
}

async function serve(hosts: MachineHosts, http: Endpoint, logger: Logger): Promise<Server> {
  const { serveHealth } = await import('../hosting/machines/health.js');
  const server = await serveHealth(http, () => hosts.look());
  logger.info(`serves /metrics, /healthz and /readyz at http://${http.address}:${http.port}`);
  return server;
}
