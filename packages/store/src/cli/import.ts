/** `tram-store import`: copies keys of Redis to a running store. */

import { Command } from 'commander';
import { Connection } from '../import/connection.js';
import { RdbFile } from '../import/from-file.js';
import { Importer, type ImportOptions, withCount } from '../import/importer.js';
import { Stopwatch } from '../import/progress.js';
import { reportOf } from '../import/report.js';
import { placeOf, type Server, type TlsFiles } from '../import/server.js';
import { StoreError } from '../options.js';
import { integer, PASSWORD_VARIABLE, type PasswordFlags, passwordOf } from './arguments.js';

interface Flags extends PasswordFlags {
  readonly to: string;
  readonly db?: number;
  readonly replace?: true;
  readonly scan?: true;
  readonly follow?: true;
  readonly tls?: true;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/** As redis-cli calls it. */
const SOURCE_PASSWORD_VARIABLE = 'REDISCLI_AUTH';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

const EPILOGUE = `
The source is an RDB file of Redis 7.4 or older, or the URL of a running Redis server: redis://HOST:PORT, or
rediss://HOST:PORT with TLS. A file is checked as a whole before anything of it is sent. A server sends its keys as they are at
one moment, as to a replica. With --follow, its later changes are carried out in the store as well, until this command is
ended with SIGINT: move the clients meanwhile. With --scan, the keys are asked for one by one, which managed servers
allow too; what is written meanwhile may be missing, or be there in part.

Keys that the store has already stay as they are, and are counted, unless --replace is given. From a server, the store has to
be empty then.

The password of a Redis server can be in the URL, or better in the variable ${SOURCE_PASSWORD_VARIABLE}.

Examples:
  $ tram-store import dump.rdb
  $ tram-store import dump.rdb --to 10.0.0.5:6379 --password-file secret.txt --replace
  $ tram-store import redis://10.0.0.9:6379 --follow
  $ ${SOURCE_PASSWORD_VARIABLE}=… tram-store import rediss://cache.example.com:6380/2 --scan

Exit codes:
  0  everything is in the store
  1  the import has failed, or has left out keys that the store or you may miss
  2  wrong usage
`;

export function createImport(): Command {
  return new Command('import')
    .description('Copy the keys of Redis to a running store: from an RDB file, or from a server.')
    .argument('<source>', 'an RDB file, or redis://HOST:PORT')
    .option('--to <address>', 'the store: HOST:PORT, or a Unix socket', '127.0.0.1:6379')
    .option(
      '--db <number>',
      'the database of Redis that is copied (default: 0)',
      integer(0, 99_999),
    )
    .option('--replace', 'give keys that are there already the values of Redis')
    .option('--follow', 'go on with the changes that a server makes, until SIGINT or SIGTERM')
    .option('--scan', 'ask a server for each key, if it accepts no replicas')
    .option('--password <password>', `of the store; better: ${PASSWORD_VARIABLE}, or a file`)
    .option('--password-file <file>', 'a file with the password of the store')
    .option('--tls', 'the store uses TLS')
    .option('--tls-ca <file>', 'the authority that has signed the certificates of servers')
    .option('--tls-cert <file>', 'our certificate, if servers want one')
    .option('--tls-key <file>', 'the key of our certificate')
    .addHelpText('after', EPILOGUE)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride()
    .action((source: string, flags: Flags) => run(source, flags));
}

async function run(source: string, flags: Flags): Promise<void> {
  requireSense(flags);
  const ended = new AbortController();
  const end = () => ended.abort();
  for (const signal of SIGNALS) process.once(signal, end);
  const options: ImportOptions = {
    database: flags.db ?? 0,
    replaces: flags.replace ?? false,
    signal: ended.signal,
  };
  try {
    await importFile(source, flags, options);
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

async function importFile(path: string, flags: Flags, options: ImportOptions): Promise<void> {
  const file = new RdbFile(path, options, process.stderr);
  await file.check();
  const target = await Connection.open(storeOf(flags));
  try {
    const importer = await Importer.open(target, options);
    const watch = new Stopwatch();
    await withCount(importer.tally, file.importInto(importer));
    const { lines, isComplete } = reportOf(importer.tally, watch.seconds, flags.db !== undefined);
    process.stdout.write(`${lines.join('\n')}\n`);
    if (!isComplete) process.exitCode = 1;
  } finally {
    target.close();
  }
}

function storeOf(flags: Flags): Server {
  const password = passwordOf(flags);
  return {
    place: placeOf(flags.to),
    ...(password !== undefined && { password }),
    ...(flags.tls === true && { tls: tlsFilesOf(flags) }),
    hint: 'Start the store, or name its address with --to.',
  };
}

function tlsFilesOf({ tlsCa, tlsCert, tlsKey }: Flags): TlsFiles {
  return {
    ...(tlsCa !== undefined && { ca: tlsCa }),
    ...(tlsCert !== undefined && { cert: tlsCert }),
    ...(tlsKey !== undefined && { key: tlsKey }),
  };
}

function requireSense(flags: Flags): void {
  if ((flags.tlsCert === undefined) !== (flags.tlsKey === undefined)) {
    const hint = 'Use --tls-cert and --tls-key together.';
    throw new StoreError('a certificate needs its key, and a key its certificate', hint);
  }
}
