/**
 * Clients take turns with a lock, in the order in which they have asked for it, although the leader crashes while they wait,
 * one of them gives up, another one ends, and a holder is paused for longer than its lease. service.ts explains how.
 *
 * Node runs JavaScript: compile first. `npx tsc -p examples/locks && node examples/locks/dist/main.js`
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, TramError } from 'tram-multicast';
import locks, { type Reply } from './service.js';

/** The groups. A real service would distribute its locks over several. */
const LOCKS = 0;
const STORE = 1;
const lock = 'printer';

/** A lease that does not run out here, and one that does. */
const LONG_MS = 60_000;
const SHORT_MS = 500;
const TURNS = 6;

type LockClient = ReturnType<typeof locks.client>;

const cluster = await Cluster.start({
  groups: 2,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});
const clerk = await connect();
let holders = 0;
let mostHolders = 0;

await takeTurns();
await vanish();
await cluster.close();

/** Clients queue for the lock. While they wait, the leader crashes, one of them gives up, and another one ends. */
async function takeTurns(): Promise<void> {
  const first = await acquire(clerk, LONG_MS);
  const served: number[] = [];
  const turns: Promise<number>[] = [];
  const patience = new AbortController();
  const [impatient, ending] = [await connect(), await connect()];
  for (let turn = 0; turn < TURNS / 2; turn++) {
    turns.push(takeTurn(turn, served));
    await queueHas(turn + 1);
  }
  const { signal } = patience;
  const givenUp = codeOf(impatient.call(LOCKS, acquiring(LONG_MS), { signal }));
  await queueHas(TURNS / 2 + 1);
  const ended = codeOf(ending.call(LOCKS, acquiring(LONG_MS)));
  await queueHas(TURNS / 2 + 2);
  for (let turn = TURNS / 2; turn < TURNS; turn++) {
    turns.push(takeTurn(turn, served));
    await queueHas(turn + 3);
  }

  const host = await crashLeader();
  console.log(`${TURNS + 2} clients wait; host ${host}, which led the locks, has crashed`);
  patience.abort();
  ending.client.destroy();
  check('the call of a client that gives up fails', (await givenUp) === 'TRAM_OUTCOME_UNKNOWN');
  check('so does that of a client that ends', (await ended) === 'TRAM_OUTCOME_UNKNOWN');
  await queueHas(TURNS);
  await release(clerk, first);

  const fences = await Promise.all(turns);
  const asked = [...turns.keys()];
  check('all others got the lock, in the order in which they had asked', isSame(served, asked));
  check('each got a higher fencing number than the one before', isAscending([first, ...fences]));
  check('no two held the lock at the same time', mostHolders === 1);
  const { fence, waiting } = await clerk.call(LOCKS, { type: 'look', lock });
  check('in the end the lock is free, and nobody waits', fence === 0 && waiting === 0);
  await cluster.restart(host);
}

/** Waits for the lock, writes under it and releases it. Returns the fencing number. */
async function takeTurn(turn: number, served: number[]): Promise<number> {
  const client = await connect();
  const fence = await acquire(client, LONG_MS);
  served.push(turn);
  mostHolders = Math.max(mostHolders, ++holders);
  const { accepted } = await client.call(STORE, { type: 'write', fence, text: `turn ${turn}` });
  if (!accepted) check(`turn ${turn} may write`, false);
  holders--;
  await release(client, fence);
  await client.close();
  return fence;
}

/** A holder is paused for longer than its lease. Another client gets the lock. */
async function vanish(): Promise<void> {
  const paused = await connect();
  const old = await acquire(paused, SHORT_MS);
  const client = await connect();
  // This waits until the lease has run out.
  const fence = await acquire(client, LONG_MS);
  await client.call(STORE, { type: 'write', fence, text: 'by the new holder' });
  check('the lock of a holder that has vanished goes to the next', fence > old);

  const late = await paused.call(STORE, { type: 'write', fence: old, text: 'too late' });
  check('the store refuses what the former holder writes', !late.accepted && late.fence === fence);
  const renewal = { type: 'renew', lock, fence: old, leaseMs: SHORT_MS } as const;
  const { accepted } = await paused.call(LOCKS, renewal);
  check('nor can it renew its lease', !accepted);
  await release(client, fence);
}

async function connect(): Promise<LockClient> {
  return locks.client(await cluster.connect());
}

function acquiring(leaseMs: number) {
  return { type: 'acquire', lock, leaseMs } as const;
}

/** Waits for its turn, however long it takes. */
async function acquire(client: LockClient, leaseMs: number): Promise<number> {
  const { fence } = await client.call(LOCKS, acquiring(leaseMs), { timeoutMs: Infinity });
  return fence;
}

async function release(client: LockClient, fence: number): Promise<Reply> {
  return client.call(LOCKS, { type: 'release', lock, fence });
}

async function queueHas(count: number): Promise<void> {
  while ((await clerk.call(LOCKS, { type: 'look', lock })).waiting !== count) await pause(5);
}

/** Crashes the host of the locks' leader. */
async function crashLeader(): Promise<number> {
  const { leader = 0, replicas } = cluster.status().groups[LOCKS]!;
  const { host } = replicas[leader]!;
  await cluster.crash(host);
  return host;
}

/** The code of the error with which a call fails. */
function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'none',
    (error: unknown) => (error instanceof TramError ? error.code : String(error)),
  );
}

function isSame(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((value, i) => value === other[i]);
}

function isAscending(values: readonly number[]): boolean {
  return values.every((value, i) => i === 0 || value > values[i - 1]!);
}

function check(claim: string, holds: boolean): void {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
