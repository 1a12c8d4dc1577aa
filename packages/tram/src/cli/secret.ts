/** `tram secret`: creates the file with which hosts and clients of a cluster authenticate each other. */
import type { Command } from 'commander';
import { ExitCode } from './exit-codes.js';

const HELP = `
Hosts and clients of a cluster across machines (memory: machines) prove to each other that they know
its secret, and refuse all others. The secret itself is never sent over the network. Anyone who
knows it can read and write all memory of the cluster. Therefore the file has mode 0600, and TRAM
refuses a file that other users could read.

The file has 64 hexadecimal digits from the system's random number generator. The command never
overwrites a file. Copy the file to every host and client over an encrypted connection, and name it
in the configuration ("secret: cluster.secret", relative to the configuration file).

Examples:
  $ tram secret cluster.secret
  $ scp -p cluster.yaml cluster.secret beta:/etc/tram/

Exit codes:
  0  the file was created
  1  the file exists already, or can't be written
`;

export function registerSecret(program: Command): void {
  program
    .command('secret')
    .helpGroup('Run a cluster across machines:')
    .summary('create the secret of a cluster across machines')
    .description(
      'Creates a file with a new secret, with which hosts and clients authenticate each other.',
    )
    .argument('<file>', 'the file to create')
    .addHelpText('after', HELP)
    .action(async (file: string) => {
      const { makeSecret } = await import('../hosting/machines/secret.js');
      makeSecret(file);
      process.stdout.write(`created ${file}: copy it to all machines, and keep it secret\n`);
      process.exitCode = ExitCode.fine;
    });
}
