/** `tram-lab bench order`: throughput and latency of ordered messages, beside the copies that they need. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import type { Configuration } from '../bench/order/order.js';
import { rate } from '../bench/text/words.js';
import { runLongBench } from './long-bench.js';

type Memory = Configuration['memory'] | 'simulated';

interface OrderFlags {
  readonly memory: readonly Memory[];
  readonly groups: readonly number[];
  readonly replicas: number;
  readonly tree: string;
  readonly hosts?: number;
  readonly leaders?: 'spread' | 'together';
  readonly destinations: readonly number[];
  readonly clients: number;
  readonly outstanding: number;
  readonly payload: number;
  readonly seconds: number;
  readonly runs: number;
  readonly against?: string;
  readonly json?: boolean;
}

const HELP = `
A message counts when all its destination groups have delivered it and the client has their replies. Throughput is
measured with all clients keeping --outstanding messages in flight, latency with one client that sends one message at
a time.

The same run measures the copy-only loop: one side for the clients and one for all leaders copy the same bytes into
the same rings, with no protocol. No multicast over these rings is faster. A ping-pong of one word, right before and
after, tells whether the two cores are near each other or far apart. On virtual machines that changes, and with it all
figures: compare only figures of the same distance, or ratios. "busy" means that another program used a core.

--memory, --groups and --destinations take lists. All combinations are measured once, then all of them again: --runs
times in all, every other time in reverse order. The table has the medians, the least and the greatest.

With --against, the build of another checkout is measured in turn with this one.

Examples:
  $ tram-lab bench order
  $ tram-lab bench order --groups 8 --destinations 1,8 --tree breadth --runs 5
  $ tram-lab bench order --memory threads,processes --groups 1,8 --runs 5 --against ../before
  $ tram-lab bench order --json | jq '.configurations[0].perCopyOnly.messagesPerSecond.median'
`;

export function registerBenchOrder(bench: Command): void {
  bench
    .command('order')
    .summary('throughput and latency of ordered messages, compared with bare copies')
    .option('--memory <kinds>', 'threads, processes, or both; or simulated', memories, ['threads'])
    .option('--groups <list>', 'replica groups', list(integer(1, 64)), [1])
    .option('--replicas <n>', 'replicas of each group', integer(1, 7), 3)
    .option('--tree <shape>', 'base, breadth, depth, or parents such as -1,0,0', 'base')
    .option('--hosts <n>', 'threads or processes that run the replicas', integer(1, 448))
    .addOption(new Option('--leaders <where>', 'which hosts lead').choices(['spread', 'together']))
    .option('--destinations <list>', 'groups that each message goes to', list(integer(1, 64)), [1])
    .option('--clients <n>', 'clients, all in one thread or process', integer(1, 1000), 1)
    .option('--outstanding <n>', 'messages that each client keeps in flight', integer(1, 4096), 256)
    .option('--payload <bytes>', 'size of a message', integer(0, 65536), 64)
    .option('--seconds <s>', 'duration of each measurement', seconds, 3)
    .option('--runs <n>', 'how many times to measure everything', integer(1, 100), 1)
    .option('--against <checkout>', 'also measure the build of this checkout, in turn')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: OrderFlags) => {
      process.exitCode = await order(flags);
    });
}

async function order(flags: OrderFlags): Promise<number> {
  const { seconds, runs, against, json } = flags;
  if (flags.memory.includes('simulated')) return simulated(json === true);
  const configurations = configurationsOf(flags);
  if (configurations.length === 0) {
    process.stderr.write('tram-lab: --destinations is more than --groups\n');
    return ExitCode.usage;
  }
  const { benchOrder } = await import('../bench/order/order.js');
  const { formatOrder } = await import('../bench/order/table.js');
  const options = { configurations, seconds, runs, ...(against !== undefined && { against }) };
  return runLongBench({
    measure: (progress, signal) => benchOrder(options, progress, signal),
    format: formatOrder,
    json,
  });
}

/** All combinations, without those that have more destinations than groups. */
function configurationsOf(flags: OrderFlags): Configuration[] {
  const { replicas, tree, hosts, leaders, clients, outstanding, payload } = flags;
  const common = {
    ...{ replicas, tree, clients, outstanding, payloadBytes: payload },
    ...(hosts !== undefined && { hosts }),
    ...(leaders !== undefined && { leaders }),
  };
  const kinds = flags.memory.filter((memory) => memory !== 'simulated');
  return kinds.flatMap((memory) =>
    flags.groups.flatMap((groups) =>
      flags.destinations
        .filter((destinations) => destinations <= groups)
        .map((destinations) => ({ ...common, memory, groups, destinations })),
    ),
  );
}

async function simulated(json: boolean): Promise<number> {
  const { measure } = await import('../sim/throughput.js');
  const result = measure(() => performance.now());
  const text = `${rate(result.messagesPerSecond)} ordered in the simulator\n${paint('dim', result.conditions)}\n`;
  process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : text);
  return ExitCode.fine;
}

/** `1,8` */
function list(parse: (text: string) => number): (text: string) => number[] {
  return (text) => [...new Set(text.split(',').map(parse))];
}

function memories(text: string): Memory[] {
  const names = [...new Set(text.split(','))];
  if (text === 'simulated') return ['simulated'];
  const kinds = names.filter((name) => name === 'threads' || name === 'processes');
  if (kinds.length === names.length) return kinds;
  throw new InvalidArgumentError(
    'Expected threads, processes, or threads,processes; or simulated.',
  );
}
