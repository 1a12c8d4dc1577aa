/** `tram backup`: saves a running cluster. */
import type { Command } from 'commander';
import { configOption, nameOption, type Which } from './cluster-name.js';
import { size } from './texts.js';

interface BackupFlags extends Which {
  readonly json?: boolean;
}

const HELP = `
The command sends one message, a mark, to all groups. The backup has everything that lies before
the mark in the order of each group. So the backup is consistent: a message to several groups is in
all of them or in none, and everything that was replied to before the command began is in it.
Clients go on meanwhile.

The cluster needs a journal: durability everySecond or always. The directory must not exist, or be
empty. A backup without the file backup.json is incomplete.

Across machines, run the command on the machine of a host that has members of all groups. It reads
the journal of that host.

Examples:
  $ tram backup /mnt/backups/monday
  $ tram backup /mnt/backups/monday --config cluster.yaml
  $ tram restore /mnt/backups/monday --journal /var/lib/orders

Exit codes:
  0  the backup is complete, and on disk
  1  it failed; nothing is left in the directory
`;

export function registerBackup(program: Command): void {
  program
    .command('backup')
    .helpGroup('Journals and backups:')
    .summary('save a running cluster')
    .description('Saves a running cluster that has a journal, while its clients go on.')
    .argument('<directory>', 'where to write the backup')
    .addOption(nameOption())
    .addOption(configOption())
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(backup);
}

async function backup(directory: string, { json, name, config }: BackupFlags): Promise<void> {
  const { Cluster } = await import('../cluster.js');
  const cluster = await Cluster.attach(config ?? name);
  try {
    const saved = await cluster.backup(directory);
    const text = json
      ? JSON.stringify(saved)
      : `saved ${size(saved.bytes)} in ${saved.directory}: all groups as of ${saved.takenAt}`;
    process.stdout.write(`${text}\n`);
  } finally {
    await cluster.close();
  }
}
