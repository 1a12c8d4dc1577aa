/**
 * Finds, for every mutation that a seed detects, a low seed that does so in few steps, and writes it into the tables of
 * mutations. Then it writes all mutations into docs/paper-errata.md. Run it, after `npm run build`, whenever the mutations, the
 * protocol or what the simulator draws has changed. With `--no-search`, or with names, it searches for none, or for these.
 *
 *   node packages/lab/scripts/find-seeds.mjs [--no-search] [mutation …]
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { HOLES } from '../dist/sim/mutations/holes.js';
import { loadMutant } from '../dist/sim/mutations/mutant.js';
import { MUTATIONS } from '../dist/sim/mutations/table.js';

const SEEDS_MAX = 500;
/** It chooses among so many seeds that detect a mutation, and does not look much further than the lowest of them. */
const CHOICE = 6;
const FURTHER = 20;

const root = new URL('../../../', import.meta.url);
const folder = new URL('packages/lab/src/sim/mutations/', root);
const tables = readdirSync(folder).map((name) => new URL(name, folder));
const errata = new URL('docs/paper-errata.md', root);

const searchesNone = process.argv.includes('--no-search');
const chosen = process.argv.slice(2).filter((name) => name in MUTATIONS);
const names = searchesNone ? [] : chosen.length > 0 ? chosen : Object.keys(MUTATIONS);
const caught = new Map(Object.entries(MUTATIONS).map(([name, { caughtBy }]) => [name, caughtBy]));
let missing = 0;
for (const name of names) {
  const before = caught.get(name);
  if (!('seed' in before)) continue;
  const found = await shortestSeed(name, before.options ?? {});
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

async function shortestSeed(name, options) {
  const mutant = await loadMutant(name);
  const found = [];
  for (let seed = 1; seed <= SEEDS_MAX && found.length < CHOICE; seed++) {
    if (found.length > 0 && seed > found[0].seed + FURTHER) break;
    const { failure, plan, world } = mutant.simulate(seed, options);
    if (failure !== undefined) found.push({ seed, as: failure.kind, steps: steps(plan, world) });
  }
  return found.sort((one, other) => one.steps - other.steps)[0];
}

/** About how many the participants have taken. */
function steps({ sizes: { groups, replicas, clients }, stepUs }, { nowUs }) {
  return (nowUs / stepUs) * (groups * replicas + clients);
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
