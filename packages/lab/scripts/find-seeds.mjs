/**
 * Finds, for every mutation that a seed detects, a seed that does so in few steps, and writes it into the tables of mutations.
 * Then it writes all mutations into docs/paper-errata.md. Run it, after `npm run build`, whenever the mutations, the
 * protocol or what the simulator draws has changed. With `--no-search`, or with names, it searches for none, or for these.
 *
 *   node packages/lab/scripts/find-seeds.mjs [--no-search] [mutation …]
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { HOLES } from '../dist/sim/mutations/holes.js';
import { loadMutant } from '../dist/sim/mutations/mutant.js';
import { MUTATIONS } from '../dist/sim/mutations/table.js';
import { drawPlan } from '../dist/sim/plan.js';

const SEEDS_MAX = 500;
/** It chooses among so many seeds that detect a mutation, and does not look much further than the first of them. */
const CHOICE = 6;
const FURTHER = 60;

const root = new URL('../../../', import.meta.url);
const folder = new URL('packages/lab/src/sim/mutations/', root);
/** All but the one that says in which runs the judge sees holes. */
const tables = readdirSync(folder)
  .filter((name) => name !== 'judged.ts')
  .map((name) => new URL(name, folder));
const errata = new URL('docs/paper-errata.md', root);

const searchesNone = process.argv.includes('--no-search');
const chosen = process.argv.slice(2).filter((name) => name in MUTATIONS);
const names = searchesNone ? [] : chosen.length > 0 ? chosen : Object.keys(MUTATIONS);
const caught = new Map(Object.entries(MUTATIONS).map(([name, { caughtBy }]) => [name, caughtBy]));
/** The protocol as it is. */
const intact = await loadMutant();
let missing = 0;
for (const name of names) {
  const before = caught.get(name);
  if (!('seed' in before)) continue;
  const found = await shortestSeed(name, before);
  if (found === undefined) {
    missing++;
    console.log(`${name}: no seed up to ${SEEDS_MAX} detects it`);
  } else if (found.seed !== before.seed || found.as !== before.as) {
    console.log(`${name}: seed ${found.seed}, ${found.as} (was ${before.seed}, ${before.as})`);
    for (const table of tables) rewrite(table, name, found);
    caught.set(name, found);
  }
}
rewriteErrata();
process.exitCode = missing > 0 ? 1 : 0;

async function shortestSeed(name, { seed: known, options = {} }) {
  const mutant = await loadMutant(name);
  const found = [];
  let last = SEEDS_MAX;
  for (const [at, seed] of [known, ...fewestStepsFirst(options)].entries()) {
    if (at > last || found.length === CHOICE) break;
    const run = mutant.simulate(seed, options);
    if (run.failure === undefined) continue;
    // The test runs the seed without the mutation as well.
    const stepsInAll = steps(run) + steps(intact.simulate(seed, options));
    found.push({ seed, as: run.failure.kind, stepsInAll });
    last = Math.min(last, at + FURTHER);
  }
  return found.sort((one, other) => one.stepsInAll - other.stepsInAll)[0];
}

/** All seeds. Those with many participants, or short steps, come last. */
function fewestStepsFirst(options) {
  const seeds = Array.from({ length: SEEDS_MAX }, (_, i) => i + 1);
  const rates = new Map(seeds.map((seed) => [seed, stepsPerUs(drawPlan(seed, options))]));
  return seeds.sort((one, other) => rates.get(one) - rates.get(other));
}

/** About how many the participants have taken. */
function steps({ plan, world }) {
  return world.nowUs * stepsPerUs(plan);
}

function stepsPerUs({ sizes: { groups, replicas, clients }, stepUs }) {
  return (groups * replicas + clients) / stepUs;
}

/** Replace the first seed and kind of failure behind the mutation's name. */
function rewrite(file, name, { seed, as }) {
  const text = readFileSync(file, 'utf8');
  const start = text.search(new RegExp(`^  '?${name}'?: \\{$`, 'm'));
  if (start === -1) return;
  const entry = text
    .slice(start)
    .replace(/seed: \d+/, `seed: ${seed}`)
    .replace(/as: '[a-z]+'/, `as: '${as}'`);
  writeFileSync(file, text.slice(0, start) + entry);
}

/** The rows of holes get their seeds; the table of further mutations is written anew. */
function rewriteErrata() {
  const isFurther = (line) => /^\| `[a-z-]+` \|/.test(line);
  const lines = readFileSync(errata, 'utf8').split('\n');
  const first = lines.findIndex(isFurther);
  const changed = lines.filter((line) => !isFurther(line)).map(withSeed);
  changed.splice(
    first,
    0,
    ...Object.entries(MUTATIONS)
      .filter(([name]) => !(name in HOLES))
      .map(furtherRow),
  );
  writeFileSync(errata, changed.join('\n'));
}

function withSeed(line) {
  const by = caught.get(/^\| (H\d+) \|/.exec(line)?.[1]);
  return by === undefined
    ? line
    : line.replace(/\| \d+ \| [a-z]+ \|$/, `| ${by.seed} | ${by.as} |`);
}

function furtherRow([name, { title }]) {
  const by = caught.get(name);
  const catcher = 'seed' in by ? `seed ${by.seed}: ${by.as}` : `\`${by.script}.test.ts\``;
  return `| \`${name}\` | ${title} | ${catcher} |`;
}
