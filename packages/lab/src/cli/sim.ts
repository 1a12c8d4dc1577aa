/** `tram-lab sim`: runs seeds in the simulator and reports the results. */
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Command } from 'commander';
import { formatVerdict } from 'tram-multicast/internal/cli/check.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { formatLink } from '../sim/link.js';
import { MutationError } from '../sim/mutations/mutation.js';
import { MUTATIONS } from '../sim/mutations/table.js';
import type { SeedOutcome, Totals } from '../sim/outcome.js';
import { drawPlan, FAULTS, type Fault, type Options } from '../sim/plan.js';
import { showProgress } from './progress.js';
import {
  addOptions,
  DEFAULT_FROM,
  DEFAULT_SEEDS,
  planOptions,
  type SimFlags,
} from './sim-options.js';
import {
  formatFailure,
  formatPlan,
  formatSummary,
  formatTallies,
  isFailed,
  type Summary,
  toJson,
} from './sim-report.js';

const HANG_AFTER_MS = 120_000;

const FAULT_TITLES: Readonly<Record<Fault, string>> = {
  crash: 'a replica stops for good, in the middle of a step',
  restart: 'a replica stops and comes back with empty memory',
  kill: 'a replica stops, and resumes with the memory that it left',
  outage: 'more than f members of a group are killed, and resume with the memory that they left',
  stop: 'members of a group, or of all groups, stop in an orderly way and leave snapshots; they resume with them',
  pause: 'a replica pauses in the middle of a step, and continues much later',
  'slow-replica': 'up to f followers are slow, hang or are gone for long',
  suspicion: 'a replica suspects a leader that works',
  rivals: 'up to three members campaign at the same time',
  'late-heartbeats': 'heartbeats take about as long as suspicion tolerates',
  'slow-link': 'writes between two participants are slow',
  'broken-link':
    'connections of a replica break, and writes in flight are lost or reported as lost',
  'link-down': 'connections of a replica stay down for a while, in one or both directions',
  'client-crash': 'a client stops between two writes, and another one takes its place',
  'torn-writes': 'writes land word by word, completions come late',
  'tiny-rings': 'rings hold only a few messages',
  bursts: 'clients send many messages at once, then none',
  interruptions: 'steps are interrupted between loads and stores, while other participants run',
  'wrong-clocks':
    'clocks jump, stand still, run fast or slow, and differ; the service asks for ticks',
  'power-cut': 'a host loses its memory and what was not synced',
  'some-power-cuts': 'the same, of several hosts at once',
  blackout: 'the same, of all hosts at once',
  'cut-recovery': 'the power of hosts is cut, or the coordinator ends, while the cluster recovers',
  'host-kill': 'the process of a host ends, and its disk keeps what was written',
  'lost-disk': 'a host comes back with an empty disk',
  'new-disk': 'the same, and the memory of its replicas stays',
  'rotten-disk': 'synced bytes of a disk change',
  'slow-disk': 'syncs of a host take long',
  'failed-sync': 'a sync fails, and its host ends',
  'rival-recovery': 'a recovery begins without need, or next to another one',
  'cut-at-mark':
    'all power is cut when one of several snapshots at a mark counts, and others do not yet',
};

function helpText(): string {
  const list = (entries: [string, string][]): string => {
    const width = Math.max(...entries.map(([name]) => name.length)) + 2;
    return entries.map(([name, title]) => `  ${name.padEnd(width)}${title}`).join('\n');
  };
  return `
The seed determines everything: the tree, the sizes, the timing, the messages, and all faults with
their times. First the faults happen. Then the simulated world heals, and all messages must be
delivered. The simulator checks each delivery at once, and the judge checks the whole history at the
end. An option fixes a value that would be drawn. The same seed and options give the same run on every
machine, event for event. The default is to run the ${DEFAULT_SEEDS} seeds from ${DEFAULT_FROM} on.

Faults:
${list(FAULTS.map((fault) => [fault, FAULT_TITLES[fault]]))}

Mutations (small changes of the protocol's source, each an error that the simulator or a scripted attack notices;
H1 to H31 are the holes of docs/paper-errata.md). A mutation that only certain runs show also sets the options of
such runs, unless you set them:
${list(Object.entries(MUTATIONS).map(([name, { title }]) => [name, title]))}

Examples:
  Search for errors with other seeds, on all cores:
    $ tram-lab sim --seeds 2000 --from 100000

  One run, its history, and the verdict of the judge on it:
    $ tram-lab sim --seed 7 --trace trace.jsonl && tram check trace.jsonl

  Only faults of leaders, in a chain of four groups with five members each:
    $ tram-lab sim --tree depth --groups 4 --replicas 5 --faults crash,pause,suspicion,rivals

  Put an error of the paper into the protocol, and see that it is found:
    $ tram-lab sim --seeds 500 --mutation H4

  See the run that fails, step by step, in a browser:
    $ xdg-open "$(tram-lab sim --seed 12 --mutation H2 --groups 1 --replicas 3 --messages 150 --link)"

  Your own tree (group 0 is the root), without faults:
    $ tram-lab sim --tree -1,0,0,1 --faults none

  The number of messages that one thread can order per second:
    $ tram-lab sim --throughput

Exit codes:
  0    every seed holds
  2    an option is wrong
  3    a seed failed, or in 1000 seeds or more a fault or transition never occurred
  130  interrupted; the report covers the seeds that were done
`;
}

