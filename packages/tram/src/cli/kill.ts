/** `tram kill`: a host ends, or stops, as it would in a crash. */
import { type Command, Option } from 'commander';
import { TramError } from '../errors.js';
import type { HostProcess } from '../hosting/host-processes.js';
import type { Attached } from './attached.js';
import { commandFor, nameOption } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import { listed, parseReplica } from './replica-name.js';

const SIGNALS = ['SIGKILL', 'SIGSTOP', 'SIGCONT'] as const;

interface KillFlags {
  readonly name: string;
  readonly signal: (typeof SIGNALS)[number];
  readonly json?: boolean;
}

const VERBS = { SIGKILL: 'killed', SIGSTOP: 'stopped', SIGCONT: 'continued' } as const;
const DEATH_MS = 5000;
const LOOK_MS = 1;

const HELP = `
A replica has no process of its own: its host runs one member of each of its groups, and all of
them go with it. They are named in the output. A group that loses its leader elects another
within about suspectAfterMs; a group that keeps more than half of its replicas goes on.

SIGSTOP is a process that hangs: it has not ended, so nobody may take its place, and it may go
on at any time (SIGCONT). Its groups depose it if it leads.

Examples:
  $ tram kill g2/0
  $ tram kill g2/0 --signal SIGSTOP && sleep 1 && tram kill g2/0 --signal SIGCONT

  Kill the leader of group 4, whoever it is:
    $ tram kill g4/$(tram status --json | jq '.groups[4].leader')

Exit codes:
  0  done
  1  there is no such cluster, or that host is not running
  2  there is no such replica
`;

export function registerKill(program: Command): void {
  program
    .command('kill')
    .helpGroup('Make things go wrong:')
    .summary('kill or stop the process that hosts a replica')
    .description(
      'Sends a signal to the process that hosts a replica, and names all replicas that go with it.',
    )
    .argument('<replica>', 'group/member, as in g2/0')
    .addOption(nameOption())
    .addOption(new Option('--signal <signal>', 'what to do').choices(SIGNALS).default('SIGKILL'))
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (replica: string, flags: KillFlags) => {
      const { withCluster } = await import('./attached.js');
      process.exitCode = await withCluster(flags.name, (cluster) => kill(cluster, replica, flags));
    });
}

async function kill(cluster: Attached, text: string, { signal, json }: KillFlags): Promise<number> {
  const { statusOf } = await import('../hosting/status.js');
  const { context } = cluster;
  const { map, layout } = context;
  const { group, member } = parseReplica(text, context);
  const host = map.hostOf(layout.replicaProcess(group, member));
  const target = await processOf(cluster, host, `g${group}/${member}`);
  const replicas = map.processesOf(host).map((replica) => context.nameOf(replica));
  const led = statusOf(context).groups.flatMap(({ group, leader }) => {
    const name = leader === undefined ? '' : `g${group}/${leader}`;
    return replicas.includes(name) ? [name] : [];
  });
  process.kill(target.pid, signal);
  if (signal === 'SIGKILL') await untilDead(cluster, host);
  if (json) {
    const { pid } = target;
    process.stdout.write(`${JSON.stringify({ host, pid, signal, replicas, led })}\n`);
  } else {
    process.stdout.write(
      `${VERBS[signal]} host ${host} (process ${target.pid}): ${listed(replicas)}\n`,
    );
    if (led.length > 0 && signal !== 'SIGCONT') {
      process.stdout.write(`they led: ${listed(led)}\n`);
    }
  }
  return ExitCode.fine;
}

/** The process of a host, made sure that it is. */
async function processOf(cluster: Attached, host: number, replica: string): Promise<HostProcess> {
  const { hostProcesses } = await import('../hosting/host-processes.js');
  const found = hostProcesses(cluster.path).find((candidate) => candidate.host === host);
  if (found !== undefined) return found;
  throw new TramError('TRAM_UNAVAILABLE', `host ${host}, which runs ${replica}, is not running`, {
    hint: `Start it with \`${commandFor(cluster, `restart ${replica}`)}\`.`,
  });
}

/** The kernel gives back the lock of a process once all of it has ended. */
async function untilDead({ arena }: Attached, host: number): Promise<void> {
  const { pause } = await import('../hosting/oversight.js');
  const deadlineMs = Date.now() + DEATH_MS;
  while (arena.isHostLocked(host)) {
    if (Date.now() > deadlineMs) {
      throw new TramError('TRAM_SYSTEM', `host ${host} was killed but has not ended yet`);
    }
    await pause(LOOK_MS);
  }
}
