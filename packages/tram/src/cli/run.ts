/**
 * Runs a program of commands. An error becomes a message on stderr and an exit code; with `--json`, the message is one
 * line with a JSON object.
 */
import { type Command, CommanderError } from 'commander';
import { ERRORS, ReplyError, TramError } from '../errors.js';
import { ExitCode, exitCodeOf } from './exit-codes.js';
import { messageFor } from './missing-package.js';
import { readableReplies } from './readable.js';

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
  const isJson = argv.includes('--json');
  // What Commander prints of wrong usage is for people.
  if (isJson) for (const one of [program, ...program.commands]) one.configureOutput(SILENT);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has already printed; it reports --help and --version as "errors" with code 0.
      process.exitCode = error.exitCode === 0 ? ExitCode.fine : ExitCode.usage;
      if (isJson && error.exitCode !== 0) process.stderr.write(toJson(usageError(error)));
      return;
    }
    process.stderr.write(isJson ? toJson(error) : describe(program.name(), error));
    if (process.env['TRAM_DEBUG'] && error instanceof Error) {
      process.stderr.write(`${error.stack}\n`);
    }
    process.exitCode = exitCodeOf(error);
  }
}

const SILENT = { writeErr: () => undefined };

function usageError({ message }: CommanderError): TramError {
  return new TramError('TRAM_INVALID_ARGUMENT', message.replace(/^error: /, ''), {
    hint: 'Run the command with --help for usage.',
  });
}

/** `{"error":{"code":"TRAM_NOT_FOUND","message":"…","hint":"…","retry":"safe"}}` */
function toJson(error: unknown): string {
  return `${JSON.stringify({ error: fieldsOf(error) })}\n`;
}

function fieldsOf(error: unknown): unknown {
  if (!(error instanceof TramError)) {
    const message = error instanceof Error ? error.message : String(error);
    return { code: null, message: messageFor(error) ?? message, hint: null, retry: null };
  }
  const { code, message, hint = ERRORS[code].whatToDo, retry } = error;
  if (!(error instanceof ReplyError)) return { code, message, hint, retry };
  const { missingGroups, failedGroups } = error;
  const replies = readableReplies(error.replies);
  const failures = Object.fromEntries(failedGroups);
  return { code, message, hint, retry, missingGroups, failedGroups: failures, replies };
}

function describe(program: string, error: unknown): string {
  if (!(error instanceof TramError)) {
    const message = error instanceof Error ? error.message : String(error);
    return `${program}: ${messageFor(error) ?? message}\n`;
  }
  const { code, message, hint } = error;
  return `${program}: ${message}\n  ${hint ?? ERRORS[code].whatToDo}\n`;
}
