/** `tram-lab explore`: visits all states of small scopes, and reports whether the protocol holds in each. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer } from 'tram-multicast/internal/cli/number-option.js';
import type { Action } from '../explore/action.js';
import type { Subject } from '../explore/mutant.js';
import { SCOPES } from '../explore/scopes.js';
import type { Counts, Found, Result } from '../explore/search.js';
import { MutationError } from '../sim/mutations/mutation.js';
import { showLine } from './progress.js';
import { mutations } from './sim-options.js';

export interface ExploreFlags {
  readonly scope?: readonly string[];
  readonly mutation?: readonly string[];
  readonly script?: string;
  readonly list?: boolean;
  readonly mutations?: boolean;
  readonly sweep?: number;
  readonly verify?: number;
  readonly minutes: number;
}

const HELP = `
A scope is a small cluster and all that may happen to it: steps, landings of posted operations,
campaigns, kills, restarts. The explorer runs the code of production and visits every state that can be
reached, in whatever order these things happen. docs/explorer.md says what that shows, and what it does not.

Examples:
  Explore all scopes that take minutes at most, one after the other:
    $ tram-lab explore

  One scope:
    $ tram-lab explore --scope takeover

  Put an error into the protocol, and see the shortest script that shows it:
    $ tram-lab explore --scope small --mutation H11

  Tell a script in words:
    $ tram-lab explore --scope small --mutation H11 --script "cB B>A A>B"

  Check the explorer itself, on 100 random walks through each scope:
    $ tram-lab explore --verify 100

  Which scope finds which mutation, in how many actions, as a table:
    $ tram-lab explore --mutations

  Exhaust the scopes of seconds with every mutation that was not found, 60 seconds each:
    $ tram-lab explore --sweep 60

Exit codes:
  0    every scope holds
  1    a scope was not exhausted in the time given
  2    an option is wrong
  3    a property is violated
  130  interrupted
`;

export function registerExplore(program: Command): void {
  const command = program
    .command('explore')
    .helpGroup('Test:')
    .summary('visit all states of small scopes, and check them')
    .description(
      'Runs the protocol through all interleavings of small scopes. A violation is reported with the ' +
        'shortest script of actions that leads to it.',
    )
    .option('--scope <list>', 'only these scopes, separated by commas', scopes)
    .option('--mutation <list>', 'put errors into the protocol, separated by commas', mutations)
    .option('--minutes <n>', 'give up a scope after so many minutes', integer(1, 1440), 30)
    .addOption(
      new Option('--script <script>', 'run this script, and tell it in words; needs --scope'),
    )
    .addOption(new Option('--list', 'list the scopes').conflicts(['mutation', 'script']))
    .addOption(
      new Option('--verify <walks>', 'check the explorer itself on so many random walks')
        .argParser(integer(1, 1e6))
        .conflicts(['script', 'list']),
    )
    .addOption(
      new Option(
        '--sweep <seconds>',
        'search for all mutations that were not found, so long in each scope',
      )
        .argParser(integer(1, 86_400))
        .conflicts(['scope', 'mutation', 'script', 'list', 'verify', 'mutations']),
    )
    .addOption(
      new Option('--mutations', 'replay what was found of all mutations, as a table').conflicts([
        'scope',
        'mutation',
        'script',
        'list',
        'verify',
      ]),
    )
    .addHelpText('after', HELP);
  command.action(async (flags: ExploreFlags) => {
    if (flags.script !== undefined && flags.scope?.length !== 1) {
      command.error('error: --script runs in one scope: choose it with --scope');
    }
    process.exitCode = await explore(flags);
  });
}

function scopes(text: string): string[] {
  const given = [...new Set(text.split(',').map((part) => part.trim()))];
  const unknown = given.filter((name) => !SCOPES.has(name));
  if (unknown.length === 0) return given;
  throw new InvalidArgumentError(
    `Unknown scope: ${unknown.join(', ') || '(empty)'}. Expected some of ${[...SCOPES.keys()].join(', ')}.`,
  );
}

async function explore(flags: ExploreFlags): Promise<number> {
  if (flags.list) return list(flags.scope ?? [...SCOPES.keys()]);
  const names = flags.scope ?? [...SCOPES.keys()].filter((name) => !SCOPES.get(name)!.isLong);
  const { loadExplorer } = await import('../explore/mutant.js');
  if (flags.mutations) return printFindings();
  if (flags.sweep !== undefined) return printSweep(flags.sweep);
  let subject: Subject;
  try {
    subject = await loadExplorer(...(flags.mutation ?? []));
  } catch (error) {
    if (!(error instanceof MutationError)) throw error;
    process.stderr.write(`error: these mutations can't be applied together: ${error.message}\n`);
    return ExitCode.usage;
  }
  if (flags.script !== undefined) return tell(subject, names[0], flags.script);
  if (flags.verify !== undefined) return verify(subject, names, flags.verify);
  let exitCode: number = ExitCode.fine;
  for (const name of names) {
    const code = exploreOne(subject, name, flags);
    if (exitCode !== ExitCode.verificationFailed && code !== ExitCode.fine) exitCode = code;
  }
  return exitCode;
}

function list(names: readonly string[]): number {
  for (const name of names) {
    const { title, isLong } = SCOPES.get(name)!;
    process.stdout.write(`${name.padEnd(10)}${title}${isLong ? ' (only with --scope)' : ''}\n`);
  }
  return ExitCode.fine;
}

/** Stops after the time given, and shows how far the search is. */
function watch(name: string, minutes: number): { mustStop(counts: Counts): boolean; end(): void } {
  const startedMs = performance.now();
  let shownMs = startedMs;
  let counts: Counts = { states: 0, transitions: 0, depth: 0 };
  const { draw, end } = showLine(
    () => `${name}: ${number(counts.states)} states, ${number(counts.transitions)} transitions`,
  );
  return {
    mustStop: (now) => {
      counts = now;
      const nowMs = performance.now();
      // The search does not return to the event loop, so no timer draws the line.
      if (nowMs - shownMs > SHOW_EVERY_MS) {
        shownMs = nowMs;
        draw();
      }
      return nowMs - startedMs > minutes * 60_000;
    },
    end,
  };
}

