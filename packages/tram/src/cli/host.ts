/** `tram host`: runs one machine's share of a cluster across machines, until it is told to end. */
import type { Server } from 'node:http';
import { type Command, Option } from 'commander';
import type { Logger } from 'pino';
import { TramError } from '../errors.js';
import type { HostReport } from '../hosting/host.js';
import type { Machine } from '../hosting/machines/machine.js';
import { ExitCode } from './exit-codes.js';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

interface HostFlags {
  readonly config: string;
  readonly logLevel: (typeof LEVELS)[number];
}

const HELP = `
The configuration is the same file on all machines; it names the hosts, and the file with the
cluster's secret, which must be beside it (make one with \`tram secret\`, and copy it). Hosts can be
started in any order. The first time, a host waits for all others and says for whom; after that any
majority of each group goes on without the rest.

A host that is started again takes up the memory that it left behind in /dev/shm. After a reboot
that is gone: then it recovers from the other members of its groups.

It logs one JSON object a line to stdout (pino): also if another host has another secret or
configuration, or can't be reached; it goes on trying. If the configuration gives it an \`http\`
port it serves /healthz, /readyz and /metrics there. SIGTERM and Ctrl-C end it; the others take
over.

Examples:
  On each of three machines, with its name:
    $ tram host alpha --config cluster.yaml

  From any machine that has the configuration and the secret:
    $ tram status --config cluster.yaml
    $ tram send --config cluster.yaml --to 1,4 --text hello

Exit codes:
  0    it was told to end
  1    it can't start: the port is in use, a file or libfabric is missing, the secret is open to
       others, the service can't be loaded, or it runs already
  2    there is no such host, or the configuration is wrong
`;

export function registerHost(program: Command): void {
  program
    .command('host')
    .helpGroup('Run a cluster across machines:')
    .summary("run one machine's share of a cluster")
    .description("Runs one machine's share of a cluster across machines (memory: machines).")
    .argument('<name>', 'which of the hosts of the configuration this is')
    .option('--config <file>', 'the configuration of the cluster', 'cluster.yaml')
    .addOption(new Option('--log-level <level>', 'what to log').choices(LEVELS).default('info'))
    .addHelpText('after', HELP)
    .action(async (name: string, flags: HostFlags) => {
      process.exitCode = await runHost(name, flags);
    });
}

async function runHost(name: string, { config: path, logLevel }: HostFlags): Promise<number> {
  const { pino } = await import('pino');
  const { readClusterFile } = await import('../hosting/machines/cluster-file.js');
  const { Machine } = await import('../hosting/machines/machine.js');
  const { catchInterruption } = await import('./interruption.js');
  const { signal, release } = catchInterruption();
  const { config, credentials } = await readClusterFile(path);
  const logger = pino({ level: logLevel, base: { host: name } });
  const machine = Machine.open({
    config,
    credentials,
    name,
    log: (level, text) => logger[level](text),
    report: await reporter(logger),
  });
  signal.addEventListener('abort', () => machine.stop());
  if (signal.aborted) machine.stop();
  let health: Server | undefined;
  try {
    logger.info(`listens at ${machine.address}`);
    health = await serve(machine, logger);
    await machine.start();
    await machine.run();
  } catch (error) {
    // A bug: whoever looks for it needs more than its message.
    if (!(error instanceof TramError)) logger.fatal(error);
    throw error;
  } finally {
    health?.close();
    health?.closeAllConnections();
    machine.close();
    release();
  }
  logger.info(`ends: it was asked to by ${signal.reason}`);
  return ExitCode.fine;
}

async function reporter(logger: Logger): Promise<(report: HostReport) => void> {
  const { rateLimited } = await import('../hosting/rate-limit.js');
  const logFailure = rateLimited((text) => logger.error(text));
  return (report) => {
    if (report.what === 'ready') {
      logger.info('runs its replicas');
      return;
    }
    const { group, member } = report;
    const replica = `g${group}/${member}`;
    if (report.what === 'service-failed') {
      logFailure(`the service threw at ${replica}: ${report.error}`);
      return;
    }
    const { ballot } = report;
    logger.info({ group, member, ballot }, `${replica} leads its group under ballot ${ballot}`);
  };
}

async function serve(machine: Machine, logger: Logger): Promise<Server | undefined> {
  const { http, context, host } = machine;
  if (http === undefined) return undefined;
  const { serveHealth } = await import('../hosting/machines/health.js');
  const server = await serveHealth({ context, host, ...http });
  logger.info(`serves /metrics, /healthz and /readyz at http://${http.address}:${http.port}`);
  return server;
}
