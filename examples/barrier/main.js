/**
 * Workers that do a job in steps: no worker begins a step before all have finished the one before. They go on although the
 * leader crashes while they wait at a barrier, and although a worker ends there and another one takes its place.
 * `node examples/barrier/main.js`
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from 'tram-multicast';
import barriers from './service.js';

const GROUP = 0;
const WORKERS = ['Ann', 'Ben', 'Cleo', 'Dan'];
const STEPS = 50;
/** In the middle of this step, the leader crashes. */
const CRASH_STEP = 25;

/** @typedef {ReturnType<typeof barriers.client>} BarrierClient */

const cluster = await Cluster.start({
  groups: 1,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});
const observer = await connect();

/** How many workers have finished each step. */
const finished = Array(STEPS).fill(0);
let tooEarly = 0;

await Promise.all(WORKERS.map(work));
check(`in ${STEPS} steps, nobody went on before all had finished`, tooEarly === 0);
await replace();
await cluster.close();

/** @param {string} name */
async function work(name) {
  const client = await connect();
  for (let step = 0; step < STEPS; step++) {
    if (step === CRASH_STEP && name === 'Dan') await crashWhile(3, step);
    finished[step]++;
    await arrive(client, step, name);
    if (finished[step] < WORKERS.length) tooEarly++;
  }
  await client.close();
}

/**
 * Crashes the leader while others wait.
 * @param {number} count
 * @param {number} step
 */
async function crashWhile(count, step) {
  await untilWaiting(step, count);
  const { leader = 0, replicas } = cluster.status().groups[GROUP];
  await cluster.crash(replicas[leader].host);
  console.log(
    `${count} workers wait; host ${replicas[leader].host}, which led the group, has crashed`,
  );
}

/** A worker ends while it waits. The others wait for the one that takes its place. */
async function replace() {
  const [ann, ben, cleo, dan, eve] = await Promise.all([1, 2, 3, 4, 5].map(connect));
  const waiting = [arrive(ann, STEPS, 'Ann')];
  const lost = arrive(ben, STEPS, 'Ben').catch((error) => error.code);
  waiting.push(arrive(cleo, STEPS, 'Cleo'));
  await untilWaiting(STEPS, 3);
  ben.client.destroy();
  check('the call of a worker that vanishes fails', (await lost) === 'TRAM_OUTCOME_UNKNOWN');
  await untilWaiting(STEPS, 2);
  waiting.push(arrive(dan, STEPS, 'Dan'));
  waiting.push(arrive(eve, STEPS, 'Eve'));
  const together = (await Promise.all(waiting)).map(({ names }) => names.sort().join());
  check(
    'it is not counted',
    together.every((names) => names === 'Ann,Cleo,Dan,Eve'),
  );
}

async function connect() {
  return barriers.client(await cluster.connect());
}

/**
 * Waits until all have arrived, however long it takes.
 * @param {BarrierClient} client
 * @param {number} step
 * @param {string} name
 */
function arrive(client, step, name) {
  /** @type {import('./service.js').Command} */
  const command = { type: 'arrive', barrier: `step ${step}`, name, parties: WORKERS.length };
  return client.call(GROUP, command, { timeoutMs: Infinity });
}

/**
 * @param {number} step
 * @param {number} count
 */
async function untilWaiting(step, count) {
  for (;;) {
    const { names } = await observer.call(GROUP, { type: 'look', barrier: `step ${step}` });
    if (names.length === count) return;
    await pause(5);
  }
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
