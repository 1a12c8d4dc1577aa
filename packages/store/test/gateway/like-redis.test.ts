/** Sessions as Redis has them: draws requests on the session, and compares all bytes that come back with those of the real server. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasRedisServer } from '../differential/redis-server.js';
import { PlainClient, type Started, startGateway } from './started.js';

interface Pair {
  readonly redis: ChildProcess;
  readonly path: string;
  readonly folder: string;
  readonly ours: Started;
}

/** Which commands are slow depends on the machine. */
const SLOWLOG = 'slowlog-log-slower-than';

async function startPair(password: string): Promise<Pair> {
  const folder = mkdtempSync(join(tmpdir(), 'store-like-redis-'));
  const path = join(folder, 'socket');
  const options = [
    '--port',
    '0',
    '--unixsocket',
    path,
    '--dir',
    folder,
    '--save',
    '',
    '--databases',
    '1',
    `--${SLOWLOG}`,
    '-1',
  ];
  const redis = spawn('redis-server', [...options, '--requirepass', password], { stdio: 'ignore' });
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 10));
  const settings = { requirepass: password, [SLOWLOG]: '-1' };
  return { redis, path, folder, ours: await startGateway(settings) };
}

async function stopPair({ redis, folder, ours }: Pair): Promise<void> {
  redis.kill('SIGKILL');
  await once(redis, 'exit');
  rmSync(folder, { recursive: true, force: true });
  await ours.close();
}

/**
 * Everything that a server says, until it ends the connection.
 * @param pieces  each waits for the replies to those before it
 */
async function conversation(client: PlainClient, pieces: readonly string[][]): Promise<string> {
  let requests = 0;
  for (const piece of pieces) {
    await client.untilReplied(requests);
    client.sendRaw(piece.map((line) => `${line}\r\n`).join(''));
    requests += piece.length;
  }
  const bytes = await client.readAll();
  return bytes.replace(/\$2\r\nid\r\n:\d+/g, '$2\r\nid\r\n:ID');
}

async function expectAlike({ path, ours }: Pair, ...pieces: readonly string[][]): Promise<void> {
  const all = [...pieces.slice(0, -1), [...pieces.at(-1)!, 'QUIT']];
  const redis = await conversation(PlainClient.of(connect(path)), all);
  const store = await conversation(await PlainClient.connect(ours.port), all);
  expect(store).toBe(redis);
}

/**
 * Redis ends the connection of a client without its password if it has more than 1 KiB to say to it. After RESET, that includes what it
 * had to say before. So RESET begins a new piece.
 */
function piecesOf(lines: readonly string[]): string[][] {
  const pieces: string[][] = [[]];
  for (const line of lines) {
    if (line === 'RESET') pieces.push([line]);
    else pieces.at(-1)!.push(line);
  }
  return pieces;
}

const COMMON = [
  ...['PING', 'PING hello', 'PING a b', 'ECHO x', 'ECHO', 'SELECT 0', 'SELECT 1', 'SELECT x'],
  ...['HELLO', 'HELLO 2', 'HELLO 3', 'HELLO 4', 'HELLO x', 'HELLO 3 SETNAME me', 'HELLO 2 FOO'],
  ...['CLIENT SETNAME you', 'CLIENT SETNAME "a b"', 'CLIENT GETNAME', 'CLIENT', 'CLIENT FOO'],
  ...['CLIENT REPLY ON', 'CLIENT REPLY OFF', 'CLIENT REPLY SKIP', 'CLIENT REPLY', 'CLIENT REPLY X'],
  ...['AUTH x', 'AUTH default x', 'AUTH a b c', 'AUTH', 'RESET', 'RESET x', 'FOO', 'FOO a "b c"'],
  ...['GET k', 'GET', 'SET k 1', 'INCR k', 'MGET k l m', 'LPUSH l x', 'LRANGE l 0 -1', 'GET l'],
  ...['CONFIG', 'CONFIG FOO', 'CONFIG GET', 'CONFIG SET a', 'CONFIG SET nothing 1'],
  ...['CONFIG GET maxmemory-policy', 'CLIENT UNBLOCK 999999', 'CLIENT KILL ID 999999', 'WAIT x 0'],
  ...['CLIENT PAUSE x', 'CLIENT NO-EVICT on', 'CLIENT NO-EVICT x', 'CLIENT TRACKING off', 'LOLWUT'],
  ...[
    'COMMAND GETKEYS MSET a 1 b 2',
    'COMMAND GETKEYS PING x',
    'COMMAND GETKEYS FOO x',
    'SLOWLOG LEN',
  ],
  ...[
    'CLIENT GETREDIR',
    'CLIENT TRACKINGINFO',
    'LATENCY LATEST',
    'SLOWLOG GET',
    'OBJECT',
    'INFO nothing',
  ],
  ...['ACL WHOAMI', 'ACL USERS', 'ACL LIST', 'ACL GETUSER default', 'ACL GETUSER nobody', 'ACL'],
  ...['ACL CAT nothing', 'ACL cat hash a', 'ACL GENPASS x', 'ACL GENPASS 0', 'ACL GENPASS 5000'],
  ...['CLUSTER', 'READONLY', 'READWRITE', 'ASKING', 'ROLE'],
];

