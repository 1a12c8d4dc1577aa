/** `tram-lab bench peers`: TRAM beside what one would take instead. */
import { type Command, InvalidArgumentError } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { catchInterruption } from 'tram-multicast/internal/cli/interruption.js';
import { seconds } from 'tram-multicast/internal/cli/number-option.js';
import type { PeerId } from '../bench/peers/peer.js';
import type { PeersResult } from '../bench/peers/peers.js';

interface PeersFlags {
  readonly only?: readonly PeerId[];
  readonly seconds: number;
  readonly json?: boolean;
}

const PEER_IDS: readonly PeerId[] = ['redis', 'nats', 'etcd'];
const PAYLOAD_BYTES = 64;

const HELP = `
What would you take if there were no TRAM? Each of these gets three copies, the same 64 B messages from one client in
a process of its own, and the same rule: a message counts when it is acknowledged after replication.

  redis  a stream a shard; XADD, or MULTI of eight, then WAIT 1
  nats   JetStream; a stream a shard, three copies in memory; a publish to one, or to each of eight
  etcd   a key a shard; a put, or a transaction of eight
  tram   processes, eight groups of three; always measured

Throughput is the best of 1, 8, 64, 512 … messages under way, latency that of one message at a time. TRAM/it is how many
times its throughput TRAM has, it/TRAM how many times TRAM's median latency it takes.

They do not promise the same: "across shards" says what each does with a message to several. And TRAM shares memory on
one machine, while they talk over sockets and could be on three: that is most of the difference.

Servers come from Debian's packages, run on free ports of the loopback in a temporary folder, and end with the command:
  $ apt-get install -y redis-server nats-server etcd-server
One that is not installed is named and left out; if you asked for it with --only, the exit code is 1.

Figures of a busy machine mean little: look at the ratios, and run it twice. It takes two minutes.

Examples:
  $ tram-lab bench peers
  $ tram-lab bench peers --only redis --seconds 5
  $ tram-lab bench peers --json | jq .advantages
`;

export function registerBenchPeers(bench: Command): void {
  bench
    .command('peers')
    .summary('beside Redis, NATS JetStream and etcd')
    .description('Measures TRAM and what one would take instead, in one run.')
    .option('--only <names>', 'of redis,nats,etcd: the ones to measure', peerIds)
    .option('--seconds <s>', 'how long to measure each time', seconds, 2)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: PeersFlags) => {
      process.exitCode = await peers(flags);
    });
}

async function peers({ only, seconds, json }: PeersFlags): Promise<number> {
  const { benchPeers } = await import('../bench/peers/peers.js');
  const { formatPeers } = await import('../bench/peers/table.js');
  const interruption = catchInterruption();
  const options = { only: only ?? PEER_IDS, seconds, payloadBytes: PAYLOAD_BYTES };
  try {
    const result = await benchPeers(options, showStep, interruption.signal);
    process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : formatPeers(result));
    return isComplete(result, only !== undefined) ? ExitCode.fine : ExitCode.failure;
  } catch (error) {
    if (interruption.signal.aborted) return ExitCode.interrupted;
    throw error;
  } finally {
    interruption.release();
  }
}

/** All that was started was measured, and all that was asked for by name was there. */
function isComplete({ systems }: PeersResult, isNamed: boolean): boolean {
  return systems.every(({ status }) => status === 'measured' || (status === 'missing' && !isNamed));
}

function peerIds(text: string): PeerId[] {
  const names = text.split(',').map((name) => name.trim());
  const ids = PEER_IDS.filter((id) => names.includes(id));
  if (ids.length === new Set(names).size) return ids;
  throw new InvalidArgumentError(`Expected some of ${PEER_IDS.join(',')}.`);
}

function showStep(step: string): void {
  process.stderr.write(`${paint('dim', `… ${step}`)}\n`);
}
