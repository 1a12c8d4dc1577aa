/** `tram recover`: says what a cluster would lose with the journals that are missing, and lets it start without them. */
import type { Command } from 'commander';
import { ExitCode } from './exit-codes.js';

const HELP = `
A cluster with a journal recovers by itself when it is started: "tram up", "tram host" or
Cluster.start. It needs the journals of a majority of each group's members, and refuses to start
with fewer, because messages that were acknowledged could be lost.

This command reads the journals in the directory of the option "journal". The argument is that
directory, or a configuration file with the option. The command names each thing that would be lost,
and changes nothing. With --accept-loss it also notes in the journals that the next start may go on
without the missing ones. If these come back before that start, nothing is lost.

Across machines, a machine has only the journal of its own host. There the hosts wait for each other,
and their logs say what is missing. Run the command with --accept-loss on the machine of one host that
waits: that host then recovers the cluster, without a restart.

Examples:
  $ tram recover /var/lib/tram/bank
  $ tram recover cluster.yaml --accept-loss && tram up --config cluster.yaml

Exit codes:
  0  nothing would be lost, or the loss was accepted
  1  something would be lost, or the journals can't be read
  2  an option or the configuration file is wrong
`;

export function registerRecover(program: Command): void {
  program
    .command('recover')
    .helpGroup('Journals and backups:')
    .summary('start without journals that are lost')
    .description(
      'Says what a cluster would lose with the journals that are missing, and lets it start without them.',
    )
    .argument('<journals>', 'the directory of the journals, or a configuration file')
    .option('--accept-loss', 'let the next start go on without the missing journals')
    .addHelpText('after', HELP)
    .action(async (journals: string, flags: { readonly acceptLoss?: boolean }) => {
      process.exitCode = await recover(journals, flags.acceptLoss ?? false);
    });
}

async function recover(path: string, acceptsLoss: boolean): Promise<number> {
  const { acceptLoss, journalsIn, lossesOf } = await import('../hosting/journal-loss.js');
  const { requireUnlocked } = await import('../hosting/journal-lock.js');
  const directory = await directoryOf(path);
  const journals = journalsIn(directory);
  for (const folder of journals.folders) await requireUnlocked(folder);
  if (journals.cluster.isOnMachines) {
    if (acceptsLoss) acceptLoss(journals);
    process.stderr.write(
      acceptsLoss
        ? 'accepted: the host of this machine recovers the cluster without the missing journals. Start it if it does not run.\n'
        : 'the other journals are on other machines: the logs of the hosts, and /readyz, say which are missing\n',
    );
    return ExitCode.fine;
  }
  const losses = lossesOf(journals);
  if (losses.length === 0) {
    process.stdout.write('nothing is lost: start the cluster, and it recovers\n');
    return ExitCode.fine;
  }
  process.stdout.write(`${losses.join('\n')}\n`);
  if (!acceptsLoss) {
    process.stderr.write(
      '\nBring the missing journals back. If they are gone for good, accept this with --accept-loss.\n',
    );
    return ExitCode.failure;
  }
  acceptLoss(journals);
  process.stderr.write('\naccepted: start the cluster, and it goes on without them\n');
  return ExitCode.fine;
}

async function directoryOf(path: string): Promise<string> {
  const { statSync } = await import('node:fs');
  const { TramError } = await import('../errors.js');
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new TramError('TRAM_NOT_FOUND', `there is no ${path}`);
  if (found.isDirectory()) return path;
  const { readConfigFile } = await import('../config/file.js');
  const { journal } = await readConfigFile(path);
  if (journal !== undefined) return journal;
  throw new TramError('TRAM_INVALID_ARGUMENT', `${path} has no option "journal"`);
}
