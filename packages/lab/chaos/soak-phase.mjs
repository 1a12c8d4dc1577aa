/**
 * One phase of a soak run: a cluster of processes under load without faults, for a given time. Called by `soak.mjs`.
 * A phase may be traced and judged. It samples the private memory of all processes and how long hosts wait for a core.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster } from 'tram-multicast';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { CheckError, Clients } from './clients.mjs';
import { GROUPS, REPLICAS } from './plan.mjs';
import { privateMebibytes } from './processes.mjs';
import {
  checkAcknowledged,
  checkAudits,
  checkRemains,
  checkVerdict,
  readHistory,
  readRecords,
} from './verify.mjs';

const SAMPLE_MS = 10_000;
const LOOK_MS = 100;
const ANSWER_MS = 60_000;
const WINDOW = 16;

/** @typedef {import('./soak.mjs').SoakOptions} SoakOptions */

/**
 * Private memory of a process, in mebibytes.
 * @typedef {{ process: string, first: number, last: number, most: number }} MemoryUse
 */

/**
 * @typedef {object} PhaseResult
 * @property {string} phase
 * @property {number} seconds
 * @property {number} answered
 * @property {number} audits
 * @property {number} messagesPerSecond
 * @property {number} latencyMsP50
 * @property {number} latencyMsP99
 * @property {number} leaderChanges
 * @property {number} longestWaitMs  the longest time that a host waited for a core between two samples: shows an overloaded machine
 * @property {MemoryUse[]} memory
 * @property {string[]} complaints
 */

/**
 * @param {string} phase
 * @param {SoakOptions} options
 * @param {string | undefined} directory  for the trace; without it nothing is traced
 * @param {AbortSignal} signal
 * @returns {Promise<PhaseResult>}
 */
export async function runPhase(phase, options, directory, signal) {
  const seconds = Math.round((options.minutes * 60) / 2);
  /** @type {string[]} */
  const complaints = [];
  const trace = directory && join(directory, 'trace');
  const records = directory && join(directory, 'records');
  if (records) mkdirSync(records);
  const cluster = await start(options, trace, signal, complaints);
  const clients = new Clients(
    String(cluster.address),
    (name, number) => ({
      name,
      seed: number,
      groups: GROUPS,
      window: WINDOW,
      rate: options.rate / options.clients,
      fewGroups: true,
      ...(records && { records: join(records, name) }),
    }),
    (text) => complaints.push(text),
  );
  const watched = { memory: /** @type {MemoryUse[]} */ ([]), longestWaitMs: 0 };
  let leaderChanges = 0;
  let status = cluster.status();
  try {
    await Promise.all(Array.from({ length: options.clients }, () => clients.start()));
    await watch(watched, phase, cluster, clients, seconds, signal, complaints);
    await clients.finish(ANSWER_MS);
    status = cluster.status();
    leaderChanges = leaderChangesIn(status);
    await cluster.close();
  } catch (error) {
    if (!(error instanceof CheckError)) throw error;
    complaints.push(error.message);
  } finally {
    await clients.destroy();
    await cluster.destroy();
  }
  if (leaderChanges > 0) {
    complaints.push(
      `${leaderChanges} leader changes without a fault; a host waited up to ${watched.longestWaitMs} ms for a core`,
    );
  }
  const totals = clients.finished;
  const audits = totals.reduce((sum, total) => sum + total.audits, 0);
  const wrong = totals.reduce((sum, total) => sum + total.wrongAudits, 0);
  if (wrong > 0) complaints.push(`${wrong} of ${audits} audits found a wrong total`);
  if (trace && records) complaints.push(...(await judgeTrace(trace, records)));
  complaints.push(...checkRemains(String(cluster.address), clients.pids));
  return {
    phase,
    seconds,
    answered: status.answered,
    audits,
    messagesPerSecond: Math.round(status.answered / seconds),
    latencyMsP50: status.latencyNsP50 / 1e6,
    latencyMsP99: status.latencyNsP99 / 1e6,
    leaderChanges,
    ...watched,
    complaints,
  };
}

