/** `tram-lab bench`: measures TRAM, and the machine itself for comparison. The larger benchmarks have files of their own. */
import { type Command, Option } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { anyNumber, integer } from 'tram-multicast/internal/cli/number-option.js';
import type { FailoverResult } from '../bench/failover.js';
import type { OrderOptions, OrderResult } from '../bench/order.js';
import { registerBenchDurable } from './bench-durable.js';
import { registerBenchMachines } from './bench-machines.js';
import { registerPaper } from './bench-paper.js';
import { registerBenchPeers } from './bench-peers.js';
import { registerBenchStrict } from './bench-strict.js';

interface OrderFlags {
  readonly memory: 'threads' | 'processes' | 'simulated';
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly hosts?: number;
  readonly destinations: number;
  readonly clients: number;
  readonly outstanding: number;
  readonly payload: number;
  readonly seconds: number;
  readonly json?: boolean;
}

interface FailoverFlags {
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly clients: number;
  readonly payload: number;
  readonly changes: number;
  readonly json?: boolean;
}

const ORDER_HELP = `
A message counts when all its destination groups have delivered it and the client has their replies. Throughput is
measured with all clients keeping --outstanding messages in flight, latency with one client that sends one message at
a time. The same run also measures a bare ring of records of the same size, one message per publish, and a bare
ping-pong of one word between two cores. The figures of a busy machine mean little: compare the ratios, and run it
twice.

Examples:
  $ tram-lab bench order
  $ tram-lab bench order --groups 8 --destinations 8 --tree breadth
  $ tram-lab bench order --memory processes --groups 8 --json | jq .messagesPerSecond
`;

const FAILOVER_HELP = `
The last experiment of the paper: all clients send to all groups, and the leaders of all groups change at once. First
the changes are requested, then the process that runs the leaders is killed. The table shows the delays of the messages
that were in flight during a change.

Example:
  $ tram-lab bench failover --changes 3
`;

export function registerBench(program: Command): void {
  const bench = program
    .command('bench')
    .helpGroup('Measure:')
    .description('Measures throughput, latency and leader changes on this machine.');
  bench
    .command('order')
    .summary('throughput and latency of ordered messages')
    .addOption(
      new Option('--memory <kind>', 'the memory of the cluster')
        .choices(['threads', 'processes', 'simulated'])
        .default('threads'),
    )
    .option('--groups <n>', 'replica groups', integer(1, 64), 1)
    .option('--replicas <n>', 'replicas of each group', integer(1, 7), 3)
    .option('--tree <shape>', 'base, breadth, depth, or parents such as -1,0,0', 'base')
    .option('--hosts <n>', 'threads or processes that run the replicas', integer(1, 448))
    .addOption(new Option('--leaders <where>', 'which hosts lead').choices(['spread', 'together']))
    .option('--destinations <n>', 'groups that each message goes to', integer(1, 64), 1)
    .option('--clients <n>', 'clients, all in one thread or process', integer(1, 1000), 1)
    .option('--outstanding <n>', 'messages that each client keeps in flight', integer(1, 4096), 256)
    .option('--payload <bytes>', 'size of a message', integer(0, 65536), 64)
    .option('--seconds <s>', 'duration of the measurement', anyNumber, 3)
    .option('--json', 'print one JSON object')
    .addHelpText('after', ORDER_HELP)
    .action(async (flags: OrderFlags) => {
      process.exitCode = await order(flags);
    });
  bench
    .command('failover')
    .summary('delays of messages during a leader change in all groups')
    .option('--groups <n>', 'replica groups', integer(1, 64), 8)
    .option('--replicas <n>', 'replicas of each group', integer(3, 7), 3)
    .option('--tree <shape>', 'base, breadth, depth, or parents such as -1,0,0', 'breadth')
    .option('--clients <n>', 'clients, each with one message in flight', integer(1, 1000), 100)
    .option('--payload <bytes>', 'size of a message', integer(0, 1024), 64)
    .option('--changes <n>', 'leader changes of each kind', integer(1, 100), 3)
    .option('--json', 'print one JSON object')
    .addHelpText('after', FAILOVER_HELP)
    .action(async (flags: FailoverFlags) => {
      process.exitCode = await failover(flags);
    });
  registerPaper(bench);
  registerBenchPeers(bench);
  registerBenchMachines(bench);
  registerBenchStrict(bench);
  registerBenchDurable(bench);
}

