/** `tram journal show`: prints what the journals of hosts have. */
import type { Command } from 'commander';
import type { EraContents, JournalContents } from '../hosting/journal-contents.js';
import { ExitCode } from './exit-codes.js';
import { size } from './texts.js';

const HELP = `
The directory is that of the option "journal", with a folder for each host, or the folder of one
host. The command only reads, so the cluster may run meanwhile.

For each host it prints the eras, and for each era the groups: the index of the snapshot that the
journal starts with, and the index after the last entry. Snapshots that do not count yet follow: such
a snapshot replaces what is older once no recovery can need that. If a journal has left entries out,
its next snapshot is taken at a mark, and the mark is shown. If a file is corrupt, the command names
it, and the place of the first error.

Examples:
  $ tram journal show /var/lib/tram/bank
  $ tram journal show /var/lib/tram/bank/host-0 --json

Exit codes:
  0  the journals are readable
  1  a journal is corrupt, or there is none
`;

export function registerJournal(program: Command): void {
  program
    .command('journal')
    .helpGroup('Journals and backups:')
    .summary('look at the journals of hosts')
    .description('Looks at the files in which hosts keep what their groups have decided.')
    .command('show')
    .summary('print what the journals have')
    .description('Prints eras, groups, indices and sizes, and the first error of each journal.')
    .argument('<directory>', 'the directory of the journals, or the folder of one host')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (directory: string, flags: { readonly json?: boolean }) => {
      const { contentsOfJournals } = await import('../hosting/journal-contents.js');
      const journals = contentsOfJournals(directory);
      const text = flags.json ? JSON.stringify({ journals }) : describeJournals(journals);
      process.stdout.write(`${text}\n`);
      const isFine = journals.every(({ error }) => error === undefined);
      process.exitCode = isFine ? ExitCode.fine : ExitCode.failure;
    });
}

function describeJournals(journals: readonly JournalContents[]): string {
  return journals.map(describeJournal).join('\n\n');
}

function describeJournal({
  folder,
  clusterId,
  host,
  promisedEra,
  ...rest
}: JournalContents): string {
  const identity =
    clusterId === undefined
      ? 'no identity'
      : `host ${host} of cluster ${clusterId}, has promised era ${promisedEra}`;
  const lines = [`${folder}: ${identity}`, ...rest.eras.flatMap(describeEra)];
  if (rest.error !== undefined) lines.push(`  ${rest.error.code}: ${rest.error.message}`);
  return lines.join('\n');
}

function describeEra({ era, isOpened, bytes, segments, ...rest }: EraContents): string[] {
  const state = isOpened ? 'opened' : 'not opened';
  const files = `${segments} ${segments === 1 ? 'segment' : 'segments'}`;
  const heading = `  era ${era}: ${state}, ${files}, ${size(bytes)}`;
  const rows = rest.groups.map(({ group, snapshotIndex, end }) => [
    `g${group}`,
    `${snapshotIndex}`,
    `${end - snapshotIndex}`,
    `${end}`,
  ]);
  const pending = rest.pending.map(({ group, snapshotIndex, mark }) => {
    const place = mark > 0 ? `mark ${mark}` : 'no mark';
    return `    g${group} has a snapshot at ${snapshotIndex} (${place}) that does not count yet`;
  });
  return [heading, ...table([['group', 'snapshot at', 'entries', 'end'], ...rows]), ...pending];
}

/** Columns of figures, flush right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padStart(widths[column]));
    return `    ${cells.join('  ')}`;
  });
}
