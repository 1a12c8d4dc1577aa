/**
 * `npm run chaos`: puts continuous load on clusters of real processes, or of machines, while it kills and stops hosts and
 * clients and cuts their network. Then it judges everything that was delivered. docs/chaos.md describes it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT, EXIT_CODES_HELP, numberOf, runCommand, UsageError } from './command.mjs';
import { LoopDisk } from './loop-disk.mjs';
import { planRound, REPLICAS } from './plan.mjs';
import { runPower } from './power.mjs';
import { formatSummary, totalOf } from './report.mjs';
import { Round, runRound } from './round.mjs';

const HELP = `Usage: npm run chaos -- [options]

Runs one round for each tree and each number of hosts: 8 groups of 3 replicas, as processes or on
machines made of network namespaces (needs root and libfabric).

  --memory <m>     processes or machines (default: processes); with --power, also threads
  --order <o>      what the cluster promises: strict or multicast (default: strict)
  --seed <n>       the seed of the fault plan; printed (default: random)
  --trees <list>   default: base,breadth,depth
  --hosts <list>   multiples of ${REPLICAS}; with more than ${REPLICAS}, groups lose members independently
                   (default: 3,12; with machines: 3)
  --faults <n>     in all rounds together (default: 216; with machines: 126)
  --seconds <n>    least duration of the load in each round (default: 20)
  --clients <n>    client processes (default: 4)
  --power          no other faults: all processes of the cluster and its clients are killed at once, again
                   and again, also while the cluster recovers from its journals
  --cuts <n>       with --power: in all rounds together (default: 30)
  --durability <d> with --power: always or everySecond (default: always)
  --device         with --power: the journals are on a loop device that loses what was not synced
                   (needs root)
  --unauthenticated <n>
                   no faults; unauthenticated peers call all ports for n seconds (machines only)
  --keep           keep traces and logs even if all checks hold
  --json           print one JSON object
  --help

${EXIT_CODES_HELP}
`;

const DEFAULTS = {
  processes: { hosts: '3,12', faults: '216' },
  machines: { hosts: '3', faults: '126' },
};

/**
 * @typedef {object} Options
 * @property {import('./plan.mjs').ChaosMemory} memory
 * @property {import('./plan.mjs').Order} order
 * @property {number} unauthenticated  seconds; 0 for none
 * @property {number} seed
 * @property {string[]} trees
 * @property {number[]} hosts
 * @property {number} faults
 * @property {number} seconds
 * @property {number} clients
 * @property {boolean} keep
 * @property {boolean} json
 */

process.exitCode = await runCommand('chaos', HELP, async (signal) => {
  const values = parseOptions();
  if (values.help) {
    process.stdout.write(HELP);
    return EXIT.fine;
  }
  return values.power
    ? await runPower(powerOptions(values), signal)
    : await run(roundOptions(values), signal);
});

/** @typedef {ReturnType<typeof parseOptions>} Values */

