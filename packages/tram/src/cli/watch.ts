/** `tram watch`: serves the page that shows a running cluster in a browser. */
import type { Command } from 'commander';
import type { MachinesAttachment, ProcessesAttachment } from '../hosting/attachment.js';
import { PAGE_DEFAULTS } from '../page/page-options.js';
import type { Seen } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { integer } from './number-option.js';

interface WatchFlags extends Which {
  readonly port: number;
  readonly address: string;
  readonly control?: boolean;
  readonly json?: boolean;
}

/** How often the command looks whether the cluster is being taken down. */
const LOOK_MS = 200;

const HELP = `
The page shows the tree of groups, leaders, replicas, hosts, rates, latencies and events. The
command prints its address, and serves it until Ctrl-C or until the cluster is taken down. It only
reads the memory of the cluster, as "tram status" does.

By default, only programs of this machine can open the page, and the page can't change the cluster.

--control lets the page crash hosts, restart them and choose leaders. --address serves the page at
another address of this machine. In both cases the printed address ends with a token, which
permits to use the page: treat it as a password. Each run has a new token. The connection is not
encrypted: on a network that you do not trust, use an SSH tunnel to 127.0.0.1 instead.

Examples:
  $ tram watch
  $ tram watch --config cluster.yaml --port 0
  $ tram watch --control

  From another machine, by an SSH tunnel:
    $ ssh -L 7420:127.0.0.1:7420 server tram watch

Exit codes:
  0    the cluster was taken down
  1    there is no such cluster, none of its hosts can be reached, or the port is in use
  130  interrupted
`;

export function registerWatch(program: Command): void {
  const { port, address } = PAGE_DEFAULTS;
  program
    .command('watch')
    .helpGroup('Run a cluster:')
    .summary('show the cluster in a browser')
    .description('Serves a page that shows a running cluster, and prints its address.')
    .addOption(nameOption())
    .addOption(configOption())
    .option(
      '--port <port>',
      'the port of the page; 0 for any that is free',
      integer(0, 65_535),
      port,
    )
    .option(
      '--address <address>',
      'the address of this machine at which the page is served',
      address,
    )
    .option('--control', 'let the page crash and restart hosts, and choose leaders')
    .option('--json', 'print the address as a JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: WatchFlags) => {
      process.exitCode = await watch(flags);
    });
}

async function watch(flags: WatchFlags): Promise<number> {
  const { attachByName, locate } = await import('./attached.js');
  const { attachToMachines } = await import('../hosting/attachment.js');
  const location = await locate(flags);
  const attachment =
    location.memory === 'machines'
      ? await attachToMachines(location.config)
      : attachByName({ ...flags, name: location.name });
  try {
    return await serve(attachment, seenBy(attachment, flags), flags);
  } finally {
    await attachment.close();
  }
}

/** For the advice, which names commands. */
function seenBy(
  attachment: ProcessesAttachment | MachinesAttachment,
  { name, config }: WatchFlags,
): Seen {
  const { context } = attachment;
  const path = attachment.memory === 'processes' ? { path: attachment.arena.path } : {};
  const shownName = config === undefined ? name : (context.config.name ?? 'cluster');
  return { name: shownName, config, context, ...path, follow: async () => undefined };
}

async function serve(
  attachment: ProcessesAttachment | MachinesAttachment,
  cluster: Seen,
  flags: WatchFlags,
): Promise<number> {
  const { PageServer } = await import('../page/server.js');
  const { controlOf, INTERVAL_MS } = await import('../page/own-page.js');
  const { AttachedHosts } = await import('../hosting/attached-hosts.js');
  const { SILENT } = await import('../hosting/own-hosts.js');
  const { troublesOf } = await import('./status-view.js');
  const { catchInterruption, pauseUnless } = await import('./interruption.js');
  const { name, context } = cluster;
  const hosts = new AttachedHosts(attachment, SILENT);
  const control = controlOf(context, {
    crash: (host) => hosts.crash(host),
    restart: async (host) => void (await hosts.restart(host, {})),
  });
  const page = await PageServer.open({
    source: { name, context, troublesOf: (reading) => troublesOf(cluster, reading) },
    address: flags.address,
    port: flags.port,
    intervalMs: INTERVAL_MS,
    control: flags.control ? control : undefined,
  });
  const { signal, release } = catchInterruption();
  tell(page.url, cluster, flags);
  while (!signal.aborted && page.state !== 'closing') await pauseUnless(signal, LOOK_MS);
  if (!signal.aborted) process.stderr.write(`cluster "${name}" is being taken down\n`);
  await page.close();
  release();
  return signal.aborted ? ExitCode.interrupted : ExitCode.fine;
}

function tell(url: string, cluster: Seen, { json, control }: WatchFlags): void {
  if (json) {
    process.stdout.write(`${JSON.stringify({ url })}\n`);
    return;
  }
  process.stdout.write(`${url}\n`);
  const what = control ? 'shows and controls' : 'shows';
  process.stderr.write(
    `the page ${what} cluster "${cluster.name}" until Ctrl-C; in a terminal: ${commandFor(cluster, 'status --watch')}\n`,
  );
}
