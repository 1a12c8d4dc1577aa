/** Clients say whether they are awake, so that hosts do not spin where cores are needed. On threads, hosts wake them. */
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { openArena } from '../../src/hosting/open-arena.js';
import { markEnded } from '../../src/hosting/oversight.js';
import { HOST, HOST_STATE, PARKED } from '../../src/memory/arena.js';
import { Client, Cluster, decode, encode, until } from '../built.js';

const OPTIONS = { groups: 1, hosts: 1, replicas: 1, clients: 2 };

/** The words of both clients, in the order of their slots. */
function parkedWords(address: ArrayBufferLike | string) {
  const arena = openArena(address);
  const { map } = ClusterContext.attach(arena);
  const wordOf = (slot: number): number => map.host(map.hosts + slot) + HOST.parked;
  return {
    of: (slot: number): number => Atomics.load(arena.words, wordOf(slot)),
    set: (slot: number, value: number): void => {
      Atomics.store(arena.words, wordOf(slot), value);
    },
    close: () => arena.close(),
  };
}

test('a client is awake while it polls for a reply, and not after it', async () => {
  await using cluster = await Cluster.start(OPTIONS);
  const words = parkedWords(cluster.address);
  await using client = await Client.connect(cluster.address);
  expect(words.of(0)).toBe(PARKED.absent);
  // If something else has its core right after the message was sent, it does not poll for the reply.
  for (let wasAwake = false; !wasAwake; ) {
    const reply = client.multicast([0], encode('m'));
    await Promise.resolve();
    wasAwake = words.of(0) === PARKED.awake;
    await reply;
  }
  await until(() => words.of(0) === PARKED.absent);
});

test('a host wakes a client that waits for a reply', async () => {
  const service = fileURLToPath(new URL('../mailbox.mjs', import.meta.url));
  await using cluster = await Cluster.start({ ...OPTIONS, service });
  const words = parkedWords(cluster.address);
  await using client = await Client.connect(cluster.address);
  await using other = await Client.connect(cluster.address);
  const letter = client.multicast([0], encode('take box'));
  await until(() => words.of(0) === PARKED.parked);
  // From now on its own timer does not make it look.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    await other.multicast([0], encode('put box letter'));
    expect(decode((await letter).get(0))).toBe('letter');
  } finally {
    vi.useRealTimers();
  }
  await until(() => words.of(0) === PARKED.absent);
});

test('a client that was killed is not awake for long', async () => {
  await using cluster = await Cluster.start({ ...OPTIONS, memory: 'processes' });
  const words = parkedWords(cluster.address);
  // As a killed client leaves it: nobody holds the lock of the slot.
  words.set(1, PARKED.awake);
  await until(() => words.of(1) === PARKED.absent);
  words.close();
});

test('a host that runs again and is parked stays so if its earlier end becomes known late', () => {
  const words = new Int32Array(HOST.words);
  const start = (number: number): void => {
    words[HOST.state] = (number << 2) | HOST_STATE.running;
  };
  start(1);
  const arena = {
    words,
    // The lock is free. Before the caller goes on, the host is started again.
    isHostLocked: () => {
      start(2);
      words[HOST.parked] = PARKED.parked;
      return false;
    },
  };
  const context = { arena, map: { host: () => 0 } } as unknown as ClusterContext;
  expect(markEnded(context, 0)).toBe(false);
  expect(words[HOST.parked]).toBe(PARKED.parked);
});