const TRANSACTIONS = [
  ...['MULTI', 'MULTI', 'MULTI', 'EXEC', 'EXEC', 'EXEC', 'EXEC x', 'DISCARD', 'WATCH k', 'WATCH'],
  ...['UNWATCH', 'WATCH k l', 'BLPOP l', 'BLPOP l x'],
];

/** Without what only Redis allows within a transaction. */
const IN_TRANSACTIONS = COMMON.filter((line) => !/REPLY|^INFO|^HELLO/.test(line));

const CHANNELS = [
  ...[
    'SUBSCRIBE a',
    'SUBSCRIBE a a',
    'SUBSCRIBE',
    'UNSUBSCRIBE a',
    'UNSUBSCRIBE',
    'UNSUBSCRIBE x y',
  ],
  ...['PSUBSCRIBE p*', 'PUNSUBSCRIBE p*', 'PUNSUBSCRIBE', 'SSUBSCRIBE s', 'SUNSUBSCRIBE'],
  ...['PUBSUB NUMPAT', 'PUBSUB NUMSUB a b', 'PUBSUB CHANNELS', 'PUBSUB FOO', 'PUBLISH nobody x'],
];

/** Redis closes the connection after them. */
const MALFORMED = [
  ...['*x', '*1\r\n+1', '*1\r\n$-1', 'SET "a', '*99999999999', '*1\r\n$99999999999', "'a'b"],
];

function drawn(lines: readonly string[], last: readonly string[]): fc.Arbitrary<string[]> {
  return fc
    .tuple(
      fc.array(fc.constantFrom(...lines), { maxLength: 25 }),
      fc.option(fc.constantFrom(...last), { nil: undefined }),
    )
    .map(([requests, end]) => ['DEL k l m', ...requests, ...(end === undefined ? [] : [end])]);
}

describe.skipIf(!process.env['CI'] && !hasRedisServer())('replies are those of Redis', () => {
  let open: Pair;
  let closed: Pair;

  beforeAll(async () => {
    open = await startPair('');
    closed = await startPair('secret');
  });

  afterAll(async () => {
    await stopPair(open);
    await stopPair(closed);
  });

  it('to what is always refused', () =>
    expectAlike(open, ['DEBUG SLEEP 0', 'DEBUG', 'CLUSTER INFO', 'CLUSTER NODES']));

  it('in transactions', async () => {
    const lines = drawn([...IN_TRANSACTIONS, ...TRANSACTIONS, ...TRANSACTIONS], MALFORMED);
    await fc.assert(
      fc.asyncProperty(lines, (requests) => expectAlike(open, requests)),
      { numRuns: 500 },
    );
  });

  it('with channels', async () => {
    const lines = drawn([...COMMON, ...CHANNELS, ...CHANNELS], MALFORMED);
    await fc.assert(
      fc.asyncProperty(lines, (requests) => expectAlike(open, requests)),
      { numRuns: 500 },
    );
  });

  it('before and after authentication', async () => {
    const auth = ['AUTH secret', 'AUTH default wrong', 'RESET'];
    const lines = drawn([...IN_TRANSACTIONS, ...auth, ...auth, ...TRANSACTIONS], MALFORMED);
    await fc.assert(
      fc.asyncProperty(lines, (requests) => expectAlike(closed, ...piecesOf(requests))),
      { numRuns: 500 },
    );
  });
});
