/** `tram restore`: writes journals from a backup. */
import type { Command } from 'commander';

interface RestoreFlags {
  readonly journal: string;
  readonly host?: string;
  readonly json?: boolean;
}

const HELP = `
The command checks the backup, and writes a journal for each host of the cluster. The next start of a
cluster with that directory as its journal begins with the state of the backup. It must have the same
groups, tree, replicas, hosts, members, clients, callsMax and replyBytesMax as the cluster that was
saved, and at least its payloadBytesMax.

The folders of the hosts must not exist, or be empty: a backup never replaces a journal.

Across machines, copy the backup to every machine, and restore the journal of its host there.

Examples:
  $ tram restore /mnt/backups/monday --journal /var/lib/orders
  $ tram up --config cluster.yaml --journal /var/lib/orders
  $ tram restore /mnt/backups/monday --journal /var/lib/orders --host alpha

Exit codes:
  0  the journals are complete, and on disk
  1  the backup is incomplete or damaged, or there are journals already
`;

export function registerRestore(program: Command): void {
  program
    .command('restore')
    .helpGroup('Journals and backups:')
    .summary('write journals from a backup')
    .description('Writes the journals from which a cluster starts with the state of a backup.')
    .argument('<directory>', 'the backup')
    .requiredOption('--journal <directory>', 'where to write the journals')
    .option('--host <name>', 'across machines: only the journal of this host')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(restore);
}

async function restore(directory: string, { journal, host, json }: RestoreFlags): Promise<void> {
  const { resolve } = await import('node:path');
  const { restoreBackup } = await import('../hosting/restore.js');
  const folders = restoreBackup(resolve(directory), { journal: resolve(journal), host });
  const text = json ? JSON.stringify({ folders }) : `restored ${folders.join(', ')}`;
  process.stdout.write(`${text}\n`);
}
