/** `tram-lab bench durable`: what durability costs, and how long recovery takes. */
import { type Command, Option } from 'commander';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import { type DurableMemory, LOAD_NAMES, type LoadName } from '../bench/durable/setting.js';
import { runLongBench } from './long-bench.js';

interface DurableFlags {
  readonly memory: DurableMemory;
  readonly only?: LoadName;
  readonly rounds: number;
  readonly seconds: number;
  readonly folder?: string;
  readonly recovery?: boolean;
  readonly messages: number;
  readonly megabytes: number;
  readonly json?: boolean;
}

const HELP = `
The benchmark starts three clusters of eight groups of three on the base tree, one for each durability: none,
everySecond and always. It measures them in turn, every other round in reverse order, and beside them a bare loop of
write and fdatasync on the same disk. A client sends messages of 64 B

  one  to one group, in rotation
  all  to all eight groups
  mix  nine messages to one group, then one to two

once with one message at a time (the median latency until all destinations have replied), and once with 1,024 messages
in flight (throughput). The bare loop writes as many bytes for a sync as the journals do on average: with one message at
a time by one writer, with 1,024 by as many writers as there are hosts, each with a file of its own.

All files are in a temporary folder on a disk (--folder); a file system in memory is refused. Other programs that use the
disk disturb the figures: compare the ratios, and run the benchmark twice. With three rounds it takes two minutes.

With --recovery, it journals messages, ends the cluster, and measures how long the next start takes:

  - after --messages messages, with snapshots and 1 KB of state in each group
  - after --megabytes of journal at each host, without snapshots

Beside it, it measures the start with an empty journal, a bare loop that reads the same files, and one that delivers as many
messages to the service.

Examples:
  $ tram-lab bench durable
  $ tram-lab bench durable --memory processes --only one --rounds 5 --folder /var/lib/tram
  $ tram-lab bench durable --recovery
  $ tram-lab bench durable --json | jq '.costs.loads[0].barePerMessage.median'
`;

export function registerBenchDurable(bench: Command): void {
  bench
    .command('durable')
    .summary('what durability costs, beside a bare loop of synced writes; recovery')
    .description('Measures clusters that differ in their durability only, in turn.')
    .addOption(
      new Option('--memory <kind>', 'the memory of the clusters')
        .choices(['threads', 'processes', 'machines'])
        .default('threads'),
    )
    .addOption(new Option('--only <load>', 'measure only this load').choices(LOAD_NAMES))
    .option('--rounds <n>', 'how many times to measure each', integer(1, 100), 3)
    .option('--seconds <s>', 'duration of each measurement', seconds, 1)
    .option('--folder <path>', 'where to make the temporary folder of the journals')
    .option('--recovery', 'measure recovery instead')
    .option('--messages <n>', 'with --recovery: messages with snapshots', integer(1, 1e9), 1e7)
    .option('--megabytes <n>', 'with --recovery: journal without snapshots', integer(1, 1e6), 1000)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: DurableFlags) => {
      process.exitCode = await durable(flags);
    });
}

async function durable(flags: DurableFlags): Promise<number> {
  const { memory, only, rounds, seconds, folder, recovery, messages, megabytes, json } = flags;
  if (recovery && memory === 'machines') {
    process.stderr.write('tram-lab: --recovery measures threads or processes\n');
    return ExitCode.usage;
  }
  const { benchDurable } = await import('../bench/durable/durable.js');
  const { formatDurable } = await import('../bench/durable/table.js');
  const options = {
    ...{ memory, rounds, seconds, loads: only === undefined ? LOAD_NAMES : [only] },
    ...(folder !== undefined && { folder }),
    ...(recovery && { recovery: { messages, bytes: megabytes * 1e6 } }),
  };
  return runLongBench({
    measure: (progress, signal) => benchDurable(options, progress, signal),
    format: formatDurable,
    json,
  });
}