async function order(flags: OrderFlags): Promise<number> {
  const { memory, payload, ...rest } = flags;
  if (flags.destinations > flags.groups) {
    process.stderr.write(
      `tram-lab: --destinations ${flags.destinations} is more than --groups ${flags.groups}\n`,
    );
    return ExitCode.usage;
  }
  if (memory === 'simulated') return simulated(flags.json === true);
  const { benchOrder } = await import('../bench/order.js');
  const options: OrderOptions = { ...rest, memory, payloadBytes: payload };
  const result = await benchOrder(options, showStep);
  process.stdout.write(flags.json ? `${JSON.stringify(result, null, 2)}\n` : formatOrder(result));
  return ExitCode.fine;
}

async function simulated(json: boolean): Promise<number> {
  const { measure } = await import('../sim/throughput.js');
  showStep('the simulator, with its own fixed workload');
  const result = measure(() => performance.now());
  const text = `${rate(result.messagesPerSecond)} ordered in the simulator\n${paint('dim', result.conditions)}\n`;
  process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : text);
  return ExitCode.fine;
}

async function failover(flags: FailoverFlags): Promise<number> {
  const { benchFailover } = await import('../bench/failover.js');
  const { payload, json, ...rest } = flags;
  const result = await benchFailover({ ...rest, payloadBytes: payload }, showStep);
  process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : formatFailover(result));
  return ExitCode.fine;
}

function showStep(step: string): void {
  process.stderr.write(`${paint('dim', `… ${step}`)}\n`);
}

function formatOrder(result: OrderResult): string {
  const { options, machine, loaded, alone, ring, pingPong } = result;
  const { groups, replicas, tree, destinations, clients, outstanding, payloadBytes } = options;
  const rows = [
    [
      'throughput',
      rate(result.messagesPerSecond),
      `1/${result.ringsPerMessage.toFixed(1)} of the bare ring`,
    ],
    [
      '  latency under load, p50 / p99',
      `${micros(loaded.latencyNsP50)} / ${micros(loaded.latencyNsP99)}`,
      '',
    ],
    [
      'latency, one at a time, p50',
      micros(alone.latencyNsP50),
      `${result.pingPongsPerMessage.toFixed(1)} ping-pongs`,
    ],
    [
      '  p90 / p99 / p99.9',
      `${micros(alone.latencyNsP90)} / ${micros(alone.latencyNsP99)} / ${micros(alone.latencyNsP999)}`,
      '',
    ],
    ['cores used under load', result.coresUsed.toFixed(2), `of ${machine.cores}`],
    [
      `bare ring, ${ring.recordBytes} B records`,
      rate(ring.messagesPerSecond),
      `${rate(ring.batchedMessagesPerSecond)} in batches of 32`,
    ],
    ['bare ping-pong, p50', micros(pingPong.roundTripNsP50), ''],
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  const lines = rows.map(
    ([label, value, note]) =>
      `  ${label.padEnd(width)}  ${paint('bold', value)}  ${paint('dim', note)}`,
  );
  const title =
    `${options.memory}: ${groups} group${groups === 1 ? '' : 's'} of ${replicas} on ${options.hosts ?? 'the default number of'} hosts, ${tree} tree, ` +
    `${payloadBytes} B to ${destinations}, ${clients} × ${outstanding} in flight`;
  return `${title}\n${lines.map((line) => line.trimEnd()).join('\n')}\n${paint('dim', `${machine.model}, Node ${machine.node}`)}\n`;
}

function formatFailover({ options, causes }: FailoverResult): string {
  const { groups, replicas, clients, tree } = options;
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
  const title = `processes: ${groups} groups of ${replicas}, ${tree} tree, ${clients} clients sending to all groups`;
  return `${title}\n\n${blocks.join('\n\n')}\n`;
}

function rate(perSecond: number): string {
  return perSecond >= 1e6
    ? `${(perSecond / 1e6).toFixed(2)} M/s`
    : `${(perSecond / 1e3).toFixed(0)} k/s`;
}

function micros(ns: number): string {
  return ns >= 1e6 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1000).toFixed(2)} µs`;
}
