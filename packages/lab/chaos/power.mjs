/**
 * `npm run chaos -- --power`: cuts the power of clusters with a journal, again and again under load. Called by `main.mjs`.
 * docs/chaos.md describes it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT } from './command.mjs';
import { planPower } from './power-plan.mjs';
import { PowerRound } from './power-round.mjs';
import { STAGES } from './power-stages.mjs';
import { formatTable } from './report.mjs';

/** @typedef {import('./power-round.mjs').PowerResult} PowerResult */

/**
 * @typedef {object} PowerRunOptions
 * @property {import('./power-plan.mjs').PowerMemory} memory
 * @property {import('./power-plan.mjs').Durability} durability
 * @property {import('./plan.mjs').Order} order
 * @property {number} seed
 * @property {string[]} trees
 * @property {number} cuts
 * @property {number} clients
 * @property {boolean} device
 * @property {boolean} keep
 * @property {boolean} json
 */

/** @param {PowerRunOptions} options @param {AbortSignal} signal @returns {Promise<number>} the exit code */
export async function runPower(options, signal) {
  const { memory, durability, order, seed, trees, clients, device } = options;
  process.stderr.write(
    `chaos: --power --memory ${memory} --durability ${durability} --order ${order} --seed ${seed}\n`,
  );
  const cuts = Math.ceil(options.cuts / trees.length);
  /** @type {PowerResult[]} */
  const results = [];
  for (const tree of trees) {
    const plan = planPower({ memory, durability, order, seed, tree, cuts });
    const tell = (/** @type {string} */ text) => process.stderr.write(`${tree}: ${text}\n`);
    const directory = mkdtempSync(join(tmpdir(), `tram-power-${seed}-${tree}-`));
    tell(`${cuts} power cuts under the load of ${clients} clients`);
    let isWorthKeeping = true;
    try {
      const round = new PowerRound(plan, { directory, clients, device, signal, tell });
      const result = await round.run();
      results.push(result);
      isWorthKeeping = result.complaints.length > 0;
      tell(isWorthKeeping ? 'FAILED' : 'all checks hold');
      for (const complaint of result.complaints) tell(`  ${complaint}`);
      if (isWorthKeeping) tellWhereToLook(tell, directory, commandFor(options, tree, cuts));
    } finally {
      if ((isWorthKeeping && !signal.aborted) || options.keep) tell(`files are in ${directory}`);
      else rmSync(directory, { recursive: true });
    }
  }
  const isFine = results.every(({ complaints }) => complaints.length === 0);
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ seed, isFine, rounds: results })}\n`
      : `${formatResults(results)}\n\nseed ${seed}\n`,
  );
  return isFine ? EXIT.fine : EXIT.checkFailed;
}

/** @param {(text: string) => void} tell @param {string} directory @param {string} command */
function tellWhereToLook(tell, directory, command) {
  tell(`to repeat the plan: ${command}`);
  tell(`  the cuts and what they tore: ${join(directory, 'events.log')}`);
  tell(`  the recoveries: ${join(directory, 'cluster.log')}, or a log for each host`);
  tell(`  the history: tram check ${join(directory, 'trace')}`);
  tell(`  the journals: tram journal show ${join(directory, 'journal')}`);
}

/** @param {PowerRunOptions} options @param {string} tree @param {number} cuts */
function commandFor({ memory, durability, order, seed, clients, device }, tree, cuts) {
  const words = [
    `--power --memory ${memory} --durability ${durability}`,
    ...(order === 'strict' ? [] : [`--order ${order}`]),
    `--seed ${seed} --trees ${tree} --cuts ${cuts} --clients ${clients}`,
    ...(device ? ['--device'] : []),
  ];
  return `npm run chaos -- ${words.join(' ')}`;
}

/** @param {readonly PowerResult[]} results */
function formatResults(results) {
  const row = (
    /** @type {string} */ label,
    /** @type {(result: PowerResult) => number} */ of,
    /** @type {(...values: number[]) => number} */ all = sum,
  ) => [label, ...results.map((result) => String(of(result))), String(all(...results.map(of)))];
  const isFine = (/** @type {PowerResult} */ { complaints }) => complaints.length === 0;
  return formatTable([
    ['', ...results.map(({ tree }) => tree), 'all'],
    row('power cuts under load', ({ cuts }) => cuts),
    row('power cuts during a start', ({ startCuts }) => startCuts),
    ...STAGES.map((stage) => row(`  ${stage}`, ({ stages }) => stages[stage])),
    row('eras', ({ eras }) => eras),
    row('messages', ({ messages }) => messages),
    row('of these acknowledged', ({ acknowledged }) => acknowledged),
    row('deliveries', ({ deliveries }) => deliveries),
    row('slowest start, ms', ({ slowestStartMs }) => slowestStartMs, Math.max),
    row('duration, s', ({ seconds }) => seconds),
    [
      'all checks hold',
      ...results.map((result) => (isFine(result) ? 'yes' : 'NO')),
      results.every(isFine) ? 'yes' : 'NO',
    ],
  ]);
}

/** @param {number[]} numbers */
function sum(...numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
