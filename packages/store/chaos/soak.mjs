/** `node packages/store/chaos/soak.mjs`: mixed load for a long time, while leaders are killed. docs/chaos.md describes it. */
import { parseArgs } from 'node:util';
import { soak } from './soak/soak.mjs';

const HELP = `Usage: node packages/store/chaos/soak.mjs [options]

  --minutes <n>     of load (default: 10)
  --kill-every <s>  seconds after which the host that leads the most shards is killed (default: 5)
  --seed <n>        default: random
  --help

Exit codes: 0 no reply was wrong, no client has noticed anything, and memory was level; 1 otherwise; 2 wrong usage.
`;

process.exitCode = await main();

async function main() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '10' },
        'kill-every': { type: 'string', default: '5' },
        seed: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    process.stderr.write(`${/** @type {Error} */ (error).message}\n${HELP}`);
    return 2;
  }
  const [minutes, killEverySeconds] = [Number(values.minutes), Number(values['kill-every'])];
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  const isUsage = minutes > 0 && killEverySeconds > 0 && Number.isInteger(seed);
  if (values.help || !isUsage) {
    (values.help ? process.stdout : process.stderr).write(HELP);
    return values.help ? 0 : 2;
  }
  const result = await soak({
    seed,
    seconds: minutes * 60,
    killEverySeconds,
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  return result.isFine ? 0 : 1;
}
