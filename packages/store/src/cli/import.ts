/** `tram-store import`: copies keys of Redis to a running store. */

import { Command } from 'commander';
import { Connection } from '../import/connection.js';
import { RdbFile } from '../import/from-file.js';
import { Replication } from '../import/from-replication.js';
import { importByScan } from '../import/from-scan.js';
import { Importer, type ImportOptions, withCount } from '../import/importer.js';
import { Stopwatch } from '../import/progress.js';
import { type Report, reportOf, reportOfChanges } from '../import/report.js';
import {
  bytesOf,
  isUrl,
  placeOf,
  type Server,
  type Source,
  sourceOf,
  type TlsKeys,
} from '../import/server.js';
import { StoreError } from '../options.js';
import { integer, PASSWORD_VARIABLE, type PasswordFlags, passwordOf, read } from './arguments.js';

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
rediss://HOST:PORT with TLS.

A file is checked as a whole before anything of it is sent. A server sends its keys as they are at one moment, as to
a replica. With --follow, the store gets its later changes as well, until this command is ended: stop the writers,
end it, and let them go on with the store. With --scan, each key is asked for, which servers allow that accept no
replicas; what is written meanwhile may be missing.

Keys that the store has already stay as they are, unless --replace is given. From a server, the store has to be
empty without it.

The password of a Redis server is in the URL, or better in the variable ${SOURCE_PASSWORD_VARIABLE}.

Examples:
  $ tram-store import dump.rdb
  $ tram-store import dump.rdb --to 10.0.0.5:6379 --password-file secret.txt --replace
  $ tram-store import redis://10.0.0.9:6379 --follow
  $ ${SOURCE_PASSWORD_VARIABLE}=… tram-store import rediss://cache.example.com:6380 --scan

  Back to Redis 7.0 or later:
    $ tram-store import redis://127.0.0.1:6379 --scan --to 10.0.0.9:6379

Exit codes:
  0  everything is in the store that should be there
  1  the import has failed, or has left something out: it says what
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
  requireSense(source, flags);
  const ended = new AbortController();
  const end = () => ended.abort();
  for (const signal of SIGNALS) process.once(signal, end);
  try {
    if (isUrl(source)) await importServer(sourceOf(source), flags, ended.signal);
    else await importFile(source, flags, ended.signal);
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

async function importFile(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const options = optionsOf(flags, flags.db, signal);
  const file = new RdbFile(path, options, process.stderr);
  await file.check();
  await withImporter(flags, options, (importer) =>
    copied(
      importer,
      flags.db !== undefined,
      'Then run it again with --replace.',
      file.importInto(importer),
    ),
  );
}

async function importServer(source: Source, flags: Flags, signal: AbortSignal): Promise<void> {
  if (source.database !== undefined && flags.db !== undefined && source.database !== flags.db) {
    const hint = 'Use --db, or the number at the end of the URL.';
    throw new StoreError('there are two databases', hint);
  }
  const db = flags.db ?? source.database;
  const options = optionsOf(flags, db, signal);
  const server = serverOf(source, flags);
  const again = options.replaces
    ? 'Then run it again.'
    : 'Then empty the store with FLUSHALL, and run it again.';
  await withImporter(flags, options, async (importer) => {
    if (flags.scan === true) {
      const connection = await Connection.open(server);
      try {
        const copy = importByScan(connection, importer, options, process.stderr);
        await copied(importer, db !== undefined, again, copy);
      } finally {
        connection.close();
      }
      return;
    }
    const replication = await Replication.open(server, importer, options, process.stderr);
    try {
      await copied(importer, db !== undefined, again, replication.copy());
      if (flags.follow === true) show(reportOfChanges(await replication.follow()));
    } finally {
      replication.close();
    }
  });
}

function optionsOf(flags: Flags, db: number | undefined, signal: AbortSignal): ImportOptions {
  return { database: db ?? 0, replaces: flags.replace ?? false, signal };
}

async function withImporter(
  flags: Flags,
  options: ImportOptions,
  use: (importer: Importer) => Promise<void>,
): Promise<void> {
  const target = await Connection.open(storeOf(flags));
  try {
    await use(await Importer.open(target, options));
  } finally {
    target.close();
  }
}

/** @param again  what to do before the next attempt, if it fails */
async function copied(
  { tally }: Importer,
  choseDatabase: boolean,
  again: string,
  copy: Promise<void>,
): Promise<void> {
  const watch = new Stopwatch();
  await withCount(tally, again, copy);
  show(reportOf(tally, watch.seconds, choseDatabase));
}

function show({ lines, isComplete }: Report): void {
  process.stdout.write(`${lines.join('\n')}\n`);
  if (!isComplete) process.exitCode = 1;
}

function storeOf(flags: Flags): Server {
  const password = passwordOf(flags);
  return {
    place: placeOf(flags.to),
    ...(password !== undefined && { password }),
    ...(flags.tls === true && { tls: tlsKeysOf(flags) }),
    hint: 'Start the store, or name its address with --to.',
  };
}

function serverOf({ place, username, password, usesTls }: Source, flags: Flags): Server {
  const variable = process.env[SOURCE_PASSWORD_VARIABLE];
  const secret = password ?? (variable ? bytesOf(variable) : undefined);
  return {
    place,
    ...(username !== undefined && { username }),
    ...(secret !== undefined && { password: secret }),
    ...(usesTls && { tls: tlsKeysOf(flags) }),
    hint: 'Check the address of the Redis server, and whether it uses TLS (rediss://).',
  };
}

function tlsKeysOf({ tlsCa, tlsCert, tlsKey }: Flags): TlsKeys {
  return {
    ...(tlsCa !== undefined && { ca: read(tlsCa, '--tls-ca') }),
    ...(tlsCert !== undefined && { cert: read(tlsCert, '--tls-cert') }),
    ...(tlsKey !== undefined && { key: read(tlsKey, '--tls-key') }),
  };
}

function requireSense(source: string, flags: Flags): void {
  const { tls, tlsCa, tlsCert, tlsKey, scan, follow } = flags;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const hint = 'Use --tls-cert and --tls-key together.';
    throw new StoreError('a certificate needs its key, and a key its certificate', hint);
  }
  const usesTls = tls === true || /^rediss:/i.test(source);
  if (!usesTls && (tlsCa ?? tlsCert) !== undefined) {
    const hint = 'Add --tls for the store, or use rediss:// for Redis.';
    throw new StoreError('there are certificates, but no server uses TLS', hint);
  }
  if (!isUrl(source) && (scan ?? follow) !== undefined) {
    const hint = 'Use redis://HOST:PORT.';
    throw new StoreError('--scan and --follow need a running Redis server', hint);
  }
  if (scan === true && follow === true) {
    const hint = 'Use --follow without --scan.';
    throw new StoreError('a server that is asked for each key does not tell its changes', hint);
  }
}
