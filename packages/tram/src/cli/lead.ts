/** `tram lead`: asks a replica to become the leader of its group. */
import type { Command } from 'commander';
import { TramError } from '../errors.js';
import type { Seen } from './attached.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { milliseconds } from './number-option.js';
import { parseReplica } from './replica-name.js';

interface LeadFlags extends Which {
  readonly timeoutMs: number;
  readonly json?: boolean;
}

const DEFAULT_TIMEOUT_MS = 5000;

const HELP = `
No message is lost: the new leader adopts what the old one has decided. Clients notice a short
pause. The choice holds until this leader fails or is replaced. After that, member 0 of the group
takes the lead again.

Examples:
  $ tram lead g2/1
  $ for g in 0 1 2 3; do tram lead g$g/1; done
  $ tram lead g2/1 --config cluster.yaml

Exit codes:
  0  the replica leads its group
  1  there is no such cluster, it can't be reached, or the replica is down
  2  there is no such replica
  4  the replica does not lead in time; the message names the leader
`;

export function registerLead(program: Command): void {
  program
    .command('lead')
    .helpGroup('Operate hosts and leaders:')
    .summary('make a replica the leader of its group')
    .description('Asks a replica to lead its group, and waits until it does.')
    .argument('<replica>', 'group/member, such as g2/1')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--timeout-ms <ms>', 'how long to wait', milliseconds, DEFAULT_TIMEOUT_MS)
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (replica: string, flags: LeadFlags) => {
      const { withSeen } = await import('./attached.js');
      process.exitCode = await withSeen(flags, (cluster) => lead(cluster, replica, flags));
    });
}

async function lead(cluster: Seen, text: string, flags: LeadFlags): Promise<number> {
  const { makeLeader } = await import('../hosting/oversight.js');
  const { restartCommand } = await import('./attached.js');
  const { context } = cluster;
  const { group, member } = parseReplica(text, context);
  const replica = `g${group}/${member}`;
  const startedMs = performance.now();
  const { leader, ballot, replicas } = await makeLeader(context, group, member, flags.timeoutMs);
  const { state, host } = replicas[member];
  if (leader === member) {
    tell(replica, ballot!, performance.now() - startedMs, flags);
    return ExitCode.fine;
  }
  if (state === 'down') {
    throw new TramError('TRAM_UNAVAILABLE', `${replica} is down and can't lead`, {
      hint: `Start it with \`${restartCommand(cluster, replica, host)}\`.`,
    });
  }
  const instead = leader === undefined ? 'the group has no leader' : `g${group}/${leader} does`;
  throw new TramError(
    'TRAM_TIMEOUT',
    `${replica} does not lead its group after ${flags.timeoutMs} ms: ${instead}`,
    { hint: `It needs a majority of its group: see \`${commandFor(cluster, 'status')}\`.` },
  );
}

function tell(replica: string, ballot: string, tookMs: number, { json }: LeadFlags): void {
  const text = json
    ? JSON.stringify({ leader: replica, ballot, tookMs: Math.round(tookMs) })
    : `${replica} leads its group under ballot ${ballot}`;
  process.stdout.write(`${text}\n`);
}
