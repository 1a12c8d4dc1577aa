/** `tram secret`: makes the file by which the machines of a cluster know each other. */
import type { Command } from 'commander';
import { ExitCode } from './exit-codes.js';

const HELP = `
A cluster across machines (memory: machines) lets in whoever knows its secret, and nobody else: hosts
and clients prove to each other that they do, and it never crosses the network. Who knows it may
read and write everything in the cluster. So the file is for its owner alone (mode 0600), and TRAM
refuses one that others could read.

It holds 64 hexadecimal digits from the system's source of random numbers. An existing file is
never overwritten. Copy it to every host and client, in a way that nobody can listen to, and name
it in their configuration ("secret: cluster.secret"; the path begins at the configuration file).

Examples:
  $ tram secret cluster.secret
  $ scp -p cluster.yaml cluster.secret beta:/etc/tram/

Exit codes:
  0  it is made
  1  there is such a file already, or it can't be written
`;

export function registerSecret(program: Command): void {
  program
    .command('secret')
    .helpGroup('Run a cluster across machines:')
    .summary('make the secret of a cluster across machines')
    .description(
      'Makes a file with a new secret, by which the machines of a cluster know each other.',
    )
    .argument('<file>', 'to be made')
    .addHelpText('after', HELP)
    .action(async (file: string) => {
      const { makeSecret } = await import('../hosting/machines/secret.js');
      makeSecret(file);
      process.stdout.write(
        `${file} is made: copy it to all machines, and let nobody else read it\n`,
      );
      process.exitCode = ExitCode.fine;
    });
}
