/**
 * Attacks a store with malformed requests, while a client that behaves well checks its replies. It must not notice anything but that the
 * store is busy, and the memory of the gateway must be what it was before.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { StoreProcesses } from '../processes.mjs';
import { Client, Experience } from '../soak/clients.mjs';
import { memoryOf } from '../soak/memory.mjs';
import { Witness } from './witness.mjs';

const ATTACKERS = fileURLToPath(new URL('attackers.mjs', import.meta.url));
const SHARDS = 4;
/** How much more memory the gateway may have afterwards: V8 returns it late. A leak would be more, after so many attacks. */
const GROWTH_MIB_MAX = 200;
/** Its memory is taken once the garbage collector has run, at most after this time. */
const SETTLING_SECONDS_MAX = 20;
const MIB = 1024 * 1024;

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
  });
  const experience = new Experience();
  const memory = () => Math.round(memoryOf(store.gatewayPids[0]) / MIB);
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
    const beforeMiB = memory();
    const hosts = await store.hostPids();
    const { counts } = await startAttack(seconds, connections);
    let mostMiB = 0;
    const sampling = setInterval(() => {
      mostMiB = Math.max(mostMiB, memory());
    }, 200);
    const during = await witness.watch(counts);
    clearInterval(sampling);
    const attacks = await counts;
    // Work makes the garbage collector run.
    const settled = async () => {
      for (let i = 0; i < SETTLING_SECONDS_MAX && memory() > beforeMiB + GROWTH_MIB_MAX; i++) {
        await sleep(1000);
      }
    };
    const after = await witness.watch(Promise.all([sleep(shortSeconds * 1000), settled()]));
    const afterMiB = memory();
    client.close();
    const hostsNow = await store.hostPids();
    const hostsEnded = hosts.filter((pid) => !hostsNow.includes(pid)).length;
    const isLevel = afterMiB <= beforeMiB + GROWTH_MIB_MAX;
    const areKept = attacks['connections that say nothing'] === connections;
    return {
      isFine: experience.mistakes.length === 0 && hostsEnded === 0 && isLevel && areKept,
      seed,
      seconds,
      attacks,
      latencies: { before, during, after },
      gatewayMiB: { before: beforeMiB, most: mostMiB, after: afterMiB },
      hostsEnded,
      mistakes: experience.mistakes,
    };
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
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
