/** Runs a program of commands. An error becomes a message on stderr and an exit code. */
import { type Command, CommanderError } from 'commander';
import { ERRORS, TramError } from '../errors.js';
import { ExitCode, exitCodeOf } from './exit-codes.js';
import { messageFor } from './missing-package.js';

export async function run(program: Command, argv: readonly string[]): Promise<void> {
  // A reader that closes the pipe (`tram check FILE | head`) is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });
  if (argv.length <= 2) {
    program.outputHelp({ error: true });
    process.exitCode = ExitCode.usage;
    return;
  }
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has already printed; it reports --help and --version as "errors" with code 0.
      process.exitCode = error.exitCode === 0 ? ExitCode.fine : ExitCode.usage;
      return;
    }
    process.stderr.write(describe(program.name(), error));
    if (process.env['TRAM_DEBUG'] && error instanceof Error) {
      process.stderr.write(`${error.stack}\n`);
    }
    process.exitCode = exitCodeOf(error);
  }
}

function describe(program: string, error: unknown): string {
  if (!(error instanceof TramError)) {
    const message = error instanceof Error ? error.message : String(error);
    return `${program}: ${messageFor(error) ?? message}\n`;
  }
  const { code, message, hint } = error;
  return `${program}: ${message}\n  ${hint ?? ERRORS[code].whatToDo}\n`;
}
