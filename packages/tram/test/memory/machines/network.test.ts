/** Networks of several hosts, in one thread and over the loopback: who is let in, who comes back, what is left behind. */
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { nowUs } from '../../../src/hosting/clock.js';
import { type Arena, ArenaMap, HOST } from '../../../src/memory/arena.js';
import { OPEN } from '../../../src/memory/contract.js';
import type { Connection } from '../../../src/memory/fabric/connection.js';
import { Fabric } from '../../../src/memory/fabric/fabric.js';
import { type FabricHandler, NO_OP_HANDLER } from '../../../src/memory/fabric/handler.js';
import { CALLER, Handshake, REFUSAL } from '../../../src/memory/machines/handshake.js';
import type { MachinesMemory } from '../../../src/memory/machines/machines-memory.js';
import { Network } from '../../../src/memory/machines/network.js';
import type { NetworkOptions, SlotKeeper } from '../../../src/memory/machines/network-options.js';
import {
  arenaPath,
  createArenaFile,
  removeArenaFile,
} from '../../../src/memory/processes/arena-file.js';
import { freePort } from '../../free-ports.js';

const ADDRESS = '127.0.0.1';
const SECRET = new Uint8Array(32).fill(7);
const DIGEST = new Uint8Array(8).fill(1);
/** Of a host that has never run, with the first revision of the addresses. */
const INTRODUCTION = 1 << 1;
const DEADLINE_MS = 20_000;

function newMap(hosts = 3): ArenaMap {
  const regions = {
    sizes: { groups: 1, replicas: hosts, clients: 1 },
    replicaRegionWords: 1024,
    clientRegionWords: 64,
    row: 0,
    scratchWords: () => 0,
  };
  return new ArenaMap(regions, hosts, 0, 0, [...Array(hosts).keys()], 0, 256);
}

interface Host {
  readonly network: Network;
  readonly memory: MachinesMemory;
  readonly arena: Arena;
  readonly said: string[];
  /** Does what a host does, if it runs. */
  isRunning: boolean;
  close(): void;
}

let hosts: Host[] = [];
let arenas = 0;

afterEach(() => {
  for (const host of hosts) host.close();
  hosts = [];
});

function newHost(number: number, ports: number[], other: Partial<NetworkOptions> = {}): Host {
  const map = other.map ?? newMap();
  const path = arenaPath(`network-${process.pid}-${arenas++}`);
  const arena = createArenaFile(path, map.words);
  removeArenaFile(path);
  const said: string[] = [];
  const network = new Network({
    map,
    arena,
    self: { caller: CALLER.host, number },
    address: ADDRESS,
    port: ports[number],
    hosts: ports.map((port) => ({ host: ADDRESS, port })),
    secret: SECRET,
    digest: DIGEST,
    patienceUs: 5_000_000,
    bufferWords: () => ({ out: 4096, in: 4096, flags: 16 }),
    log: (_, text) => said.push(text),
    onRefusal: (text) => said.push(text),
    nowUs,
    ...other,
  });
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    host.isRunning = false;
    network.close();
    arena.close();
  };
  const memory = network.memory(number);
  const host: Host = { network, memory, arena, said, isRunning: true, close };
  hosts.push(host);
  return host;
}

/** A host that listens anywhere, and whose port others are told. */
function newFirst(other: Partial<NetworkOptions> = {}): { first: Host; port: number } {
  const first = newHost(0, [0], other);
  return { first, port: first.network.port };
}

function turn(): void {
  for (const { network, isRunning } of hosts) {
    if (!isRunning) continue;
    network.poll(nowUs());
    network.flush(nowUs());
  }
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`not yet: ${what}`);
    turn();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const connected = (a: Host, b: Host, numbers: [number, number] = [0, 1]) =>
  until(
    () => a.network.isConnected(numbers[1]) && b.network.isConnected(numbers[0]),
    `${numbers} are connected`,
  );