/**
 * @param {SoakOptions} options
 * @param {string | undefined} trace
 * @param {AbortSignal} signal
 * @param {string[]} complaints
 */
function start({ tree, hosts, clients }, trace, signal, complaints) {
  return Cluster.start({
    groups: GROUPS,
    replicas: REPLICAS,
    tree,
    hosts,
    clients,
    memory: 'processes',
    service: new URL('./bank.mjs', import.meta.url),
    signal,
    // A host that ends is a failure.
    restartHosts: false,
    logger: {
      info: () => undefined,
      warn: (text) => complaints.push(text),
      error: (text) => complaints.push(text),
    },
    ...(trace && { trace }),
  });
}

/**
 * Waits for the end of the phase, and samples all processes meanwhile.
 * @param {{ memory: MemoryUse[], longestWaitMs: number }} watched
 * @param {string} phase
 * @param {Cluster} cluster
 * @param {Clients} clients
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @param {readonly string[]} complaints
 */
async function watch(watched, phase, cluster, clients, seconds, signal, complaints) {
  /** @type {Map<string, MemoryUse>} */
  const uses = new Map();
  const startedMs = Date.now();
  const endMs = startedMs + seconds * 1000;
  // The first sample is taken after a warm-up, in which the heap still grows.
  let nextMs = startedMs + Math.min(SAMPLE_MS, (seconds * 1000) / 2);
  const waits = new Map();
  while (Date.now() < endMs && complaints.length === 0) {
    signal.throwIfAborted();
    await pause(LOOK_MS);
    for (const { pid } of cluster.status().hosts) {
      const waitMs = waitedMs(pid);
      const sinceMs = waitMs - (waits.get(pid) ?? waitMs);
      watched.longestWaitMs = Math.max(watched.longestWaitMs, Math.round(sinceMs));
      waits.set(pid, waitMs);
    }
    if (Date.now() < nextMs) continue;
    nextMs += SAMPLE_MS;
    const status = cluster.status();
    for (const { host, pid } of status.hosts) note(uses, `host ${host}`, pid);
    for (const { name, child } of clients.running) note(uses, `client ${name}`, child.pid ?? 0);
    const elapsed = Math.round((Date.now() - startedMs) / 1000);
    const all = [...uses.values()].reduce((sum, { last }) => sum + last, 0);
    process.stderr.write(
      `${phase}: ${elapsed} of ${seconds} s, ${status.answered} answered, ${Math.round(all)} MiB, ` +
        `${leaderChangesIn(status)} leader changes\n`,
    );
    watched.memory = [...uses.values()];
  }
}

/** How long a runnable process has waited for a core since its start. @param {number} pid */
function waitedMs(pid) {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

/** @param {Map<string, MemoryUse>} uses @param {string} name @param {number} pid */
function note(uses, name, pid) {
  const now = Math.round(privateMebibytes(pid) * 10) / 10;
  const use = uses.get(name) ?? { process: name, first: now, last: now, most: now };
  uses.set(name, { ...use, last: now, most: Math.max(use.most, now) });
}

/** The first leader of a group is not a change. @param {import('tram-multicast').ClusterStatus} status */
function leaderChangesIn({ groups }) {
  const times = groups.flatMap(({ replicas }) => replicas.map(({ timesLed }) => timesLed));
  return times.reduce((sum, count) => sum + count, 0) - groups.length;
}

/** @param {string} trace @param {string} directory */
async function judgeTrace(trace, directory) {
  process.stderr.write('judging\n');
  const history = await readHistory(trace);
  const records = readRecords(directory);
  return [
    ...checkVerdict(history, true),
    ...checkAudits(records, GROUPS),
    ...checkAcknowledged(history, records),
  ];
}
