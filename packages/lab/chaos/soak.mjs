/**
 * `npm run soak`: load without faults for a long time, to find memory leaks and spurious leader changes. For half of the time
 * it traces and judges a rate-limited load; the other half runs at full speed without a trace. docs/chaos.md describes it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT, EXIT_CODES_HELP, runCommand } from './command.mjs';
import { REPLICAS } from './plan.mjs';
import { runPhase } from './soak-phase.mjs';

const HELP = `Usage: npm run soak -- [options]

  --minutes <n>   total duration of the load (default: 10)
  --rate <n>      messages a second in the traced half (default: 2000)
  --clients <n>   client processes (default: 4)
  --tree <tree>   default: base
  --hosts <n>     default: ${REPLICAS}
  --json          print one JSON object
  --help

${EXIT_CODES_HELP}
`;

/**
 * @typedef {object} SoakOptions
 * @property {number} minutes
 * @property {number} rate
 * @property {number} clients
 * @property {string} tree
 * @property {number} hosts
 * @property {boolean} json
 */

/**
 * @typedef {import('./soak-phase.mjs').PhaseResult} PhaseResult
 * @typedef {import('./soak-phase.mjs').MemoryUse} MemoryUse
 */

process.exitCode = await runCommand('soak', HELP, async (signal) => {
  const options = readOptions();
  return options === undefined ? EXIT.fine : await run(options, signal);
});

/** @returns {SoakOptions | undefined} nothing after `--help` */
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

/** @param {SoakOptions} options @param {AbortSignal} signal */
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
    complaints.length === 0 ? '  all checks hold' : '  FAILED:',
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
