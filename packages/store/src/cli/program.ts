/** The options of `tram-store`, and how it runs and ends. */

import { Command, InvalidArgumentError, Option } from 'commander';
import { POLICIES, type Policy } from '../engine/eviction.js';
import { parseMemory } from '../gateway/settings.js';
import { Store } from '../index.js';
import { DURABILITIES, MEMORIES, StoreError, type StoreOptions } from '../options.js';
import { VERSION } from '../version.js';
import { integer, PASSWORD_VARIABLE, passwordOf, read } from './arguments.js';
import { createImport } from './import.js';

interface Flags {
  readonly port: number;
  readonly bind: readonly string[];
  readonly unixsocket?: string;
  readonly shards: number;
  readonly replicas: number;
  readonly memory: (typeof MEMORIES)[number];
  readonly name?: string;
  readonly durability: (typeof DURABILITIES)[number];
  readonly journal?: string;
  readonly attach?: string;
  readonly config?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly maxmemory?: number;
  readonly maxmemoryPolicy?: Policy;
  readonly maxclients: number;
  readonly metrics?: number;
}

const EPILOGUE = `
Examples:
  $ tram-store
  $ redis-cli set greeting hello

  Eight shards of three processes each, on disk, with a password that "ps" does not show:
    $ ${PASSWORD_VARIABLE}=… tram-store --shards 8 --memory processes --durability always --journal ./data

  For other machines:
    $ tram-store --bind 0.0.0.0 --password-file secret.txt --tls-cert cert.pem --tls-key key.pem

  A second gateway to the same keys:
    $ tram-store --memory processes --name shop
    $ tram-store --attach shop --port 6380

  A gateway to a cluster on machines:
    $ tram-store --config cluster.yaml

  Keys of Redis, to a store that runs:
    $ tram-store import --help

Exit codes:
  0  the store was ended by SIGTERM, SIGINT or SHUTDOWN
  1  it could not start, or has failed
  2  wrong usage
`;

export function createProgram(): Command {
  return new Command('tram-store')
    .description(
      'A sharded, replicated store behind the Redis protocol: every command and transaction works on any keys, atomically.',
    )
    .version(VERSION)
    .option('--port <port>', 'TCP port; 0: none', integer(0, 65_535), 6379)
    .option('--bind <address...>', 'addresses to listen at', ['127.0.0.1'])
    .option('--unixsocket <path>', 'also listen at a Unix socket')
    .option('--shards <number>', 'parts that the keys are divided into', integer(1, 64), 4)
    .option('--replicas <number>', 'copies of each shard: 1, 3, 5 or 7', integer(1, 7), 3)
    .addOption(new Option('--memory <kind>', 'what runs them').choices(MEMORIES).default('threads'))
    .option('--name <name>', 'by which the command "tram" finds them, with --memory processes')
    .addOption(
      new Option('--durability <mode>', 'what survives if all of them end at once')
        .choices(DURABILITIES)
        .default('none'),
    )
    .option('--journal <directory>', 'where the journals are, with --durability')
    .option('--attach <name>', 'be a further gateway to the store of this name')
    .option(
      '--config <file>',
      'connect to the running cluster that this file describes, such as one on machines',
    )
    .option('--password <password>', `needed by clients; better: ${PASSWORD_VARIABLE}, or a file`)
    .option('--password-file <file>', 'a file with the password')
    .option('--tls-cert <file>', 'use TLS, with this certificate')
    .option('--tls-key <file>', 'the key of the certificate')
    .option('--tls-ca <file>', 'clients need a certificate that this authority has signed')
    .option('--maxmemory <bytes>', 'what all keys may take, such as 2gb; 0: any number', memory)
    .addOption(
      new Option(
        '--maxmemory-policy <policy>',
        'which keys are evicted when they take more',
      ).choices(POLICIES),
    )
    .option('--maxclients <number>', 'connections at a time', integer(1, 2 ** 31 - 1), 10_000)
    .option(
      '--metrics <port>',
      'serve /metrics for Prometheus, /healthz and /readyz at this port of the same addresses',
      integer(1, 65_535),
    )
    .addHelpText('after', EPILOGUE)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride()
    .enablePositionalOptions()
    .helpCommand(false)
    .addCommand(createImport())
    .action((flags: Flags) => run(flags));
}

async function run(flags: Flags): Promise<void> {
  const store = await Store.start(optionsOf(flags));
  const places = [
    ...(store.port === undefined ? [] : flags.bind.map((host) => `${host}:${store.port}`)),
    ...(flags.unixsocket === undefined ? [] : [flags.unixsocket]),
  ];
  if (flags.metrics !== undefined) {
    process.stderr.write(`tram-store: /metrics, /healthz and /readyz at port ${flags.metrics}\n`);
  }
  process.stderr.write(`tram-store: ready for clients at ${places.join(', ')}\n`);
  await Promise.race([untilSignal(), store.shutDown]);
  await store.close();
}

/** @returns at the first signal. A second one ends the process at once. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}

function optionsOf(flags: Flags): StoreOptions {
  const { port, bind, unixsocket, name, attach, config, journal, metrics } = flags;
  const { maxmemory, maxmemoryPolicy } = flags;
  if (port === 0 && unixsocket === undefined) {
    throw new StoreError('there is nothing to listen at', 'Use --port or --unixsocket.');
  }
  if (metrics !== undefined && metrics === port) {
    throw new StoreError('clients and metrics can not share a port', 'Use another --metrics.');
  }
  if (attach !== undefined && (name ?? config) !== undefined) {
    const hint = 'Use one of --name, --attach and --config.';
    throw new StoreError('a gateway that attaches starts no cluster, and has one only', hint);
  }
  if (name !== undefined && flags.memory !== 'processes') {
    throw new StoreError('nobody else could reach threads by a name', 'Add --memory processes.');
  }
  if (flags.durability !== 'none' && journal === undefined && config === undefined) {
    const hint = 'Add --journal with a directory on a disk that survives.';
    throw new StoreError(`--durability ${flags.durability} needs a place for the journals`, hint);
  }
  const password = passwordOf(flags);
  const tls = tlsOf(flags);
  return {
    port: port === 0 ? false : port,
    bind,
    shards: flags.shards,
    replicas: flags.replicas,
    memory: flags.memory,
    durability: flags.durability,
    maxclients: flags.maxclients,
    ...(unixsocket !== undefined && { unixSocket: unixsocket }),
    ...(name !== undefined && { name }),
    ...(journal !== undefined && { journal }),
    ...(attach !== undefined && { attach }),
    ...(maxmemory !== undefined && { maxmemory }),
    ...(maxmemoryPolicy !== undefined && { maxmemoryPolicy }),
    ...(config !== undefined && { config }),
    ...(metrics !== undefined && { metrics }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls }),
  };
}

function tlsOf({ tlsCert, tlsKey, tlsCa }: Flags): StoreOptions['tls'] {
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    const hint = 'Use --tls-cert and --tls-key together.';
    throw new StoreError('TLS needs a certificate and its key', hint);
  }
  return {
    cert: read(tlsCert, '--tls-cert'),
    key: read(tlsKey, '--tls-key'),
    ...(tlsCa !== undefined && { ca: read(tlsCa, '--tls-ca') }),
  };
}

function memory(text: string): number {
  const bytes = parseMemory(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError('It has to be a number of bytes such as 500mb or 2gb.');
}
