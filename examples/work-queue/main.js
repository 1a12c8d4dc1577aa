/**
 * Jobs for workers in other processes: each is done exactly once, although one worker is killed in the middle of a job and
 * another one stalls in the middle of its own. `node examples/work-queue/main.js`
 *
 * The replicas run in processes too (`memory: 'processes'`, which needs the optional package koffi).
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Cluster } from 'tram-multicast';
import { ask, pause } from './queue.js';

const JOBS = 120;
const LOOK_MS = 50;
const FATES = ['well', 'killed', 'asleep'];

const name = `work-queue-${process.pid}`;
const cluster = await Cluster.start({
  groups: 1,
  memory: 'processes',
  name,
  service: new URL('./service.js', import.meta.url),
});

/** Jobs whose result was accepted, and refused, as the workers report. @type {string[]} */
const done = [];
/** @type {string[]} */
const refused = [];
let killedOver = '';
let asleepOver = '';
let areWorkersDone = false;

try {
  const client = await cluster.connect();
  for (let i = 1; i <= JOBS; i++) await ask(client, { what: 'add', job: `job ${i}` });
  console.log(`${JOBS} jobs wait for ${FATES.length} workers`);

  const workers = FATES.map(startWorker);
  await Promise.all(workers.map(({ isReady }) => isReady));
  for (const { child } of workers) child.send('go');
  const watching = watch(client, workers);
  await Promise.all(workers.map(({ hasEnded }) => hasEnded));
  areWorkersDone = true;
  await watching;

  const { claims } = await ask(client, { what: 'report' });
  console.log(`${JOBS} jobs are done; it took ${claims} claims`);
  check('every job was done exactly once', isEachOnce(done));
  check(`so was ${killedOver}, over which a worker was killed`, done.includes(killedOver));
  check(`the late result of ${asleepOver} did not count`, refused.includes(asleepOver));
} finally {
  await cluster.close();
}

/**
 * Tells which claims have expired, and wakes the worker that sleeps.
 * @param {import('tram-multicast').Client} client
 * @param {ReturnType<typeof startWorker>[]} workers
 */
async function watch(client, workers) {
  let told = 0;
  let isAsleep = true;
  while (!areWorkersDone) {
    await pause(LOOK_MS);
    const { lost } = await ask(client, { what: 'report' });
    for (const job of lost.slice(told)) {
      console.log(`the claim for ${job} has run out: it can be claimed again`);
    }
    told = lost.length;
    if (isAsleep && lost.includes(asleepOver)) {
      workers[FATES.indexOf('asleep')].child.send('wake up');
      isAsleep = false;
    }
  }
}

/** @param {string} fate */
function startWorker(fate) {
  const child = fork(fileURLToPath(new URL('./worker.js', import.meta.url)), [name, fate]);
  /** @type {Promise<void>} */
  const isReady = new Promise((resolve) => {
    child.on('message', (/** @type {{ what: string, job: string }} */ { what, job }) => {
      if (what === 'ready') resolve();
      if (what === 'done') done.push(job);
      if (what === 'refused') {
        console.log(`a worker wakes up and is too late: its result of ${job} is refused`);
        refused.push(job);
      }
      if (what === 'asleep') {
        console.log(`a worker falls asleep over ${job}`);
        asleepOver = job;
      }
      if (what === 'killed') {
        console.log(`a worker is killed in the middle of ${job}`);
        killedOver = job;
        child.kill('SIGKILL');
      }
    });
  });
  /** @type {Promise<void>} */
  const hasEnded = new Promise((resolve, reject) => {
    child.on('exit', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve();
      else reject(new Error(`a worker has failed with exit code ${code}`));
    });
  });
  return { child, isReady, hasEnded };
}

/** @param {string[]} jobs */
function isEachOnce(jobs) {
  return jobs.length === JOBS && new Set(jobs).size === JOBS;
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
