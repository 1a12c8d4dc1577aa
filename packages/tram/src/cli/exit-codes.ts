/** The exit codes of all commands, documented in `tram --help`. */
import { type ErrorCode, TramError } from '../errors.js';

export const ExitCode = {
  fine: 0,
  failure: 1,
  usage: 2,
  verificationFailed: 3,
  timeout: 4,
  /** Of `tram host`: its service manager shall start it again. */
  restart: 5,
  interrupted: 130,
} as const;

const USAGE: ReadonlySet<ErrorCode> = new Set([
  'TRAM_INVALID_CONFIG',
  'TRAM_INVALID_TREE',
  'TRAM_INVALID_ARGUMENT',
  'TRAM_INVALID_DESTINATIONS',
  'TRAM_PAYLOAD_TOO_LARGE',
  'TRAM_UNKNOWN_REPLICA',
]);
const TIMEOUT: ReadonlySet<ErrorCode> = new Set(['TRAM_TIMEOUT', 'TRAM_OUTCOME_UNKNOWN']);

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof TramError)) return ExitCode.failure;
  if (USAGE.has(error.code)) return ExitCode.usage;
  return TIMEOUT.has(error.code) ? ExitCode.timeout : ExitCode.failure;
}
