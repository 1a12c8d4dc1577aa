/** `tram-lab bench strict`: compares `order: 'strict'` with `order: 'multicast'`. */
import { type Command, Option } from 'commander';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import type { StrictOptions } from '../bench/strict/strict.js';
import { runLongBench } from './long-bench.js';

interface StrictFlags extends StrictOptions {
  readonly json?: boolean;
}

const HELP = `
The benchmark starts two clusters of eight groups of three on the base tree, one with each order. It measures them in
turn: multicast, strict, strict, multicast, … Meanwhile the other one is idle, and its hosts are parked. A client sends
messages of 64 B

  - to one group, to two, to all eight, each in rotation
  - mix: nine messages to one group, then one to two

once with one message at a time (the median latency until all destinations have replied), and once with 256 messages in
flight (throughput).

Then leaders change while clients send the mix: the longest time between two answers around a change, and the longest
delay of a message that was in flight. With --memory threads, clusters of processes change the leaders of all groups at
once, first on request, then by SIGKILL of the process that runs them. With --memory machines, one group after the other
changes its leader on request.

The table has the medians of all pairs, the median of the ratios strict / multicast of the pairs, and the least and the
greatest of these ratios. If they lie far apart, the machine was busy: run it again. With five pairs it takes four
minutes on threads and three across machines, which need libfabric (apt-get install libfabric1).

Examples:
  $ tram-lab bench strict
  $ tram-lab bench strict --memory machines --pairs 9
  $ tram-lab bench strict --only loads --json | jq '.loads[].messagesPerSecond.ratio.median'
`;

export function registerBenchStrict(bench: Command): void {
  bench
    .command('strict')
    .summary('what strict order costs, compared with multicast order')
    .description('Measures two clusters that differ in their order only, in turn.')
    .addOption(
      new Option('--memory <kind>', 'the memory of the clusters')
        .choices(['threads', 'machines'])
        .default('threads'),
    )
    .option('--pairs <n>', 'how many times to measure both', integer(1, 100), 5)
    .option('--seconds <s>', 'duration of each measurement of a load', seconds, 1)
    .addOption(new Option('--only <part>', 'measure only this part').choices(['loads', 'changes']))
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: StrictFlags) => {
      process.exitCode = await strict(flags);
    });
}

async function strict({ json, ...options }: StrictFlags): Promise<number> {
  const { benchStrict } = await import('../bench/strict/strict.js');
  const { formatStrict } = await import('../bench/strict/table.js');
  return runLongBench({
    measure: (progress, signal) => benchStrict(options, progress, signal),
    format: formatStrict,
    json,
  });
}
