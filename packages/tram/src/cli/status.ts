/** `tram status`: what a running cluster looks like from outside, once or again and again. */
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

/** Without --watch, rates are taken over so long: across machines clients tell what they measure once a second. */
const GLANCE_MS = 200;
const LONG_GLANCE_MS = 1000;
const DEFAULT_INTERVAL_MS = 1000;
const DEFAULT_COLUMNS = 80;

const HELP = `
It reads the cluster's memory: the replicas are not asked and not slowed down. Across machines it
reads what it can reach, and says which hosts it can't. Of each replica it shows how many log
entries it has delivered or relayed; * leads, ×2 is in its second life. msg/s is what a group
delivers. Latencies are those of all clients, from sending until the last destination has replied:
since the start, or with --watch those of the last interval.

Examples:
  $ tram status
  $ tram status --watch --interval-ms 500
  $ tram status --config cluster.yaml

  Who leads group 4?
    $ tram status --json | jq '.groups[4].leader'

  One line a second for a log:
    $ tram status --watch --json | jq -c '[.answeredPerSecond, .latencyNsP99]'

Exit codes:
  0    fine, whatever state the cluster is in; with --watch, the cluster has been taken down
  1    there is no such cluster, or none of its hosts can be reached
  130  interrupted
`;

export function registerStatus(program: Command): void {
  program
    .command('status')
    .helpGroup('Run a cluster:')
    .summary('show the tree, who leads, how far and how fast everybody is')
    .description(
      'Shows a running cluster: its tree, leaders, replicas, hosts, rates and latencies.',
    )
    .addOption(nameOption())
    .addOption(configOption())
    .option('--watch', 'go on and redraw, until Ctrl-C')
    .option(
      '--interval-ms <ms>',
      'how often, with --watch',
      integer(50, 3_600_000),
      DEFAULT_INTERVAL_MS,
    )
    .option('--json', 'print one JSON object; with --watch, one a line')
    .addHelpText('after', HELP)
    .action(async (flags: StatusFlags) => {
      const { withSeen } = await import('./attached.js');
      process.exitCode = await withSeen(flags, (cluster) =>
        flags.watch ? watch(cluster, flags) : glance(cluster, flags),
      );
    });
}

async function glance(cluster: Seen, flags: StatusFlags): Promise<number> {
  const { formatStatus, ratesBetween, read, toJson } = await import('./status-view.js');
  const glanceMs = cluster.config === undefined ? GLANCE_MS : LONG_GLANCE_MS;
  const before = read(cluster);
  await new Promise((resolve) => setTimeout(resolve, glanceMs));
  const reading = read(cluster);
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
  const { formatStatus, ratesBetween, read, toJson } = await import('./status-view.js');
  const { catchInterruption, pauseUnless } = await import('./interruption.js');
  const { signal, release } = catchInterruption();
  const draw = redrawer();
  let before = read(cluster);
  for (let intervalMs = GLANCE_MS; ; intervalMs = flags.intervalMs) {
    await pauseUnless(signal, intervalMs);
    if (signal.aborted) break;
    const reading = read(cluster);
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
      process.stderr.write(`the cluster ${cluster.name} is being taken down\n`);
      break;
    }
  }
  release();
  return signal.aborted ? ExitCode.interrupted : ExitCode.fine;
}

/** On a terminal, over what was drawn before; else below it. */
function redrawer(): (text: string) => void {
  let linesBefore = 0;
  return (text) => {
    const { stdout } = process;
    const lines = text.split('\n').length - 1;
    if (!stdout.isTTY) {
      stdout.write(linesBefore === 0 ? text : `\n${text}`);
    } else if (lines >= stdout.rows) {
      // Too tall to go back to its beginning.
      stdout.write(`\u001b[2J\u001b[H${text}`);
    } else {
      stdout.write(linesBefore === 0 ? text : `\u001b[${linesBefore}F\u001b[J${text}`);
    }
    linesBefore = lines;
  };
}
