/**
 * Mixed load of real client libraries on a store of processes, while the host that leads the most shards is killed again and again. No
 * reply may be wrong, no client may notice a lost connection, and memory has to stay level.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { check } from '../../dist/check/history.js';
import { Load } from '../load.mjs';
import { StoreProcesses } from '../processes.mjs';
import { mulberry32, Random } from '../random.mjs';
import { Client, Experience } from './clients.mjs';
import { Memory } from './memory.mjs';
import { Owned } from './owned.mjs';
import { Bank, Channel, Jobs } from './shared.mjs';
import { Expiring, Large } from './values.mjs';

const SHARDS = 4;
const SAMPLE_MS = 500;
/** After so long, the host that was killed should be back: TRAM restarts it within 2 s, at most 5 times a minute. */
const BACK_MS = 2500;
/** Between two requests of a client. */
const PAUSE_MS = 10;

/** @typedef {import('./clients.mjs').Library} Library */
/** @typedef {{ step: () => Promise<unknown>, end: () => Promise<unknown> }} Work */

/**
 * @param {{ seed: number, seconds: number, killEverySeconds: number, progress: (line: string) => void }} options
 */
export async function soak({ seed, seconds, killEverySeconds, progress }) {
  const folder = mkdtempSync(join(tmpdir(), 'store-soak-'));
  const name = `store-soak-${process.pid}`;
  const store = new StoreProcesses({
    folder,
    name,
    memory: 'processes',
    shards: SHARDS,
    durability: 'none',
    gateways: 2,
  });
  const experience = new Experience();
  const memory = new Memory();
  const load = new Load(mulberry32(seed), { pauseMs: 50 });
  let killed = 0;
  let broughtBack = 0;
  try {
    await store.start();
    const { works, jobs } = await begin(store.sockets, new Random(seed), experience);
    let isOver = false;
    const running = works.map((work) => run(work, () => isOver, experience));
    const loads = store.sockets.map((socket, i) => load.run(socket, `load${i}`));
    const end = performance.now() + seconds * 1000;
    let kill = performance.now() + killEverySeconds * 1000;
    let back = Infinity;
    let report = performance.now() + 10_000;
    while (performance.now() < end) {
      await sleep(SAMPLE_MS);
      memory.sample('gateways', store.gatewayPids);
      memory.sample('hosts', await store.hostPids());
      if (performance.now() > kill && (await store.killBusiestHost())) {
        kill = performance.now() + killEverySeconds * 1000;
        killed++;
        back = performance.now() + BACK_MS;
      }
      if (performance.now() > back) {
        back = performance.now() + BACK_MS;
        broughtBack += await store.bringBackHosts();
      }
      if (performance.now() > report) {
        report += 10_000;
        progress(
          `${experience.replies} replies, ${killed} killed, ${experience.mistakes.length} wrong`,
        );
      }
    }
    isOver = true;
    load.end();
    await Promise.all([...running, ...loads]);
    const client = await Client.connect('ioredis', store.sockets[1], 'the last one', experience);
    await jobs.end(client);
    client.close();
    await load.readAll(store.sockets[1]);
  } finally {
    load.end();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const violation = check(load.history);
  const { mistakes, ...counts } = experience;
  const trends = memory.trends();
  const isFine =
    mistakes.length + load.errors.length + load.counts.unknown === 0 &&
    violation === undefined &&
    Object.values(trends).every(({ isLevel }) => isLevel);
  return {
    isFine,
    seed,
    seconds,
    killed,
    broughtBack,
    ...counts,
    mistakes,
    transactions: load.counts,
    errors: load.errors,
    violation,
    memory: trends,
  };
}

/** @param {readonly string[]} sockets @param {Random} random @param {Experience} experience */
async function begin(sockets, random, experience) {
  let count = 0;
  /** Libraries and gateways in turn. @param {string} name */
  const connect = (name) => {
    const library = /** @type {Library} */ (count % 2 === 0 ? 'ioredis' : 'redis');
    const socket = sockets[(count++ >> 1) % sockets.length];
    return Client.connect(library, socket, name, experience);
  };
  const own = () => new Random(random.integer(0, 2 ** 31));
  /** @type {Work[]} */
  const works = [];
  for (let i = 0; i < 4; i++) works.push(new Owned(await connect(`owner${i}`), own(), `own${i}`));
  for (let i = 0; i < 4; i++) {
    const client = await connect(`bank${i}`);
    if (i === 0) await Bank.open(client);
    works.push(new Bank(client, own()));
  }
  const jobs = new Jobs();
  for (let i = 0; i < 2; i++) {
    works.push(jobs.producer(await connect(`producer${i}`), own(), `p${i}`));
  }
  for (let i = 0; i < 4; i++) {
    works.push(jobs.consumer(await connect(`consumer${i}`), own(), `c${i}`));
  }
  for (let i = 0; i < 2; i++) {
    const subscribers = [];
    for (let k = 0; k < 4; k++) subscribers.push(await connect(`subscriber${i}.${k}`));
    const channel = new Channel(await connect(`publisher${i}`), own(), subscribers, `channel${i}`);
    await channel.begin();
    works.push(channel);
  }
  for (let i = 0; i < 2; i++) works.push(new Expiring(await connect(`ttl${i}`), own(), `ttl${i}`));
  for (let i = 0; i < 2; i++) works.push(new Large(await connect(`large${i}`), own(), `big${i}`));
  return { works, jobs };
}

/** @param {Work} work @param {() => boolean} isOver @param {Experience} experience */
async function run(work, isOver, experience) {
  try {
    while (!isOver()) {
      await work.step();
      await sleep(PAUSE_MS);
    }
    await work.end();
  } catch (error) {
    experience.wrong(/** @type {Error} */ (error).message);
  }
}
