/** `tram-lab bench machines`: measures TRAM across machines, and the network itself for comparison. */
import { type Command, InvalidArgumentError } from 'commander';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import { TramError } from 'tram-multicast/internal/errors.js';
import { runLongBench } from './long-bench.js';

interface MachinesFlags {
  readonly config?: string;
  readonly destinations?: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly threads?: number;
  readonly json?: boolean;
}

const HELP = `
The benchmark starts three hosts (\`tram host\`) with eight groups of three replicas on free ports of the loopback
interface, and ends them when it is done, fails or is interrupted. It measures each of these three times:

  - an acknowledged write of 64 B through libfabric between two processes, without TRAM
  - a ping-pong of 64 B between two processes through Node's sockets
  - TRAM, one message at a time: the latency until all destinations have replied
  - TRAM at saturation: 16, 32 … 512 messages in flight, until the throughput no longer grows

Then it requests leader changes while messages go to all groups. It measures how long a change takes and the longest
time without an answer for the client.

With --config it measures a running cluster. The service of that cluster gets the messages. Its leaders change, and
are restored at the end. Bare writes and ping-pong are still measured on the loopback interface of this machine.

With --threads N it compares clusters whose machines have one thread with clusters whose machines have N threads, and
measures only throughput. A cluster of one machine (groups of one replica) shares the cores only with the client.
Clusters of three machines show what more threads cost if no core is free.

On one machine all hosts and the client share its cores, and no packet leaves it: compare the ratios, and run it
twice. It takes one to two minutes, and needs libfabric (apt-get install libfabric1).

Examples:
  $ tram-lab bench machines
  $ tram-lab bench machines --destinations 1,2,4,8 --seconds 2
  $ tram-lab bench machines --config cluster.yaml --json | jq .figures
  $ tram-lab bench machines --threads 2
`;

export function registerBenchMachines(bench: Command): void {
  bench
    .command('machines')
    .summary('TRAM across machines, compared with bare libfabric')
    .description('Measures a cluster across machines and the network itself, in one run.')
    .option('--config <file>', 'measure the running cluster of this configuration file')
    .option('--destinations <list>', 'numbers of destination groups (default: 1 and all)', counts)
    .option('--seconds <s>', 'duration of each measurement', seconds, 1)
    .option('--rounds <n>', 'how many times to measure everything', integer(1, 100), 3)
    .option('--threads <n>', 'compare this many threads of a machine with one', integer(2, 8))
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: MachinesFlags) => {
      process.exitCode = await machines(flags);
    });
}

async function machines(flags: MachinesFlags): Promise<number> {
  const { json, threads, ...options } = flags;
  if (threads !== undefined) return compareThreads(threads, flags);
  const { benchMachines } = await import('../bench/machines/machines.js');
  const { formatMachines } = await import('../bench/machines/table.js');
  return runLongBench({
    measure: (progress, signal) => benchMachines(options, progress, signal),
    format: formatMachines,
    json,
  });
}

async function compareThreads(threads: number, flags: MachinesFlags): Promise<number> {
  const { seconds, rounds, config, destinations, json } = flags;
  if (config !== undefined || destinations !== undefined) {
    throw new TramError(
      'TRAM_INVALID_ARGUMENT',
      '--threads goes with neither --config nor --destinations',
    );
  }
  const { benchThreads } = await import('../bench/machines/threads.js');
  const { formatThreads } = await import('../bench/machines/threads-table.js');
  return runLongBench({
    measure: (progress, signal) => benchThreads({ threads, seconds, rounds }, progress, signal),
    format: formatThreads,
    json,
  });
}

/** `1,8` */
function counts(text: string): number[] {
  const values = text.split(',').map(Number);
  if (values.every((value) => Number.isInteger(value) && value > 0)) return [...new Set(values)];
  throw new InvalidArgumentError('Expected numbers of groups, such as 1,8.');
}
