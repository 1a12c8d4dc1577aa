/**
 * Runs transactions of Redis clients over several gateways to one store, while it kills leaders, gateways and, with journals, all
 * processes at once. Then it checks that what the clients have seen is strictly serializable.
 */
import { parseArgs } from 'node:util';
import { runRound } from './round.mjs';

const HELP = `Usage: node packages/store/chaos/main.mjs [options]

  --seed <n>        of the first round; each further round has the next one (default: random)
  --rounds <n>      default: 2; every second one has journals, and kills all processes at once too
  --seconds <n>     of load in each round (default: 20)
  --memory <m>      processes or threads (default: processes); threads can only be killed all at once,
                    so all rounds have journals
  --durability <d>  none or always, for all rounds
  --help

Exit codes: 0 all rounds are strictly serializable, 1 some are not, 2 wrong usage.
`;

process.exitCode = await main();

async function main() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        seed: { type: 'string' },
        rounds: { type: 'string', default: '2' },
        seconds: { type: 'string', default: '20' },
        memory: { type: 'string', default: 'processes' },
        durability: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    process.stderr.write(`${/** @type {Error} */ (error).message}\n${HELP}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (!['processes', 'threads'].includes(values.memory)) {
    process.stderr.write(HELP);
    return 2;
  }
  const first = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  let wrong = 0;
  for (let seed = first; seed < first + Number(values.rounds); seed++) {
    const memory = /** @type {'processes' | 'threads'} */ (values.memory);
    const drawn = seed % 2 === 0 && memory === 'processes' ? 'none' : 'always';
    const durability = /** @type {'none' | 'always'} */ (values.durability ?? drawn);
    const result = await runRound({ seed, seconds: Number(values.seconds), memory, durability });
    process.stdout.write(`${JSON.stringify(result)}\n`);
    if (result.violation !== undefined || result.errors.length > 0) wrong++;
  }
  return wrong === 0 ? 0 : 1;
}
