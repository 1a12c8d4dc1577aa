/** `tram-lab bench paper`: repeats the experiments of the paper on this machine, with figures and a report. */
import { type Command, Option } from 'commander';
import { paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { catchInterruption } from 'tram-multicast/internal/cli/interruption.js';
import type { RunState } from '../bench/paper/run.js';
import { duration, showLine } from './progress.js';

const NAMES = [
  'write-latency',
  'random',
  'adjacent',
  'payload',
  'replication',
  'passing',
  'failover',
  'scaling',
  'machines',
];

interface PaperFlags {
  readonly quick?: boolean;
  readonly full?: boolean;
  readonly only?: readonly string[];
  readonly out: string;
  readonly memory: 'threads' | 'processes';
  readonly draw?: boolean;
  readonly figures?: string;
}

const HELP = `
Experiments: ${NAMES.join(', ')}.

Each point is written to DIR/results.jsonl as soon as it is measured. A run that was interrupted can be continued:
points are not measured again as long as machine, code and conditions are the same. The report with all figures is
DIR/index.html; each figure is also a separate file. docs/bench.md says what each experiment measures.

Examples:
  $ tram-lab bench paper
  $ tram-lab bench paper --full --out results
  $ tram-lab bench paper --only random adjacent --out results
  $ tram-lab bench paper --draw --out results --figures docs/figures
`;

export function registerPaper(bench: Command): void {
  bench
    .command('paper')
    .summary('the experiments of the paper, with figures and a report')
    .addOption(new Option('--quick', 'few points: 6 minutes (default)').conflicts('full'))
    .option('--full', 'all points, longer and more often: one hour')
    .addOption(new Option('--only <names...>', 'only these experiments').choices(NAMES))
    .option('--out <directory>', 'the directory for results and report', 'bench-paper')
    .addOption(
      new Option('--memory <kind>', 'the memory for experiments that work on both')
        .choices(['threads', 'processes'])
        .default('threads'),
    )
    .option('--draw', 'draw the existing results without measuring')
    .option('--figures <directory>', 'also write the figures into this directory')
    .addHelpText('after', HELP)
    .action(async (flags: PaperFlags) => {
      const code = await paper(flags);
      // A system that hangs may still have threads, which would keep the process alive.
      process.exit(code);
    });
}

async function paper(flags: PaperFlags): Promise<number> {
  const { mkdirSync } = await import('node:fs');
  const { join, resolve } = await import('node:path');
  const { EXPERIMENTS } = await import('../bench/paper/experiments/index.js');
  const { makeReport, writeFigures, writeReport } = await import('../bench/paper/report.js');
  const { Results } = await import('../bench/paper/results.js');
  const { SYSTEMS } = await import('../bench/paper/systems.js');
  mkdirSync(flags.out, { recursive: true });
  const results = new Results(join(flags.out, 'results.jsonl'));
  const code = flags.draw ? ExitCode.fine : await measure(flags, results);
  const report = makeReport({ experiments: EXPERIMENTS, results, systems: SYSTEMS });
  writeReport(report, flags.out);
  if (flags.figures !== undefined) writeFigures(report, flags.figures);
  process.stdout.write(`${resolve(flags.out, 'index.html')}\n`);
  return code;
}

async function measure(
  flags: PaperFlags,
  results: import('../bench/paper/results.js').Results,
): Promise<number> {
  const { EXPERIMENTS } = await import('../bench/paper/experiments/index.js');
  const { FULL, QUICK } = await import('../bench/paper/profiles.js');
  const { RunState, run } = await import('../bench/paper/run.js');
  const { currentSetting } = await import('../bench/paper/setting.js');
  const { SYSTEMS } = await import('../bench/paper/systems.js');
  const profile = flags.full ? FULL : QUICK;
  const { memory, only } = flags;
  const interruption = catchInterruption();
  const state = new RunState();
  const progress = showLine(() => lineOf(state));
  try {
    await run({
      experiments: EXPERIMENTS.filter(({ name }) => only === undefined || only.includes(name)),
      plan: { profile, memory, systems: SYSTEMS },
      results,
      setting: currentSetting(profile.name, memory),
      state,
      signal: interruption.signal,
    });
  } finally {
    progress.end();
    interruption.release();
  }
  for (const { experiment, system, error } of state.failures) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${paint('red', 'failed')} ${experiment}: ${system}: ${reason}\n`);
  }
  process.stderr.write(`${state.measured} of ${state.points} points measured\n`);
  if (interruption.signal.aborted) return ExitCode.interrupted;
  return state.failures.length > 0 ? ExitCode.failure : ExitCode.fine;
}

function lineOf({ done, planned, secondsLeft, what }: RunState): string {
  const percent = planned === 0 ? 100 : Math.floor((100 * done) / planned);
  return `${percent} %, ${duration(secondsLeft)} left, ${what}`;
}
