/** `tram-lab bench peers`: compares TRAM with the systems that one would use instead. */
import { type Command, InvalidArgumentError } from 'commander';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';
import type { PeerId } from '../bench/peers/peer.js';
import type { PeersResult } from '../bench/peers/peers.js';
import { runLongBench } from './long-bench.js';

interface PeersFlags {
  readonly only?: readonly PeerId[];
  readonly seconds: number;
  readonly rounds: number;
  readonly synced?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

const PEER_IDS: readonly PeerId[] = ['redis', 'nats', 'etcd'];
/** NATS JetStream syncs at intervals. */
const SYNCED_IDS: readonly PeerId[] = ['redis', 'etcd'];
const PAYLOAD_BYTES = 64;

const HELP = `
The benchmark compares TRAM with systems that one would use instead. Each keeps three copies and gets the same 64 B
messages from one client process. A message counts when it is acknowledged after replication.

  redis  one stream per shard; XADD, or MULTI of eight, then WAIT 1
  nats   JetStream; one stream per shard, three copies in memory; a publish to one, or to each of eight
  etcd   one key per shard; a put, or a transaction of eight
  tram   processes, eight groups of three; always measured

Throughput is the best of 1, 8, 64, 512 … messages in flight. Latency is that of one message at a time. TRAM/it is the
throughput of TRAM divided by that of the system; it/TRAM is its median latency divided by that of TRAM.

The systems give different guarantees: the column "across shards" says what each does with a message to several shards.
TRAM shares memory on one machine, while the others use sockets and could run on three machines. That explains most of
the difference.

With --synced, each system syncs a message to disk on two of three servers before it acknowledges it:

  redis  appendfsync always, then WAIT 1
  etcd   as by default
  tram   durability always
  nats   is left out: it can't

All files are in a temporary folder on a disk (--folder), never in memory.

The servers come from Debian packages. They run on free ports of the loopback interface in a temporary folder, and end
with the command:
  $ apt-get install -y redis-server nats-server etcd-server
A server that is not installed is named and skipped. If you asked for it with --only, the exit code is 1.

The systems are measured in turn, --rounds times, every other round in reverse order. The table has the medians, the least
and the greatest; a ratio is the median of the ratios of the rounds. The figures of a busy machine mean little: compare
the ratios. It takes four minutes.

Examples:
  $ tram-lab bench peers
  $ tram-lab bench peers --only redis --seconds 5
  $ tram-lab bench peers --synced --rounds 5
  $ tram-lab bench peers --json | jq .advantages.redis.one.throughput.median
`;

export function registerBenchPeers(bench: Command): void {
  bench
    .command('peers')
    .summary('TRAM compared with Redis, NATS JetStream and etcd')
    .description('Measures TRAM and the systems that one would use instead, in one run.')
    .option('--only <names>', 'which of redis,nats,etcd to measure', peerIds)
    .option('--seconds <s>', 'duration of each measurement', seconds, 1)
    .option('--rounds <n>', 'how many times to measure all systems', integer(1, 100), 3)
    .option('--synced', 'acknowledge messages once they are synced to disk')
    .option('--folder <path>', 'with --synced: where to make the temporary folder')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: PeersFlags) => {
      process.exitCode = await peers(flags);
    });
}

async function peers({ only, json, synced, folder, ...rest }: PeersFlags): Promise<number> {
  const isSynced = synced === true;
  const mistake = mistakeIn(isSynced, only, folder);
  if (mistake !== undefined) {
    process.stderr.write(`tram-lab: ${mistake}\n`);
    return ExitCode.usage;
  }
  const { benchPeers } = await import('../bench/peers/peers.js');
  const { formatPeers } = await import('../bench/peers/table.js');
  const options = {
    ...rest,
    only: only ?? (isSynced ? SYNCED_IDS : PEER_IDS),
    payloadBytes: PAYLOAD_BYTES,
    isSynced,
    ...(folder !== undefined && { folder }),
  };
  return runLongBench({
    measure: (progress, signal) => benchPeers(options, progress, signal),
    format: formatPeers,
    json,
    isFine: (result) => isComplete(result, only !== undefined),
  });
}

function mistakeIn(
  isSynced: boolean,
  only: readonly PeerId[] | undefined,
  folder: string | undefined,
): string | undefined {
  if (!isSynced) return folder === undefined ? undefined : '--folder needs --synced';
  const unable = only?.find((id) => !SYNCED_IDS.includes(id));
  return unable === undefined ? undefined : `${unable} can't be measured with --synced`;
}

/** Whether all systems were measured; a missing one counts only if the user has named it. */
function isComplete({ systems }: PeersResult, isNamed: boolean): boolean {
  return systems.every(({ status }) => status === 'measured' || (status === 'missing' && !isNamed));
}

function peerIds(text: string): PeerId[] {
  const names = text.split(',').map((name) => name.trim());
  const ids = PEER_IDS.filter((id) => names.includes(id));
  if (ids.length === new Set(names).size) return ids;
  throw new InvalidArgumentError(`Expected some of ${PEER_IDS.join(',')}.`);
}
