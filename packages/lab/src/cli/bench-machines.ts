/** `tram-lab bench machines`: TRAM across machines, beside what the network itself can do. */
import { type Command, InvalidArgumentError } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { catchInterruption } from 'tram-multicast/internal/cli/interruption.js';
import { integer, seconds } from 'tram-multicast/internal/cli/number-option.js';

interface HostsFlags {
  readonly config?: string;
  readonly destinations?: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly json?: boolean;
}

const HELP = `
Starts three hosts (\`tram host\`) with eight groups of three replicas on free ports of the loopback, in a temporary
folder, and ends and removes them whatever happens. It measures in turn, and three times all of it:

  - an acknowledged 64 B write through libfabric between two processes, without any TRAM
  - a ping-pong of 64 B between two processes through Node's own sockets
  - TRAM with one message at a time: how long it takes until all destinations have replied
  - TRAM at saturation: 16, 32 … 512 messages under way, until more brings no more

and after that leader changes on request while messages go to all groups: how long until the new leader leads, and
the longest time that the client got no answer.

With --config it measures a cluster that is running: its service gets the messages, its leaders change, and in the
end lead again where they did. Bare writes and ping-pong are over the loopback of this machine even so.

On one machine all hosts and the client share its cores, and nothing is really sent: look at the ratios, and run it
twice. It takes one to two minutes, and needs libfabric (apt-get install libfabric1).

Examples:
  $ tram-lab bench machines
  $ tram-lab bench machines --destinations 1,2,4,8 --seconds 2
  $ tram-lab bench machines --config cluster.yaml --json | jq .figures
`;

export function registerBenchHosts(bench: Command): void {
  bench
    .command('machines')
    .summary('across machines, beside bare libfabric')
    .description(
      'Measures a cluster across machines, and what the network itself can do, in one run.',
    )
    .option('--config <file>', 'a cluster that is running, instead of one on this machine')
    .option(
      '--destinations <list>',
      'numbers of groups messages go to (default: 1 and all)',
      counts,
    )
    .option('--seconds <s>', 'how long to measure each time', seconds, 1)
    .option('--rounds <n>', 'how often to measure everything', integer(1, 100), 3)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (flags: HostsFlags) => {
      process.exitCode = await hosts(flags);
    });
}

async function hosts({ json, ...options }: HostsFlags): Promise<number> {
  const { benchMachines } = await import('../bench/machines/machines.js');
  const { formatMachines } = await import('../bench/machines/table.js');
  const interruption = catchInterruption();
  try {
    const result = await benchMachines(options, showStep, interruption.signal);
    process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : formatMachines(result));
    return ExitCode.fine;
  } catch (error) {
    if (interruption.signal.aborted) return ExitCode.interrupted;
    throw error;
  } finally {
    interruption.release();
  }
}

/** `1,8` */
function counts(text: string): number[] {
  const values = text.split(',').map(Number);
  if (values.every((value) => Number.isInteger(value) && value > 0)) return [...new Set(values)];
  throw new InvalidArgumentError('Expected numbers of groups, such as 1,8.');
}

function showStep(step: string): void {
  process.stderr.write(`${paint('dim', `… ${step}`)}\n`);
}
