/**
 * Finds, for every mutation that a seed detects, the lowest seed that does, and writes it into the tables of mutations and
 * into docs/paper-errata.md. Run it, after `npm run build`, whenever the protocol or what the simulator draws has changed:
 *
 *   node packages/lab/scripts/find-seeds.mjs [mutation …]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { loadMutant } from '../dist/sim/mutations/mutant.js';
import { MUTATIONS } from '../dist/sim/mutations/table.js';

const SEEDS_MAX = 500;

const root = new URL('../../../', import.meta.url);
const tables = ['holes', 'further'].map(
  (name) => new URL(`packages/lab/src/sim/mutations/${name}.ts`, root),
);
const errata = new URL('docs/paper-errata.md', root);

const chosen = process.argv.slice(2);
const names = chosen.length > 0 ? chosen : Object.keys(MUTATIONS);
let missing = 0;
for (const name of names) {
  const { caughtBy } = MUTATIONS[name];
  if (!('seed' in caughtBy)) continue;
  const found = await lowestSeed(name, caughtBy.options ?? {});
  if (found === undefined) {
    missing++;
    console.log(`${name}: no seed up to ${SEEDS_MAX} detects it`);
  } else if (found.seed !== caughtBy.seed || found.as !== caughtBy.as) {
    console.log(`${name}: seed ${found.seed}, ${found.as} (was ${caughtBy.seed}, ${caughtBy.as})`);
    for (const table of tables) rewrite(table, name, found);
    rewriteErrata(name, caughtBy, found);
  }
}
process.exitCode = missing > 0 ? 1 : 0;

async function lowestSeed(name, options) {
  const mutant = await loadMutant(name);
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { failure } = mutant.simulate(seed, options);
    if (failure !== undefined) return { seed, as: failure.kind };
  }
  return undefined;
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

function rewriteErrata(name, before, { seed, as }) {
  const lines = readFileSync(errata, 'utf8').split('\n');
  const isHole = (line) => line.startsWith(`| ${name} |`);
  const isFurther = (line) => line.startsWith(`| \`${name}\` |`);
  const changed = lines.map((line) => {
    if (isHole(line)) return line.replace(/\| \d+ \| [a-z]+ \|$/, `| ${seed} | ${as} |`);
    if (!isFurther(line)) return line;
    return line.replace(`seed ${before.seed}: ${before.as}`, `seed ${seed}: ${as}`);
  });
  writeFileSync(errata, changed.join('\n'));
}
