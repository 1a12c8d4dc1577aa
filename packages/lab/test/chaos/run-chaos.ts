/** Runs `chaos/main.mjs` for tests of its rounds. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';

const execute = promisify(execFile);
const SCRIPT = fileURLToPath(new URL('../../chaos/main.mjs', import.meta.url));

/**
 * Runs one round in which all checks must hold. @returns its result
 * @param warmsUp  do hosts warm up, as in production? A round with many restarts would spend most of its time on that.
 */
export async function runChaos(options: string, warmsUp = false) {
  const env = { ...process.env, ...(warmsUp && { TRAM_WARM_UP: undefined }) };
  const run = execute(process.execPath, [SCRIPT, '--json', ...options.split(' ')], { env });
  // If a check fails, the exit code is not 0, and stderr has the command that repeats the round.
  const { stdout, stderr } = await run.catch((error) => error as Awaited<typeof run>);
  const { rounds } = stdout === '' ? { rounds: [{ complaints: [stderr] }] } : JSON.parse(stdout);
  expect(rounds[0].complaints, stderr).toEqual([]);
  return rounds[0];
}
