/** `node packages/store/chaos/malformed.mjs`: malformed requests at a running store. docs/chaos.md describes it. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ATTACKS } from './malformed/attacks.mjs';
import { runMalformed } from './malformed/malformed.mjs';

const HELP = `Usage: node packages/store/chaos/malformed.mjs [options]

  --seconds <n>      of attacks (default: 60)
  --connections <n>  that say nothing (default: 10000)
  --only <attack>    one kind of attack, such as "random bytes" (default: all)
  --seed <n>         default: random
  --help

Exit codes: 0 a client that behaves well has not noticed, and memory was level; 1 otherwise; 2 wrong usage, or too few open files
are allowed.
`;
/** What a process has open besides the connections that say nothing. */
const OTHER_FILES = 1000;

process.exitCode = await main();

async function main() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        seconds: { type: 'string', default: '60' },
        connections: { type: 'string', default: '10000' },
        only: { type: 'string' },
        seed: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    process.stderr.write(`${/** @type {Error} */ (error).message}\n${HELP}`);
    return 2;
  }
  const [seconds, connections] = [Number(values.seconds), Number(values.connections)];
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  const names = values.only === undefined ? Object.keys(ATTACKS) : [values.only];
  const isUsage =
    seconds > 0 &&
    Number.isInteger(connections) &&
    Number.isInteger(seed) &&
    names.every((name) => name in ATTACKS);
  if (values.help || !isUsage) {
    (values.help ? process.stdout : process.stderr).write(HELP);
    return values.help ? 0 : 2;
  }
  const files = openFilesMax();
  if (files < connections + OTHER_FILES) {
    process.stderr.write(
      `A process may open ${files} files here, and ${connections + OTHER_FILES} are needed. Raise the limit with "ulimit -n", or use --connections.\n`,
    );
    return 2;
  }
  const result = await runMalformed({ seed, seconds, connections, names });
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  return result.isFine ? 0 : 1;
}

/** The hard limit: Node raises the soft one to it. */
function openFilesMax() {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
  return hard === undefined || hard === 'unlimited' ? Infinity : Number(hard);
}