/** Post one word, and say what became of it. */
async function write({ memory }: Host, peer: number, at: number, value: number): Promise<string> {
  memory.writeWord(peer, at, value, OPEN, 1);
  await until(() => memory.poll(), 'the write has completed');
  return memory.completion.outcome;
}

/** Calls the port with connection data, and tells how that went. */
async function call(
  fabric: Fabric,
  port: number,
  data: Uint8Array,
): Promise<{ refusal: Uint8Array } | { connection: Connection; welcome: Uint8Array }> {
  let result: Awaited<ReturnType<typeof call>> | undefined;
  const handler: FabricHandler = {
    ...NO_OP_HANDLER,
    connected: (connection, welcome) => {
      result = { connection, welcome };
    },
    refused: (_, refusal) => {
      result = { refusal };
    },
  };
  fabric.connect(ADDRESS, port, data);
  await until(() => {
    fabric.poll(handler);
    return result !== undefined;
  }, 'the call is answered');
  return result!;
}

describe('who is let in', () => {
  test('hosts that know the secret reach each other, in both directions', async () => {
    const { first, port } = newFirst();
    const second = newHost(1, [port, 0]);
    await connected(first, second);
    expect(await write(first, 1, 5, 50)).toBe('ok');
    expect(await write(second, 0, 6, 60)).toBe('ok');
    expect(second.memory.own[5]).toBe(50);
    expect(first.memory.own[6]).toBe(60);
  });

  test.each([
    ['another secret', { secret: new Uint8Array(32).fill(8) }, 'it has another secret'],
    ['another configuration', { digest: new Uint8Array(8).fill(2) }, 'another configuration'],
  ])('one with %s is not', async (_, other, complaint) => {
    const { first, port } = newFirst();
    const second = newHost(1, [port, 0], other);
    await until(() => first.said.length > 0, 'somebody was refused');
    await until(() => second.said.length > 0, 'it was told why');
    expect(second.network.complaintOf(0)).toContain(complaint);
    expect(first.network.isConnected(1)).toBe(false);
    expect(await write(second, 0, 6, 60)).toBe('lost');
  });

  test('one whom nobody knows is not', async () => {
    const { first, port } = newFirst({ map: newMap(2) });
    const third = newHost(2, [port, port, 0]);
    await until(() => third.said.length > 0, 'it was told why');
    expect(third.network.complaintOf(0)).toBe('it does not know us');
    expect(first.said[0]).toContain('there is no such host');
  });

  test('a client whose session has ended is not, and the log tells so once, until it is let in', async () => {
    let calls = 0;
    let isLetIn = false;
    const slots: SlotKeeper = {
      isOpen: true,
      awaitsEra: false,
      take: () => undefined,
      isStillOf: () => {
        calls++;
        return isLetIn;
      },
      returns: () => undefined,
      leaves: () => undefined,
    };
    const { first, port } = newFirst({ slots });
    const refusals = (): string[] => first.said.filter((text) => text.includes('no such host'));
    const client = newHost(1, [port], { self: { caller: CALLER.client, number: 0 }, port: 0 });
    await until(() => calls >= 4, 'it has called four times');
    expect(refusals()).toHaveLength(1);
    isLetIn = true;
    await until(() => client.network.isConnected(0), 'it is let in');
    isLetIn = false;
    client.network.abandon(client.network.links[0]!, 'the test ends it');
    await until(() => refusals().length === 2, 'it was refused again');
  });

  test('nobody is let in with what another has said', async () => {
    const { port } = newFirst();
    const fabric = Fabric.open({ address: ADDRESS });
    try {
      const handshake = new Handshake(SECRET, DIGEST, 1);
      const hello = handshake.newHello({
        caller: CALLER.host,
        number: 1,
        session: INTRODUCTION,
        birth: 0,
        seenBirth: 0,
      });
      const sentAway = await call(fabric, port, handshake.hello(hello));
      if (!('refusal' in sentAway)) throw new Error('let in without a proof');
      const answer = handshake.answer(hello, sentAway.refusal, 0)!;
      const letIn = await call(fabric, port, answer);
      if (!('connection' in letIn)) throw new Error('not let in');
      expect(handshake.enter(answer, letIn.welcome, 0)).toBeDefined();
      const again = await call(fabric, port, answer);
      expect(again).toEqual({ refusal: Uint8Array.of(REFUSAL.wrongProof) });
    } finally {
      fabric.close();
    }
  });

  test('garbage of every length is refused, and hosts connect all the same', async () => {
    const { first, port } = newFirst();
    const fabric = Fabric.open({ address: ADDRESS });
    try {
      for (let length = 0; length <= 256; length++) {
        const data = new Uint8Array(length).map((_, i) => (i * 7 + length) & 255);
        const { refusal } = (await call(fabric, port, data)) as { refusal: Uint8Array };
        expect([REFUSAL.otherCluster, REFUSAL.otherVersion]).toContain(refusal[0]);
      }
    } finally {
      fabric.close();
    }
    const second = newHost(1, [port, 0]);
    await connected(first, second);
  });
});

