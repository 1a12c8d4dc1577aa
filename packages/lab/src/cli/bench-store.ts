/** `tram-lab bench store`: compares tram-store with Redis. */
import { type Command, InvalidArgumentError } from 'commander';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import type { LoadId, Pipeline } from '../bench/store/loads.js';
import { runLongBench } from './long-bench.js';

interface StoreFlags {
  readonly only: readonly LoadId[];
  readonly pipelines: readonly Pipeline[];
  readonly seconds: number;
  readonly rounds: number;
  readonly json?: boolean;
}

const LOAD_IDS: readonly LoadId[] = ['set', 'get', 'mset', 'multi'];
const PIPELINES: readonly Pipeline[] = [1, 16];

const HELP = `
The benchmark compares three systems on this machine:

  Redis          one server
  Redis, WAIT 1  one primary and two replicas; each pipeline of writes ends with WAIT 1
  tram-store     as npx tram-store starts it; with 8 shards for MSET and MULTI

One process has 50 connections, each of which sends a pipeline of requests, waits for all replies, and sends the next one:

  set, get  one of 100,000 keys
  mset      ten of these keys
  multi     MULTI, eight SET, EXEC

store/it is the throughput of tram-store divided by that of the system. For SET and GET, the program redis-benchmark measures
Redis and tram-store too: it cannot send WAIT.

The systems are measured in turn, --rounds times, every other round in reverse order. The table has the medians, the least
and the greatest; a ratio is the median of the ratios of the rounds. It takes five minutes.

Redis comes from Debian packages:
  $ apt-get install -y redis-server redis-tools

Examples:
  $ tram-lab bench store
  $ tram-lab bench store --only set,get --pipelines 16 --seconds 3
  $ tram-lab bench store --json | jq '.results[0].figures.store'
`;

export function registerBenchStore(bench: Command): void {
  bench
    .command('store')
    .summary('tram-store compared with Redis')
    .description('Measures tram-store, Redis, and Redis with two replicas, in one run.')
    .option('--only <names>', 'which of set,get,mset,multi to measure', some(LOAD_IDS), LOAD_IDS)
    .option('--pipelines <n>', 'how many requests go together: 1,16', some(PIPELINES), PIPELINES)
    .option('--seconds <s>', 'duration of each measurement', seconds, 2)
    .option('--rounds <n>', 'how many times to measure all systems', integer(1, 100), 3)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async ({ json, ...options }: StoreFlags) => {
      const { benchStore } = await import('../bench/store/store.js');
      const { formatStore } = await import('../bench/store/table.js');
      process.exitCode = await runLongBench({
        measure: (progress, signal) => benchStore(options, progress, signal),
        format: formatStore,
        json,
      });
    });
}

/** A list of some of these. */
function some<T extends string | number>(all: readonly T[]): (text: string) => readonly T[] {
  return (text) => {
    const names = text.split(',').map((name) => name.trim());
    const found = all.filter((one) => names.includes(String(one)));
    if (found.length === new Set(names).size) return found;
    throw new InvalidArgumentError(`Expected some of ${all.join(',')}.`);
  };
}
