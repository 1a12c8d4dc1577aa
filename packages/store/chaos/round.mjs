/** One round: a store of processes under load and faults, then the check of what the clients have seen. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { check } from '../dist/check/history.js';
import { Load } from './load.mjs';
import { StoreProcesses } from './processes.mjs';
import { mulberry32 } from './random.mjs';

const SHARDS = 4;
const GATEWAYS = { processes: 3, threads: 1 };
const CLIENTS = 6;

/**
 * @typedef {object} Result
 * @property {number} seed
 * @property {string} durability
 * @property {Record<string, number>} faults
 * @property {Record<string, number>} transactions
 * @property {string | undefined} violation
 * @property {readonly string[]} errors
 */

/**
 * @param {{ seed: number, seconds: number, memory: 'processes' | 'threads', durability: 'none' | 'always' }} options
 * @returns {Promise<Result>}
 */
export async function runRound({ seed, seconds, memory, durability }) {
  const random = mulberry32(seed);
  const folder = mkdtempSync(join(tmpdir(), 'store-chaos-'));
  const name = `store-chaos-${process.pid}-${seed}`;
  const gateways = GATEWAYS[memory];
  const store = new StoreProcesses({ folder, name, memory, shards: SHARDS, durability, gateways });
  const load = new Load(mulberry32(seed + 1));
  const faults = { leaders: 0, gateways: 0, all: 0 };
  try {
    await store.start();
    const clients = store.sockets.flatMap((socket, i) =>
      Array.from({ length: CLIENTS / gateways }, (_, k) => load.run(socket, `c${i}.${k}`)),
    );
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      await sleep(500 + random() * 2000);
      const draw = random();
      if (durability === 'always' && (memory === 'threads' || draw < 0.25)) {
        await store.killAll();
        await store.start();
        faults.all++;
      } else if (memory === 'threads') continue;
      else if (draw < 0.6) {
        await store.killGateway(1 + Math.floor(random() * (gateways - 1)));
        faults.gateways++;
      } else if (await store.killLeader(Math.floor(random() * SHARDS))) faults.leaders++;
    }
    load.end();
    await Promise.all(clients);
    await load.readAll(store.sockets[gateways - 1]);
    const violation = check(load.history);
    return { seed, durability, faults, transactions: load.counts, violation, errors: load.errors };
  } finally {
    load.end();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
