/**
 * Attacks a store with malformed requests, while a client that behaves well checks its replies. It must not notice anything but that the
 * store is busy, and the memory of the gateway and of the hosts must be about what it was before.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { StoreProcesses } from '../processes.mjs';
import { Client, Experience } from '../soak/clients.mjs';
import { memoryOf } from '../soak/memory.mjs';
import { Witness } from './witness.mjs';

const MEMORY_IN_USE = new URL('memory-in-use.mjs', import.meta.url).href;
const ATTACKERS = fileURLToPath(new URL('attackers.mjs', import.meta.url));
const SHARDS = 4;
/**
 * How much more memory the gateway, or all hosts together, may use afterwards. Before, they know some 400 scripts; afterwards the last 500,
 * and keep 1000 as compiled code.
 */
const GROWTH_MIB_MAX = 150;
const MIB = 1024 * 1024;
/** How long a process may take to collect its garbage. */
const COLLECTION_MS_MAX = 60_000;

/** @param {{ seed: number, seconds: number, connections: number, names: readonly string[] }} options */
export async function runMalformed({ seed, seconds, connections, names }) {
  const folder = mkdtempSync(join(tmpdir(), 'store-malformed-'));
  const port = await freePort();
  const store = new StoreProcesses({
    folder,
    name: `store-malformed-${process.pid}`,
    memory: 'processes',
    shards: SHARDS,
    durability: 'none',
    gateways: 1,
    more: ['--port', String(port), '--maxclients', String(connections + 1000)],
    nodeOptions: ['--expose-gc', '--import', MEMORY_IN_USE],
  });
  const experience = new Experience();
  process.env.STORE_MEMORY_FOLDER = folder;
  const used = async () => ({
    gateway: await usedMiB(folder, 'gateway', store.gatewayPids),
    hosts: await usedMiB(folder, 'host', await store.hostPids()),
  });
  try {
    await store.start();
    const client = await Client.connect('ioredis', store.sockets[0], 'the witness', experience);
    const witness = new Witness(client);
    const shortSeconds = Math.max(1, seconds / 6);
    /** @param {number} seconds @param {number} connections */
    const startAttack = async (seconds, connections) => {
      const args = [store.sockets[0], port, connections, seconds, seed, ...names];
      const attackers = fork(ATTACKERS, args.map(String));
      await messageOf(attackers);
      return { counts: messageOf(attackers) };
    };
    // The buffers and heaps of the gateway find their sizes.
    await (await startAttack(shortSeconds, 0)).counts;
    const before = await witness.watch(sleep(shortSeconds * 1000));
    const beforeMiB = await used();
    const hosts = await store.hostPids();
    const attack = startAttack(seconds, connections);
    let mostMiB = 0;
    const sampling = setInterval(() => {
      mostMiB = Math.max(mostMiB, Math.round(memoryOf(store.gatewayPids[0]) / MIB));
    }, 200);
    const during = await witness.watch(attack.then(({ counts }) => counts));
    clearInterval(sampling);
    const attacks = await (await attack).counts;
    const after = await witness.watch(sleep(shortSeconds * 1000));
    const afterMiB = await used();
    client.close();
    const hostsNow = await store.hostPids();
    const hostsEnded = hosts.filter((pid) => !hostsNow.includes(pid)).length;
    const isLevel =
      afterMiB.gateway <= beforeMiB.gateway + GROWTH_MIB_MAX &&
      afterMiB.hosts <= beforeMiB.hosts + GROWTH_MIB_MAX;
    const areKept = attacks['connections that say nothing'] === connections;
    return {
      isFine: experience.mistakes.length === 0 && hostsEnded === 0 && isLevel && areKept,
      seed,
      seconds,
      attacks,
      latencies: { before, during, after },
      usedMiB: { before: beforeMiB, after: afterMiB },
      mostOfGatewayMiB: mostMiB,
      hostsEnded,
      mistakes: experience.mistakes,
    };
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * What these processes use together, without garbage. Each of them tells it by a file: see `memory-in-use.mjs`.
 * @param {string} folder  of these files
 * @param {'gateway' | 'host'} kind
 * @param {readonly number[]} pids
 */
export async function usedMiB(folder, kind, pids, msMax = COLLECTION_MS_MAX) {
  let bytes = 0;
  for (const [i, pid] of pids.entries()) {
    const path = join(folder, String(pid));
    rmSync(path, { force: true });
    process.kill(pid, 'SIGUSR2');
    const deadline = performance.now() + msMax;
    while (!existsSync(path)) {
      if (performance.now() > deadline) {
        throw new Error(`${kind} ${i} (process ${pid}) does not tell how much memory it uses`);
      }
      await sleep(50);
    }
    bytes += Number(readFileSync(path, 'utf8'));
  }
  return Math.round(bytes / MIB);
}

/** The next one. @param {import('node:child_process').ChildProcess} child @returns {Promise<any>} */
function messageOf(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) =>
      reject(new Error(`the attackers have ended with exit code ${code}`)),
    );
  });
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  return port;
}