export function registerSim(program: Command): void {
  const command = program
    .command('sim')
    .helpGroup('Test:')
    .summary('run the protocol in a simulator with random faults, and check it')
    .description(
      'Runs the protocol in a deterministic simulator: the same code as in production, on a simulated ' +
        'memory. The seed determines every step, write and fault. A failure is reported with its seed and ' +
        'the command that replays it.',
    );
  addOptions(command)
    .addHelpText('after', helpText)
    .action(async (flags: SimFlags) => {
      process.exitCode = await sim(flags, planOptions(flags, command));
    });
}

async function sim(flags: SimFlags, options: Options): Promise<number> {
  if (flags.throughput) return measureThroughput(flags);
  if (flags.link) return printLink(flags, options);
  const { Totals } = await import('../sim/outcome.js');
  const totals = new Totals();
  const startedMs = performance.now();
  const run = await runOrExplain(flags, options, totals);
  if (run === undefined) return ExitCode.usage;
  const { last, isInterrupted } = run;
  const wallMs = performance.now() - startedMs;
  const summary: Summary = { flags, options, totals, wallMs, isInterrupted };
  const isWritten = flags.trace === undefined || (await writeTrace(flags.trace, last));
  if (flags.json) process.stdout.write(`${JSON.stringify(toJson(summary), null, 2)}\n`);
  else if (flags.seed === undefined) process.stdout.write(formatSummary(summary));
  else if (last) process.stdout.write(formatOne(last, summary));
  if (isInterrupted) return ExitCode.interrupted;
  if (isFailed(summary)) return ExitCode.verificationFailed;
  return isWritten ? ExitCode.fine : ExitCode.failure;
}

/** The built page of this checkout, from `src` and from `dist`. */
const PAGE = new URL('../../../page/dist/sim/index.html', import.meta.url);

function printLink({ seed, mutation }: SimFlags, options: Options): number {
  const link = { seed: seed!, mutation: mutation?.[0], options, deeds: [], events: 0 };
  process.stdout.write(`${PAGE.href}#${formatLink(link)}\n`);
  return ExitCode.fine;
}

interface Run {
  readonly last: SeedOutcome | undefined;
  readonly isInterrupted: boolean;
}

/** Undefined if the mutations do not fit together. */
async function runOrExplain(
  flags: SimFlags,
  options: Options,
  totals: Totals,
): Promise<Run | undefined> {
  try {
    return await runAll(flags, options, totals);
  } catch (error) {
    if (!(error instanceof MutationError)) throw error;
    const names = flags.mutation?.join(' and ');
    process.stderr.write(`error: ${names} can't be applied together: ${error.message}\n`);
    return undefined;
  }
}

/** Runs the seeds until they are done or the user interrupts. */
async function runAll(flags: SimFlags, options: Options, totals: Totals): Promise<Run> {
  const { runSeeds } = await import('../sim/pool.js');
  const isOne = flags.seed !== undefined;
  const seeds = isOne ? 1 : (flags.seeds ?? DEFAULT_SEEDS);
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort();
  process.once('SIGINT', interrupt);
  const progress = isOne ? undefined : showProgress(seeds, totals);
  let last: SeedOutcome | undefined;
  try {
    await runSeeds({
      from: flags.seed ?? flags.from ?? DEFAULT_FROM,
      seeds,
      options,
      mutations: flags.mutation ?? [],
      jobs: flags.jobs ?? availableParallelism(),
      wantsDetails: isOne,
      hangAfterMs: HANG_AFTER_MS,
      signal: interruption.signal,
      onOutcome: (outcome) => {
        totals.add(outcome);
        last = outcome;
      },
    });
  } finally {
    progress?.end();
    process.off('SIGINT', interrupt);
  }
  return { last, isInterrupted: interruption.signal.aborted };
}

/** @returns whether the history was written */
async function writeTrace(file: string, outcome: SeedOutcome | undefined): Promise<boolean> {
  const { writeFile } = await import('node:fs/promises');
  try {
    if (outcome?.details === undefined) throw new Error('the run did not end');
    await writeFile(file, outcome.details.trace);
    return true;
  } catch (error) {
    process.stderr.write(`tram-lab sim: can't write ${file}: ${(error as Error).message}\n`);
    return false;
  }
}

function formatOne(outcome: SeedOutcome, { flags, options, totals }: Summary): string {
  const parts = [
    `seed ${outcome.seed}\n`,
    formatPlan(drawPlan(outcome.seed, options), flags.mutation ?? []),
  ];
  parts.push(formatTallies(outcome));
  if (outcome.details) {
    const simulated = `${(outcome.simulatedUs / 1000).toFixed(1)} ms simulated`;
    parts.push(`${formatVerdict(outcome.details.verdict)}${simulated}\n`);
  }
  for (const failure of totals.failures) {
    parts.push(formatFailure(failure, flags, Number.POSITIVE_INFINITY));
  }
  return parts.join('\n');
}

async function measureThroughput(flags: SimFlags): Promise<number> {
  const { measure } = await import('../sim/throughput.js');
  const figure = measure(() => performance.now());
  const text = `${figure.conditions}\n${figure.messages.toLocaleString('en-US')} messages ordered in ${(figure.wallMs / 1000).toFixed(2)} s: ${figure.messagesPerSecond.toLocaleString('en-US')} messages per second\n`;
  process.stdout.write(flags.json ? `${JSON.stringify(figure, null, 2)}\n` : text);
  return ExitCode.fine;
}