const SHOW_EVERY_MS = 10_000;
const HUNT_MS = 20_000;

function exploreOne(subject: Subject, name: string, flags: ExploreFlags): number {
  const scope = subject.SCOPES.get(name)!;
  process.stdout.write(`${name}: ${scope.title}\n`);
  const hunted = flags.mutation ? huntFor(subject, name) : undefined;
  if (hunted) return report(subject, name, hunted, flags);
  const startedMs = performance.now();
  const progress = watch(name, flags.minutes);
  const result = new subject.Search(scope, progress).run();
  progress.end();
  const seconds = (performance.now() - startedMs) / 1000;
  process.stdout.write(`${formatResult(result, seconds)}\n`);
  if (result.found) return report(subject, name, result.found, flags);
  return result.isExhausted ? ExitCode.fine : ExitCode.failure;
}

/** An error that was put in is likely to be found by random walks, long before an exhaustive search comes to it. */
function huntFor(subject: Subject, name: string): Found | undefined {
  const endsMs = performance.now() + HUNT_MS;
  return subject.hunt(subject.SCOPES.get(name)!, 1, () => performance.now() > endsMs);
}

function report(subject: Subject, name: string, first: Found, flags: ExploreFlags): number {
  const progress = watch(`${name}, shorter scripts`, flags.minutes);
  const scope = subject.SCOPES.get(name)!;
  const { found, isShortest } = subject.shorten(scope, first, progress.mustStop);
  progress.end();
  process.stdout.write(formatFound(subject, name, found, isShortest, flags.mutation ?? []));
  return ExitCode.verificationFailed;
}

function formatResult(result: Result, seconds: number): string {
  const { states, transitions, depth, isExhausted, found, tableBytes } = result;
  const verdict = found ? 'violated' : isExhausted ? 'holds, exhausted' : 'not exhausted';
  const perSecond = number(Math.round(transitions / seconds));
  return `  ${verdict}: ${number(states)} states, ${number(transitions)} transitions, at most ${depth} actions, ${seconds.toFixed(1)} s (${perSecond} transitions per second), ${(tableBytes / 2 ** 20).toFixed(0)} MiB for the states`;
}

function formatFound(
  subject: Subject,
  name: string,
  found: Found,
  isShortest: boolean,
  mutated: readonly string[],
): string {
  const { lines } = subject.narrate(subject.SCOPES.get(name)!, found.actions);
  const how = isShortest ? 'the shortest script' : 'a script';
  const options = mutated.length > 0 ? ` --mutation ${mutated.join(',')}` : '';
  return `  VIOLATED: ${found.message}
  ${how}, of ${found.actions.length} actions:

${lines.join('\n')}

  To replay it:
    $ npx tram-lab explore --scope ${name}${options} --script "${subject.formatScript(found.actions)}"
`;
}

function tell(subject: Subject, name: string, script: string): number {
  let actions: readonly Action[];
  try {
    actions = subject.parseScript(script);
    const { lines, found } = subject.narrate(subject.SCOPES.get(name)!, actions);
    const end = found ? `VIOLATED: ${found.message}` : 'holds so far';
    process.stdout.write(`${lines.join('\n')}\n${end}\n`);
    return found ? ExitCode.verificationFailed : ExitCode.fine;
  } catch (error) {
    if (!(error instanceof subject.ScriptError)) throw error;
    process.stderr.write(`error: ${(error as Error).message}\n`);
    return ExitCode.usage;
  }
}

function verify(subject: Subject, names: readonly string[], walks: number): number {
  for (const name of names) {
    try {
      const verified = new subject.Verification(subject.SCOPES.get(name)!, 1).run(walks);
      const { states, transitions, merged } = verified;
      process.stdout.write(
        `${name}: ${number(states)} states and ${number(transitions)} transitions agree, ${number(merged)} merged states have one future\n`,
      );
    } catch (error) {
      if (!(error instanceof subject.VerificationError)) throw error;
      process.stdout.write(`${name}: ${(error as Error).message}\n`);
      return ExitCode.verificationFailed;
    }
  }
  return ExitCode.fine;
}

async function printFindings(): Promise<number> {
  const { findingsTable } = await import('../explore/findings-table.js');
  process.stdout.write(await findingsTable());
  return ExitCode.fine;
}

async function printSweep(seconds: number): Promise<number> {
  const { sweep } = await import('../explore/sweep.js');
  let exitCode: number = ExitCode.fine;
  for await (const { mutation, scope, result } of sweep(seconds * 1000)) {
    const { found, isExhausted, states } = result;
    const verdict = found
      ? `VIOLATED: ${found.message}`
      : isExhausted
        ? 'exhausted'
        : 'not exhausted';
    process.stdout.write(`${mutation} in ${scope}: ${number(states)} states, ${verdict}\n`);
    if (found) exitCode = ExitCode.verificationFailed;
    else if (!isExhausted && exitCode === ExitCode.fine) exitCode = ExitCode.failure;
  }
  return exitCode;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