describe('hosts of one machine', () => {
  /** Two hosts that map each other's memory. @param other  what the first one takes for the memory of the second */
  async function neighbours(other?: Arena): Promise<[Host, Host]> {
    const map = newMap(2);
    const ports = await Promise.all([freePort(), freePort()]);
    const pair: Host[] = [];
    const mapArenaOf = (host: number) => ({
      words: (host === 1 && other ? other : pair[host].arena).words,
      close: () => undefined,
    });
    for (const number of [0, 1]) pair.push(newHost(number, ports, { map, mapArenaOf }));
    const [one, two] = pair;
    await connected(one, two);
    await until(() => one.network.isSettled && two.network.isSettled, 'nothing is under way');
    return [one, two];
  }

  test('write to each other without the network, and wake each other', async () => {
    const [one, two] = await neighbours();
    const before = { ...one.network.calls };
    for (let value = 1; value <= 10; value++) {
      expect(await write(one, 1, 5, value)).toBe('ok');
      expect(two.memory.own[5]).toBe(value);
    }
    const { write: writes, read: reads } = one.network.calls;
    expect([writes - before.write, reads - before.read]).toEqual([0, 0]);

    // What is there already keeps a host awake.
    two.isRunning = false;
    one.memory.writeWord(1, 5, 11, OPEN, 1);
    one.network.flush(nowUs(), 0);
    two.network.wait(10_000_000);
    expect(two.network.calls.wait).toBe(0);
    two.network.poll(nowUs());
    expect(two.memory.own[5]).toBe(11);
    await until(() => one.memory.poll(), 'the write has completed');

    // As if it slept on another thread.
    const sleeps = newMap(2).host(1) + HOST.sleeps;
    two.arena.words[sleeps] = 1;
    one.memory.writeWord(1, 5, 12, OPEN, 1);
    one.network.flush(nowUs(), 0);
    expect(one.network.calls.write - writes).toBe(1);
    expect(two.arena.words[sleeps]).toBe(0);
    two.isRunning = true;
    await until(() => one.memory.poll(), 'the write has completed');
    expect(two.memory.own[5]).toBe(12);
  });

  test('use the network if what they map is not the memory that they are connected to', async () => {
    const stale = { words: new Int32Array(newMap(2).words) } as Arena;
    const [one, two] = await neighbours(stale);
    expect(await write(one, 1, 5, 1)).toBe('ok');
    expect(await write(two, 0, 5, 2)).toBe('ok');
    expect([two.memory.own[5], one.memory.own[5]]).toEqual([1, 2]);
    expect(one.network.calls.write).toBeGreaterThan(0);
    expect(stale.words.every((word) => word === 0)).toBe(true);
  });
});