function parseOptions() {
  return parseArgs({
    options: {
      memory: { type: 'string', default: 'processes' },
      order: { type: 'string', default: 'strict' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      trees: { type: 'string' },
      tree: { type: 'string' },
      hosts: { type: 'string' },
      faults: { type: 'string' },
      unauthenticated: { type: 'string', default: '0' },
      power: { type: 'boolean', default: false },
      cuts: { type: 'string', default: '30' },
      durability: { type: 'string', default: 'always' },
      device: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '20' },
      clients: { type: 'string', default: '4' },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

/** @param {Values} values @returns {import('./power.mjs').PowerRunOptions} */
function powerOptions(values) {
  const { seed, trees, tree, cuts, clients, device, keep, json } = values;
  const missing = device ? LoopDisk.missing() : undefined;
  if (missing !== undefined) throw new UsageError(`--device: ${missing}`);
  return {
    memory: oneOf('memory', values.memory, ['threads', 'processes', 'machines']),
    durability: oneOf('durability', values.durability, ['always', 'everySecond']),
    order: oneOf('order', values.order, ['strict', 'multicast']),
    seed: numberOf('seed', seed, 0),
    trees: (trees ?? tree ?? 'base,breadth,depth').split(','),
    cuts: numberOf('cuts', cuts, 1),
    clients: numberOf('clients', clients, 1),
    device,
    keep,
    json,
  };
}

/** @template {string} T @param {string} option @param {string} text @param {readonly T[]} choices @returns {T} */
function oneOf(option, text, choices) {
  const chosen = choices.find((choice) => choice === text);
  if (chosen !== undefined) return chosen;
  throw new UsageError(`--${option}: expected ${choices.join(' or ')}, not "${text}"`);
}

/** @param {Values} values @returns {Options} */
function roundOptions(values) {
  const memory = oneOf('memory', values.memory, ['processes', 'machines']);
  const order = oneOf('order', values.order, ['strict', 'multicast']);
  const defaults = DEFAULTS[memory];
  const hosts = (values.hosts ?? defaults.hosts)
    .split(',')
    .map((text) => numberOf('hosts', text, REPLICAS));
  if (hosts.some((count) => count % REPLICAS !== 0)) {
    throw new UsageError(`--hosts: expected multiples of ${REPLICAS}, not "${values.hosts}"`);
  }
  const unauthenticated = numberOf('unauthenticated', values.unauthenticated, 0);
  if (unauthenticated > 0 && memory !== 'machines') {
    throw new UsageError('--unauthenticated: works only with --memory machines');
  }
  return {
    memory,
    order,
    unauthenticated,
    seed: numberOf('seed', values.seed, 0),
    trees: (
      values.trees ??
      values.tree ??
      (unauthenticated > 0 ? 'base' : 'base,breadth,depth')
    ).split(','),
    hosts,
    faults: numberOf('faults', values.faults ?? defaults.faults, 0),
    seconds: numberOf('seconds', values.seconds, 1),
    // A fault may strike one while the others go on.
    clients: numberOf('clients', values.clients, 2),
    keep: values.keep,
    json: values.json,
  };
}

/** @param {Options} options @param {AbortSignal} signal */
async function run(options, signal) {
  const { memory, order, seed, trees, hosts, clients, seconds, unauthenticated } = options;
  process.stderr.write(`chaos: --memory ${memory} --order ${order} --seed ${seed}\n`);
  const rounds = trees.flatMap((tree) => hosts.map((count) => ({ tree, hosts: count })));
  const faults = unauthenticated > 0 ? 0 : Math.ceil(options.faults / rounds.length);
  const results = [];
  for (const { tree, hosts: count } of rounds) {
    const plan = planRound({ memory, order, seed, tree, hosts: count, faults, seconds });
    const name = `${tree}, ${count} hosts`;
    const tell = (/** @type {string} */ text) => process.stderr.write(`${name}: ${text}\n`);
    const directory = mkdtempSync(join(tmpdir(), `tram-chaos-${seed}-${tree}-${count}-`));
    const what =
      unauthenticated > 0 ? `${unauthenticated} s of unauthenticated peers` : `${faults} faults`;
    tell(`${what} under the load of ${clients} clients`);
    let isWorthKeeping = true;
    try {
      const kind = await roundOf(options);
      const roundOptions = { directory, seconds, clients, unauthenticated, signal, tell };
      const result = await runRound(new kind(plan, roundOptions));
      results.push(result);
      isWorthKeeping = result.complaints.length > 0;
      tell(isWorthKeeping ? 'FAILED' : 'all checks hold');
      for (const complaint of result.complaints) tell(`  ${complaint}`);
      if (isWorthKeeping) tell(`to repeat the plan: ${commandFor(options, tree, count, faults)}`);
    } finally {
      if ((isWorthKeeping && !signal.aborted) || options.keep) {
        tell(`traces and logs are in ${directory}`);
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

/** Rounds across machines need libfabric, so their modules are loaded on demand. @param {Options} options @returns {Promise<typeof Round>} */
async function roundOf({ memory, unauthenticated }) {
  if (memory === 'processes') return Round;
  if (unauthenticated > 0)
    return (await import('./unauthenticated-round.mjs')).UnauthenticatedRound;
  return (await import('./machines-round.mjs')).MachinesRound;
}

/** @param {Options} options @param {string} tree @param {number} hosts @param {number} faults */
function commandFor(
  { memory, order, unauthenticated, seed, seconds, clients },
  tree,
  hosts,
  faults,
) {
  const words = [
    ...(memory === 'processes' ? [] : [`--memory ${memory}`]),
    ...(order === 'strict' ? [] : [`--order ${order}`]),
    `--seed ${seed} --trees ${tree} --hosts ${hosts}`,
    unauthenticated > 0 ? `--unauthenticated ${unauthenticated}` : `--faults ${faults}`,
    `--seconds ${seconds} --clients ${clients}`,
  ];
  return `npm run chaos -- ${words.join(' ')}`;
}
