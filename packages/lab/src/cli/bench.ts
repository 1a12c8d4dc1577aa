/** `tram-lab bench`: measures TRAM, and the machine itself for comparison. The larger benchmarks have files of their own. */
import { type Command, Option } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer } from 'tram-multicast/internal/cli/number-option.js';
import type { FailoverResult } from '../bench/failover.js';
import { registerBenchDurable } from './bench-durable.js';
import { registerBenchMachines } from './bench-machines.js';
import { registerBenchOrder } from './bench-order.js';
import { registerPaper } from './bench-paper.js';
import { registerBenchPeers } from './bench-peers.js';
import { registerBenchStore } from './bench-store.js';
import { registerBenchStrict } from './bench-strict.js';

interface FailoverFlags {
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly clients?: number;
  readonly payload: number;
  readonly changes: number;
  readonly memory: 'processes' | 'machines';
  readonly json?: boolean;
}

/** Each client of a cluster on machines has connections of its own. */
const CLIENTS = { processes: 100, machines: 1 };

const FAILOVER_HELP = `
The last experiment of the paper: all clients send to all groups, and the leaders of all groups change at once. The
benchmark first requests such changes, then kills the process that runs all leaders. The table shows the delays of the
messages that were in flight during a change.

With --memory machines, the hosts reach each other over the loopback, and one client has 16 messages in flight.

Examples:
  $ tram-lab bench failover --changes 3
  $ tram-lab bench failover --memory machines
`;

export function registerBench(program: Command): void {
  const bench = program
    .command('bench')
    .helpGroup('Measure:')
    .description('Measures throughput, latency and leader changes on this machine.');
  registerBenchOrder(bench);
  bench
    .command('failover')
    .summary('delays of messages during a leader change in all groups')
    .description('Measures how a leader change in all groups delays messages.')
    .option('--groups <n>', 'replica groups', integer(1, 64), 8)
    .option('--replicas <n>', 'replicas of each group', integer(3, 7), 3)
    .option('--tree <shape>', 'base, breadth, depth, or parents such as -1,0,0', 'breadth')
    .addOption(
      new Option('--memory <kind>', 'how hosts reach each other')
        .choices(['processes', 'machines'])
        .default('processes'),
    )
    .option(
      '--clients <n>',
      'clients (default: 100 with one message in flight each; with --memory machines 1 with 16)',
      integer(1, 1000),
    )
    .option('--payload <bytes>', 'size of a message', integer(0, 1024), 64)
    .option('--changes <n>', 'leader changes of each kind', integer(1, 100), 3)
    .option('--json', 'print one JSON object')
    .addHelpText('after', FAILOVER_HELP)
    .action(async (flags: FailoverFlags) => {
      process.exitCode = await failover(flags);
    });
  registerPaper(bench);
  registerBenchPeers(bench);
  registerBenchStore(bench);
  registerBenchMachines(bench);
  registerBenchStrict(bench);
  registerBenchDurable(bench);
}

async function failover(flags: FailoverFlags): Promise<number> {
  const { benchFailover } = await import('../bench/failover.js');
  const { payload, json, clients = CLIENTS[flags.memory], ...rest } = flags;
  const result = await benchFailover({ ...rest, clients, payloadBytes: payload }, showStep);
  process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : formatFailover(result));
  return ExitCode.fine;
}

function showStep(step: string): void {
  process.stderr.write(`${paint('dim', `… ${step}`)}\n`);
}

function formatFailover({ options, causes }: FailoverResult): string {
  const { memory = 'processes', groups, replicas, clients, tree } = options;
  const head = ['', 'delayed', 'mean', 'deviation', 'min', 'max'];
  const blocks = causes.map(({ cause, changes, total, usualMsP50 }) => {
    const name = cause === 'kill' ? 'SIGKILL of the leaders' : 'requested change';
    const body = [...changes, total].map((report, i) => [
      i < changes.length ? `  #${i + 1}` : '  all',
      String(report.messages),
      ...[report.meanMs, report.deviationMs, report.minMs, report.maxMs].map((ms) => ms.toFixed(2)),
    ]);
    const table = [head, ...body].map(
      ([first, ...cells]) => `${first.padEnd(6)}${cells.map((cell) => cell.padStart(11)).join('')}`,
    );
    return `${paint('bold', name)} (ms; the median without changes is ${usualMsP50.toFixed(2)})\n${table.join('\n')}`;
  });
  const load = clients === 1 ? '1 client' : `${clients} clients`;
  const title = `${memory}: ${groups} groups of ${replicas}, ${tree} tree, ${load} sending to all groups`;
  return `${title}\n\n${blocks.join('\n\n')}\n`;
}
