/** Benchmarks that take minutes: they announce their steps on stderr, and an interruption ends all that they have started. */
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { catchInterruption } from 'tram-multicast/internal/cli/interruption.js';

interface LongBench<Result> {
  /** If interrupted, it ends everything that it has started, then throws. */
  readonly measure: (progress: (step: string) => void, signal: AbortSignal) => Promise<Result>;
  /** For people. */
  readonly format: (result: Result) => string;
  readonly json: boolean | undefined;
  /** By default every result is fine. */
  readonly isFine?: (result: Result) => boolean;
}

/** Runs the benchmark and prints its result. @returns the exit code */
export async function runLongBench<Result>({
  measure,
  format,
  json,
  isFine = () => true,
}: LongBench<Result>): Promise<number> {
  const { signal, release } = catchInterruption();
  try {
    const result = await measure(showStep, signal);
    process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : format(result));
    return isFine(result) ? ExitCode.fine : ExitCode.failure;
  } catch (error) {
    if (signal.aborted) return ExitCode.interrupted;
    throw error;
  } finally {
    release();
  }
}

function showStep(step: string): void {
  process.stderr.write(`${paint('dim', `… ${step}`)}\n`);
}
