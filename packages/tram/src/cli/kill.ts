/** `tram kill`: sends a signal to the process of a host, so that it fails as it would in a crash. */
import { type Command, Option } from 'commander';
import { TramError } from '../errors.js';
import type { RemoteHost } from '../hosting/machines/remote-host.js';
import { commandFor, configOption, nameOption, type Which } from './cluster-name.js';
import { ExitCode } from './exit-codes.js';
import type { ReplicaHost } from './replica-host.js';
import { listed } from './replica-name.js';

const SIGNALS = ['SIGKILL', 'SIGSTOP', 'SIGCONT'] as const;

interface KillFlags extends Which {
  readonly signal: (typeof SIGNALS)[number];
  readonly json?: boolean;
}

/** How long the host may take to end. */
const DEATH_MS = 5000;
const VERBS = { SIGKILL: 'killed', SIGSTOP: 'stopped', SIGCONT: 'continued' } as const;

const HELP = `
A host is a process that runs one or more replicas, and all of them fail with it. The command names
them. It warns if a group loses its majority, or the last running copy of its state. A group that
keeps a majority continues. If it loses its leader, it elects another one.

A killed host stays down until "tram restart". The others notice its end at once.

SIGSTOP makes the process hang. The others notice that only after suspectAfterMs. The process has
not ended, so no other process can take its place, and it may continue at any time (SIGCONT).

For a host on another machine (--config), the command asks the host to send itself SIGKILL. A host
that hangs can't do that, and other signals reach only processes of this machine. In these cases,
run the command on the machine of the host. There the command can't see the other hosts, and does
not warn. If a service manager runs the host, it may start the host again.

Examples:
  $ tram kill g2/0
  $ tram kill g2/0 --signal SIGSTOP && sleep 1 && tram kill g2/0 --signal SIGCONT
  $ tram kill g2/0 --config cluster.yaml

  Kill the leader of group 4:
    $ tram kill g4/$(tram status --json | jq '.groups[4].leader')

Exit codes:
  0  the signal was sent
  1  there is no such cluster, or the host does not run or can't be reached
  2  there is no such replica, or the signal reaches only processes of this machine
  4  a host on another machine was asked to end, and still runs
`;

export function registerKill(program: Command): void {
  program
    .command('kill')
    .helpGroup('Operate hosts and leaders:')
    .summary('kill or stop the process that hosts a replica')
    .description(
      'Sends a signal to the process that hosts a replica, and names all replicas that it hosts.',
    )
    .argument('<replica>', 'group/member, such as g2/0')
    .addOption(nameOption())
    .addOption(configOption())
    .addOption(
      new Option('--signal <signal>', 'the signal to send').choices(SIGNALS).default('SIGKILL'),
    )
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (replica: string, flags: KillFlags) => {
      const { withHostOf } = await import('./replica-host.js');
      const words = `kill ${replica}${flags.signal === 'SIGKILL' ? '' : ` --signal ${flags.signal}`}`;
      process.exitCode = await withHostOf(flags, replica, words, {
        local: (host) => kill(host, flags),
        remote: (host) => killRemotely(host, words, flags),
      });
    });
}

async function killRemotely(
  target: RemoteHost,
  words: string,
  { signal, json, config }: KillFlags,
): Promise<number> {
  const { host, title } = target;
  if (signal !== 'SIGKILL') {
    throw new TramError('TRAM_INVALID_ARGUMENT', `host ${title} is not on this machine`, {
      hint: `Another machine can only be asked for SIGKILL. Run \`tram ${words} --config ${config}\` there.`,
    });
  }
  const { pid } = target.status.hosts[host];
  const { replicas, led } = target.roles;
  const cost = target.costOfEnd;
  await target.kill(DEATH_MS);
  if (json) {
    process.stdout.write(`${JSON.stringify({ host, name: title, pid, signal, replicas, led })}\n`);
    return ExitCode.fine;
  }
  process.stdout.write(
    `killed host ${title} (process ${pid} on its machine), which hosts ${listed(replicas)}\n`,
  );
  if (led.length > 0) process.stdout.write(`leaders among them: ${listed(led)}\n`);
  if (cost !== undefined) process.stderr.write(`the end of host ${title} ${cost}\n`);
  return ExitCode.fine;
}

async function kill(target: ReplicaHost, { signal, json }: KillFlags): Promise<number> {
  const {
    killHost,
    processOf,
    replicasOf,
    signal: send,
  } = await import('../hosting/local-host.js');
  const { host, title, machine } = target;
  const running = await processOf(target);
  if (running === undefined) throw notRunning(target);
  const { pid } = running;
  const { replicas, led } = await replicasOf(target);
  if (signal === 'SIGKILL') {
    await warnOfCost(target);
    await killHost(target);
  } else if (!send(pid, signal)) throw notRunning(target);
  if (json) {
    const name = machine === undefined ? {} : { name: machine };
    process.stdout.write(`${JSON.stringify({ host, ...name, pid, signal, replicas, led })}\n`);
  } else {
    process.stdout.write(
      `${VERBS[signal]} host ${title} (process ${pid}), which hosts ${listed(replicas)}\n`,
    );
    if (led.length > 0 && signal !== 'SIGCONT') {
      process.stdout.write(`leaders among them: ${listed(led)}\n`);
    }
  }
  return ExitCode.fine;
}

/** The memory of one machine does not tell of other hosts. */
async function warnOfCost({ context, host, title, machine }: ReplicaHost): Promise<void> {
  if (machine !== undefined) return;
  const { costOfEnd } = await import('../hosting/rejoin.js');
  const { statusOf } = await import('../hosting/status.js');
  const cost = costOfEnd(statusOf(context).groups, [host]);
  if (cost !== undefined) process.stderr.write(`warning: the end of host ${title} ${cost}\n`);
}

function notRunning(target: ReplicaHost): TramError {
  const { title, replica } = target;
  return new TramError('TRAM_UNAVAILABLE', `host ${title}, which runs ${replica}, is not running`, {
    hint: `Start it with \`${commandFor(target, `restart ${replica}`)}\`.`,
  });
}