describe('who comes back', () => {
  test('takes the place of its old connection, which is still open; what was on its way is lost', async () => {
    const { first, port } = newFirst();
    const old = newHost(1, [port, 0]);
    await connected(first, old);
    // It hangs, and somebody starts it anew.
    old.isRunning = false;
    first.memory.writeWord(1, 5, 50, OPEN, 7);
    turn();
    const reborn = newHost(1, [port, 0]);
    await until(() => first.memory.poll(), 'the write has completed');
    expect(first.memory.completion).toMatchObject({ tag: 7, outcome: 'lost' });
    await connected(first, reborn);
    expect(await write(first, 1, 6, 60)).toBe('ok');
    expect(reborn.memory.own[5]).toBe(0);
    expect(reborn.memory.own[6]).toBe(60);
    // What it still has of its old life reaches nobody.
    old.memory.writeWord(0, 5, 50, OPEN, 8);
    old.network.flush(nowUs());
    for (let i = 0; i < 100; i++) turn();
    expect(first.memory.own[5]).toBe(0);
  });

  test('is dialed more and more rarely until it does, and said to be missing once', async () => {
    const port = await freePort();
    const dials: number[] = [];
    const connect = vi.spyOn(Fabric.prototype, 'connect');
    let skewUs = 0;
    const second = newHost(1, [port, 0], { nowUs: () => nowUs() + skewUs });
    const clock = () => nowUs() + skewUs;
    while (dials.length < 10) {
      const calls = connect.mock.calls.length;
      second.network.poll(clock());
      if (connect.mock.calls.length > calls) dials.push(clock());
      skewUs += 1000;
      await new Promise((resolve) => setImmediate(resolve));
    }
    connect.mockRestore();
    const gaps = dials.slice(1).map((at, i) => at - dials[i]);
    expect(gaps[4] / gaps[1]).toBeGreaterThan(4);
    expect(Math.max(...gaps)).toBeLessThan(1_500_000);
    expect(second.said.length).toBe(1);
    const first = newHost(0, [port]);
    skewUs += 2_000_000;
    // Its clock goes on from there, as fast as ours.
    await until(() => {
      second.network.poll(clock());
      second.network.flush(clock());
      return first.network.isConnected(1);
    }, 'they are connected');
  });

  test('is dialed again by one whose own address was gone meanwhile', async () => {
    const { first, port } = newFirst();
    const elsewhere = Fabric.open({ address: '192.0.2.1' });
    const { connect } = Fabric.prototype;
    const fromElsewhere = vi
      .spyOn(Fabric.prototype, 'connect')
      .mockImplementation((...args) => connect.apply(elsewhere, args));
    try {
      const second = newHost(1, [port, 0]);
      await until(() => fromElsewhere.mock.calls.length >= 3, 'it has been tried three times');
      expect(second.network.complaintOf(0)).toContain('this machine does not have that address');
      expect(second.said).toHaveLength(1);
      fromElsewhere.mockRestore();
      await connected(first, second);
      expect(second.network.complaintOf(0)).toBeUndefined();
    } finally {
      fromElsewhere.mockRestore();
      elsewhere.close();
    }
  });

  test('hundreds of times: nothing is left behind', async () => {
    const { first, port } = newFirst();
    const second = newHost(1, [port, 0]);
    const reconnect = async (breaks: Host, other: Host, number: number) => {
      const { network } = breaks;
      network.abandon(network.links[number]!, 'a test');
      await until(() => !other.network.isConnected(1 - number), 'the other one knows');
      await connected(first, second);
    };
    await connected(first, second);
    for (let i = 0; i < 5; i++) await reconnect(first, second, 1);
    const before = readdirSync('/proc/self/fd').length;
    for (let i = 0; i < 100; i++) {
      await reconnect(first, second, 1);
      await reconnect(second, first, 0);
    }
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before + 2);
    expect(first.network.holdings).toEqual({ acceptedPeers: 1, keys: 1 });
    expect(await write(first, 1, 5, 50)).toBe('ok');
  });
});
