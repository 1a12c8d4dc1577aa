/** `tram tail`: prints the deliveries of groups as they happen. */
import { once } from 'node:events';
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { Delivered } from '../hosting/tail.js';
import type { Seen } from './attached.js';
import { configOption, nameOption, type Which } from './cluster-name.js';
import { paint } from './colors.js';
import { ExitCode } from './exit-codes.js';
import { group as parseGroup } from './group-list.js';
import { catchInterruption } from './interruption.js';
import { integer } from './number-option.js';
import { readable, readableLine } from './readable.js';

interface TailFlags extends Which {
  readonly group?: number;
  readonly count?: number;
  readonly json?: boolean;
}

const HELP = `
Each line has the group, the index in the group's log (which also counts messages that the group
only relays), the id of the message, its destinations, and its payload as text or in hexadecimal.
The lines of one group are in the order of the group.

The command reads the logs in shared memory or, across machines, copies of them. It does not slow
the replicas down. If it falls behind by a whole log, it says so and continues with the newest entry.

Examples:
  $ tram tail --group 4
  $ tram tail --count 10
  $ tram tail --config cluster.yaml
  $ tram tail --json | jq -r 'select(.destinations | length > 1) | .id'

Exit codes:
  0    --count deliveries were printed, or the cluster was taken down
  1    there is no such cluster, or none of its hosts can be reached
  2    there is no such group
  130  interrupted
`;

export function registerTail(program: Command): void {
  program
    .command('tail')
    .helpGroup('Run a cluster:')
    .summary('print deliveries as they happen')
    .description('Prints the deliveries of one group or of all groups, from now on, until Ctrl-C.')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--group <group>', 'only the deliveries of this group', parseGroup)
    .option('--count <n>', 'end after this many deliveries', integer(1, 1e9))
    .option('--json', 'print one JSON object per delivery')
    .addHelpText('after', HELP)
    .action(async (flags: TailFlags) => {
      const { withSeen } = await import('./attached.js');
      process.exitCode = await withSeen(flags, (cluster) => tail(cluster, flags));
    });
}

async function tail(cluster: Seen, flags: TailFlags): Promise<number> {
  const { follow } = await import('../hosting/tail.js');
  const { ARENA, ARENA_STATE } = await import('../memory/arena.js');
  const { context } = cluster;
  const groups = groupsOf(context.config.sizes.groups, flags.group);
  await cluster.follow(groups);
  const interruption = catchInterruption();
  let left = flags.count ?? Number.POSITIVE_INFINITY;
  const isOver = (): boolean =>
    left === 0 ||
    interruption.signal.aborted ||
    Atomics.load(context.arena.words, ARENA.state) === ARENA_STATE.closing;

  const output = new Output();
  const print = async (group: number): Promise<void> => {
    while (!isOver()) {
      try {
        for await (const delivered of follow(context, group, isOver)) {
          left--;
          await output.add(line(delivered, flags));
          if (isOver()) return;
        }
      } catch (error) {
        if (!(error instanceof TramError) || error.code !== 'TRAM_LAGGED') throw error;
        process.stderr.write(`${error.message}\n`);
      }
    }
  };
  const printed = groups.map(print);
  process.stderr.write(`following ${groups.map((group) => `g${group}`).join(', ')}\n`);
  await Promise.all(printed);
  output.flush();
  interruption.release();
  return interruption.signal.aborted ? ExitCode.interrupted : ExitCode.fine;
}

/** Writes lines to stdout, all that are pending at once. */
class Output {
  private pending = '';
  private isScheduled = false;

  /** Resolves when there is room for more. */
  async add(text: string): Promise<void> {
    this.pending += text;
    if (!this.isScheduled) {
      this.isScheduled = true;
      setImmediate(() => this.flush());
    }
    if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
  }

  flush(): void {
    this.isScheduled = false;
    if (this.pending !== '') process.stdout.write(this.pending);
    this.pending = '';
  }
}

function groupsOf(groups: number, only: number | undefined): number[] {
  if (only === undefined) return Array.from({ length: groups }, (_, group) => group);
  if (only < groups) return [only];
  throw new TramError(
    'TRAM_INVALID_ARGUMENT',
    `there is no group ${only}: this cluster has g0 to g${groups - 1}`,
  );
}

function line({ group, index, id, destinations, payload }: Delivered, { json }: TailFlags): string {
  if (json) {
    return `${JSON.stringify({ group, index, id, destinations, payload: readable(payload) })}\n`;
  }
  const place = paint('dim', `g${group}  ${String(index).padStart(6)}  ${id.padEnd(10)}`);
  return `${place}  ${destinations.join(',')}  ${readableLine(payload)}\n`;
}
