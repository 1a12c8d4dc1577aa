/** `tram status`: shows the state of a cluster, once or repeatedly. */
import type { Command } from 'commander';
import type { Seen } from './attached.js';
import { configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { integer } from './number-option.js';

interface StatusFlags extends Which {
  readonly watch?: boolean;
  readonly intervalMs: number;
  readonly json?: boolean;
}

/** Without --watch, rates are measured for so long. Clients of a cluster across machines report once a second. */
const GLANCE_MS = 200;
const LONG_GLANCE_MS = 1000;
const DEFAULT_INTERVAL_MS = 1000;
const DEFAULT_COLUMNS = 80;

const HELP = `
For each replica the command shows how many log entries it has delivered or relayed. * marks the
leader; ×2 is a replica in its second incarnation. The ballot grows with every change of leader.
msg/s is the rate at which a group delivers. Latencies are those of all clients, from sending a
message until its last destination has replied: since the start or, with --watch, in the last
interval. docs/operating.md explains the states, and what to do about problems.

The command reads the memory of the cluster and does not slow the replicas down. Across machines it
reads copies from the hosts that it can reach, and names those that it can't reach.

Examples:
  $ tram status
  $ tram status --watch --interval-ms 500
  $ tram status --config cluster.yaml

  Who leads group 4?
    $ tram status --json | jq '.groups[4].leader'

  One line per second for a log:
    $ tram status --watch --json | jq -c '[.answeredPerSecond, .latencyNsP99]'

Exit codes:
  0    the state was shown, whatever it is; with --watch, the cluster was taken down
  1    there is no such cluster, or none of its hosts can be reached
  130  interrupted
`;

export function registerStatus(program: Command): void {
  program
    .command('status')
    .helpGroup('Run a cluster:')
    .summary('show the tree, leaders, replicas, rates and latencies')
    .description(
      'Shows a running cluster: its tree, leaders, replicas, hosts, rates and latencies.',
    )
    .addOption(nameOption())
    .addOption(configOption())
    .option('--watch', 'redraw until Ctrl-C')
    .option(
      '--interval-ms <ms>',
      'interval of --watch',
      integer(50, 3_600_000),
      DEFAULT_INTERVAL_MS,
    )
    .option('--json', 'print one JSON object; with --watch, one per line')
    .addHelpText('after', HELP)
    .action(async (flags: StatusFlags) => {
      const { withSeen } = await import('./attached.js');
      process.exitCode = await withSeen(flags, (cluster) =>
        flags.watch ? watch(cluster, flags) : glance(cluster, flags),
      );
    });
}

async function glance(cluster: Seen, flags: StatusFlags): Promise<number> {
  const { ratesBetween, read } = await import('../hosting/reading.js');
  const { formatStatus, toJson } = await import('./status-view.js');
  const glanceMs = cluster.path === undefined ? LONG_GLANCE_MS : GLANCE_MS;
  const before = read(cluster.context);
  await new Promise((resolve) => setTimeout(resolve, glanceMs));
  const reading = read(cluster.context);
  const rates = ratesBetween(before, reading);
  const { latency } = reading;
  if (flags.json) {
    process.stdout.write(`${JSON.stringify(toJson(cluster, reading, rates, latency), null, 2)}\n`);
  } else {
    const columns = process.stdout.columns ?? DEFAULT_COLUMNS;
    const view = { cluster, reading, rates, latency, latencyOf: 'since the start', columns };
    process.stdout.write(formatStatus(view));
  }
  return ExitCode.fine;
}

async function watch(cluster: Seen, flags: StatusFlags): Promise<number> {
  const { ratesBetween, read } = await import('../hosting/reading.js');
  const { formatStatus, toJson } = await import('./status-view.js');
  const { catchInterruption, pauseUnless } = await import('./interruption.js');
  const { signal, release } = catchInterruption();
  const draw = redrawer();
  let before = read(cluster.context);
  for (let intervalMs = GLANCE_MS; ; intervalMs = flags.intervalMs) {
    await pauseUnless(signal, intervalMs);
    if (signal.aborted) break;
    const reading = read(cluster.context);
    const rates = ratesBetween(before, reading);
    before = reading;
    if (flags.json) {
      process.stdout.write(`${JSON.stringify(toJson(cluster, reading, rates, rates.latency))}\n`);
    } else {
      const columns = process.stdout.columns ?? DEFAULT_COLUMNS;
      const latencyOf = 'in this interval';
      draw(formatStatus({ cluster, reading, rates, latency: rates.latency, latencyOf, columns }));
    }
    if (reading.status.state === 'closing') {
      process.stderr.write(`cluster "${cluster.name}" is being taken down\n`);
      break;
    }
  }
  release();
  return signal.aborted ? ExitCode.interrupted : ExitCode.fine;
}

/** Draws on a terminal over what was drawn before, elsewhere below it. */
function redrawer(): (text: string) => void {
  let linesBefore = 0;
  return (text) => {
    const { stdout } = process;
    const lines = text.split('\n').length - 1;
    if (!stdout.isTTY) {
      stdout.write(linesBefore === 0 ? text : `\n${text}`);
    } else if (lines >= stdout.rows) {
      // The cursor can't go back beyond the first line of the screen.
      stdout.write(`\u001b[2J\u001b[H${text}`);
    } else {
      stdout.write(linesBefore === 0 ? text : `\u001b[${linesBefore}F\u001b[J${text}`);
    }
    linesBefore = lines;
  };
}
