/**
 * `npm run chaos`: continuous load on clusters of real processes, or of machines, while hosts and clients are killed and
 * stopped and their network is cut, then a judgement of everything that was delivered. docs/chaos.md describes it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { planRound, REPLICAS } from './plan.mjs';
import { formatSummary, totalOf } from './report.mjs';
import { Round, runRound } from './round.mjs';

const EXIT = { fine: 0, failure: 1, usage: 2, checkFailed: 3, interrupted: 130 };

const HELP = `Usage: npm run chaos -- [options]

Runs one round for each tree and each number of hosts: 8 groups of 3 replicas, as processes or on
machines made of network namespaces (needs root and libfabric).

  --memory <m>     processes or machines (default: processes)
  --seed <n>       draws the faults; printed (default: a random one)
  --trees <list>   default: base,breadth,depth
  --hosts <list>   multiples of ${REPLICAS}; with more, groups lose members independently (default: 3,12;
                   of machines: 3)
  --faults <n>     of all rounds together (default: 216; across machines: 126)
  --seconds <n>    load of each round, at least (default: 20)
  --clients <n>    client processes (default: 4)
  --strangers <n>  instead of faults, strangers at all ports for so many seconds (memory machines)
  --keep           keep what the rounds wrote down, also if all is well
  --json           print one JSON object
  --help

Exit codes: 0 all checks hold, 1 it could not be run, 2 wrong options, 3 a check has failed, 130 interrupted
`;

/** What is not said. */
const USUAL = {
  processes: { hosts: '3,12', faults: '216' },
  machines: { hosts: '3', faults: '126' },
};

class UsageError extends Error {}

/**
 * @typedef {object} Options
 * @property {import('./plan.mjs').ChaosMemory} memory
 * @property {number} strangers  seconds; 0 for none
 * @property {number} seed
 * @property {string[]} trees
 * @property {number[]} hosts
 * @property {number} faults
 * @property {number} seconds
 * @property {number} clients
 * @property {boolean} keep
 * @property {boolean} json
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
    if (error instanceof UsageError || isParseError(error)) {
      process.stderr.write(`chaos: ${/** @type {Error} */ (error).message}\n\n${HELP}`);
      return EXIT.usage;
    }
    process.stderr.write(`chaos: ${error instanceof Error ? error.stack : error}\n`);
    return EXIT.failure;
  }
}

/** @returns {Options | undefined} nothing if there is nothing to run */
function readOptions() {
  const { values } = parseArgs({
    options: {
      memory: { type: 'string', default: 'processes' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      trees: { type: 'string' },
      tree: { type: 'string' },
      hosts: { type: 'string' },
      faults: { type: 'string' },
      strangers: { type: 'string', default: '0' },
      seconds: { type: 'string', default: '20' },
      clients: { type: 'string', default: '4' },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return undefined;
  }
  const { memory } = values;
  if (memory !== 'processes' && memory !== 'machines') {
    throw new UsageError(`--memory: there are processes and machines, not ${memory}`);
  }
  const usual = USUAL[memory];
  const hosts = (values.hosts ?? usual.hosts)
    .split(',')
    .map((text) => numberOf('hosts', text, REPLICAS));
  if (hosts.some((count) => count % REPLICAS !== 0)) {
    throw new UsageError(`--hosts: ${values.hosts} are not multiples of ${REPLICAS}`);
  }
  const strangers = numberOf('strangers', values.strangers, 0);
  if (strangers > 0 && memory !== 'machines') {
    throw new UsageError('--strangers: there are some only with --memory machines');
  }
  return {
    memory,
    strangers,
    seed: numberOf('seed', values.seed, 0),
    trees: (values.trees ?? values.tree ?? (strangers > 0 ? 'base' : 'base,breadth,depth')).split(
      ',',
    ),
    hosts,
    faults: numberOf('faults', values.faults ?? usual.faults, 0),
    seconds: numberOf('seconds', values.seconds, 1),
    // One may be struck while the others go on.
    clients: numberOf('clients', values.clients, 2),
    keep: values.keep,
    json: values.json,
  };
}

/** @param {string} option @param {string} text @param {number} least */
function numberOf(option, text, least) {
  const number = Number(text);
  if (text !== '' && Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(`--${option}: expected a whole number of at least ${least}, not "${text}"`);
}

/** @param {unknown} error */
function isParseError(error) {
  return String(/** @type {any} */ (error)?.code).startsWith('ERR_PARSE_ARGS');
}

/** @param {Options} options @param {AbortSignal} signal */
async function run(options, signal) {
  const { memory, seed, trees, hosts, clients, seconds, strangers } = options;
  process.stderr.write(`chaos: --memory ${memory} --seed ${seed}\n`);
  const rounds = trees.flatMap((tree) => hosts.map((count) => ({ tree, hosts: count })));
  const faults = strangers > 0 ? 0 : Math.ceil(options.faults / rounds.length);
  const results = [];
  for (const { tree, hosts: count } of rounds) {
    const plan = planRound({ memory, seed, tree, hosts: count, faults, seconds });
    const name = `${tree}, ${count} hosts`;
    const tell = (/** @type {string} */ text) => process.stderr.write(`${name}: ${text}\n`);
    const directory = mkdtempSync(join(tmpdir(), `tram-chaos-${seed}-${tree}-${count}-`));
    const what = strangers > 0 ? `${strangers} s of strangers` : `${faults} faults`;
    tell(`${what} under the load of ${clients} clients`);
    let isWorthKeeping = true;
    try {
      const kind = await roundOf(options);
      const roundOptions = { directory, seconds, clients, strangers, signal, tell };
      const result = await runRound(new kind(plan, roundOptions));
      results.push(result);
      isWorthKeeping = result.complaints.length > 0;
      tell(isWorthKeeping ? 'WRONG' : 'all checks hold');
      for (const complaint of result.complaints) tell(`  ${complaint}`);
      if (isWorthKeeping) tell(`repeat the plan: ${commandFor(options, tree, count, faults)}`);
    } finally {
      if ((isWorthKeeping && !signal.aborted) || options.keep) {
        tell(`what it wrote down is in ${directory}`);
      } else {
        rmSync(directory, { recursive: true });
      }
    }
  }
  const isFine = results.every(({ complaints }) => complaints.length === 0);
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ seed, isFine, total: totalOf(results), rounds: results })}\n`
      : formatSummary(memory, seed, results),
  );
  return isFine ? EXIT.fine : EXIT.checkFailed;
}

/** Machines need more than every machine has: loaded when they are asked for. @param {Options} options @returns {Promise<typeof Round>} */
async function roundOf({ memory, strangers }) {
  if (memory === 'processes') return Round;
  if (strangers > 0) return (await import('./strangers-round.mjs')).StrangersRound;
  return (await import('./machines-round.mjs')).MachinesRound;
}

/** @param {Options} options @param {string} tree @param {number} hosts @param {number} faults */
function commandFor({ memory, strangers, seed, seconds, clients }, tree, hosts, faults) {
  const words = [
    ...(memory === 'processes' ? [] : [`--memory ${memory}`]),
    `--seed ${seed} --trees ${tree} --hosts ${hosts}`,
    strangers > 0 ? `--strangers ${strangers}` : `--faults ${faults}`,
    `--seconds ${seconds} --clients ${clients}`,
  ];
  return `npm run chaos -- ${words.join(' ')}`;
}
