/**
 * `npm run soak`: load without faults for a long time, to see what grows and who is deposed for no reason. Half of
 * the time a throttled load is traced and judged; the other half runs at full speed without a trace.
 * docs/chaos.md describes it.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Cluster } from 'tram-multicast';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { CheckError, Clients } from './clients.mjs';
import { GROUPS, REPLICAS } from './plan.mjs';
import {
  checkAcknowledged,
  checkAudits,
  checkRemains,
  checkVerdict,
  readHistory,
  readRecords,
} from './verify.mjs';

const EXIT = { fine: 0, failure: 1, usage: 2, checkFailed: 3, interrupted: 130 };
const SAMPLE_MS = 10_000;
const LOOK_MS = 100;
const ANSWER_MS = 60_000;
const WINDOW = 16;
const KIBIBYTES_PER_MEBIBYTE = 1024;

const HELP = `Usage: npm run soak -- [options]

  --minutes <n>   of load in all (default: 10)
  --rate <n>      messages a second while they are traced (default: 2000)
  --clients <n>   client processes (default: 4)
  --tree <tree>   default: base
  --hosts <n>     default: ${REPLICAS}
  --json          print one JSON object
  --help

Exit codes: 0 all checks hold, 1 it could not be run, 2 wrong options, 3 a check has failed, 130 interrupted
`;

/**
 * @typedef {object} Options
 * @property {number} minutes
 * @property {number} rate
 * @property {number} clients
 * @property {string} tree
 * @property {number} hosts
 * @property {boolean} json
 */

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
 * @property {number} longestWaitMs  of a host for a core, within one look: the machine may have more to do than it can
 * @property {MemoryUse[]} memory
 * @property {string[]} complaints
 */

process.exitCode = await main();

async function main() {
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interruption.abort(name));
  try {
    const options = readOptions();
    return options === undefined ? EXIT.fine : await run(options, interruption.signal);
  } catch (error) {
    if (interruption.signal.aborted) return EXIT.interrupted;
    const isUsage = String(/** @type {any} */ (error)?.code).startsWith('ERR_PARSE_ARGS');
    process.stderr.write(`soak: ${error instanceof Error ? error.stack : error}\n`);
    return isUsage ? EXIT.usage : EXIT.failure;
  }
}

/** @returns {Options | undefined} nothing if there is nothing to run */
function readOptions() {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      rate: { type: 'string', default: '2000' },
      clients: { type: 'string', default: '4' },
      tree: { type: 'string', default: 'base' },
      hosts: { type: 'string', default: String(REPLICAS) },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return undefined;
  }
  return {
    minutes: Number(values.minutes),
    rate: Number(values.rate),
    clients: Number(values.clients),
    tree: values.tree,
    hosts: Number(values.hosts),
    json: values.json,
  };
}

/** @param {Options} options @param {AbortSignal} signal */
async function run(options, signal) {
  const directory = mkdtempSync(join(tmpdir(), 'tram-soak-'));
  const traced = await runPhase('traced', options, directory, signal);
  const fast = await runPhase('full speed', { ...options, rate: 0 }, undefined, signal);
  const phases = [traced, fast];
  const isFine = phases.every(({ complaints }) => complaints.length === 0);
  if (traced.complaints.length === 0) rmSync(directory, { recursive: true });
  else process.stderr.write(`soak: the trace is in ${directory}\n`);
  process.stdout.write(
    options.json ? `${JSON.stringify({ isFine, phases })}\n` : phases.map(formatPhase).join('\n'),
  );
  return isFine ? EXIT.fine : EXIT.checkFailed;
}

/**
 * @param {string} phase
 * @param {Options} options
 * @param {string | undefined} directory  for the trace, if there is to be one
 * @param {AbortSignal} signal
 * @returns {Promise<PhaseResult>}
 */
async function runPhase(phase, options, directory, signal) {
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
      `${leaderChanges} leader changes that nobody asked for; a host waited up to ${watched.longestWaitMs} ms for a core`,
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
 * @param {Options} options
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
    logger: {
      info: () => undefined,
      warn: (text) => complaints.push(text),
      error: (text) => complaints.push(text),
    },
    ...(trace && { trace }),
  });
}

/**
 * Let time pass, and look at all processes now and then.
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
  // The first look is not at the very start: engines take some time to settle.
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

/** How long a process has waited for a core while it could have run, since its start. @param {number} pid */
function waitedMs(pid) {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

/** @param {Map<string, MemoryUse>} uses @param {string} name @param {number} pid */
function note(uses, name, pid) {
  const now = privateMebibytes(pid);
  const use = uses.get(name) ?? { process: name, first: now, last: now, most: now };
  uses.set(name, { ...use, last: now, most: Math.max(use.most, now) });
}

/** What only this process uses: the shared memory has a fixed size. @param {number} pid */
function privateMebibytes(pid) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kibibytes = Number(/^RssAnon:\s+(\d+) kB$/m.exec(text)?.[1]);
  return Math.round((kibibytes / KIBIBYTES_PER_MEBIBYTE) * 10) / 10;
}

/** The first leader of a group was elected. @param {import('tram-multicast').ClusterStatus} status */
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

/** @param {PhaseResult} result */
function formatPhase(result) {
  const { phase, seconds, answered, audits, messagesPerSecond, leaderChanges, memory } = result;
  const { latencyMsP50, latencyMsP99, longestWaitMs, complaints } = result;
  const uses = [...memory, sumOf(memory)].map(
    ({ process: name, first, last, most }) =>
      `  ${name.padEnd(12)} ${[first, last, most].map((value) => value.toFixed(1).padStart(8)).join('')}`,
  );
  return [
    `${phase}: ${seconds} s, ${answered} messages answered (${messagesPerSecond}/s), ${audits} of them audits`,
    `  latency p50 ${latencyMsP50.toFixed(2)} ms, p99 ${latencyMsP99.toFixed(2)} ms`,
    `  leader changes after the first elections: ${leaderChanges}`,
    `  longest wait of a host for a core: ${longestWaitMs} ms`,
    `  private memory, MiB:   first    last    most`,
    ...uses,
    complaints.length === 0 ? '  all checks hold' : '  WRONG:',
    ...complaints.map((complaint) => `    ${complaint}`),
    '',
  ].join('\n');
}

/** @param {readonly MemoryUse[]} memory @returns {MemoryUse} */
function sumOf(memory) {
  const sum = (/** @type {(use: MemoryUse) => number} */ of) =>
    memory.reduce((total, use) => total + of(use), 0);
  return {
    process: 'all',
    first: sum(({ first }) => first),
    last: sum(({ last }) => last),
    most: sum(({ most }) => most),
  };
}
