/**
 * What the commands `chaos` and `soak` have in common: exit codes, options that are whole numbers, interruption by a signal.
 * Called by `main.mjs` and `soak.mjs`.
 */

export const EXIT = { fine: 0, failure: 1, usage: 2, checkFailed: 3, interrupted: 130 };

export const EXIT_CODES_HELP =
  'Exit codes: 0 all checks hold, 1 the run failed, 2 wrong options, 3 a check failed, 130 interrupted';

export class UsageError extends Error {}

/**
 * Runs a command to its exit code. SIGINT and SIGTERM abort the signal that it is given.
 * @param {string} name
 * @param {string} help  printed after a usage error
 * @param {(signal: AbortSignal) => Promise<number>} run
 * @returns {Promise<number>} the exit code
 */
export async function runCommand(name, help, run) {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => interruption.abort(signal));
  }
  try {
    return await run(interruption.signal);
  } catch (error) {
    if (interruption.signal.aborted) return EXIT.interrupted;
    if (error instanceof UsageError || isParseError(error)) {
      process.stderr.write(`${name}: ${/** @type {Error} */ (error).message}\n\n${help}`);
      return EXIT.usage;
    }
    process.stderr.write(`${name}: ${error instanceof Error ? error.stack : error}\n`);
    return EXIT.failure;
  }
}

/** @param {unknown} error */
function isParseError(error) {
  return String(/** @type {any} */ (error)?.code).startsWith('ERR_PARSE_ARGS');
}

/** @param {string} option @param {string} text @param {number} least */
export function numberOf(option, text, least) {
  const number = Number(text);
  if (text !== '' && Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(`--${option}: expected a whole number of at least ${least}, not "${text}"`);
}
