/** `tram check`: reads a recorded history from a file or a directory, and prints the verdict of the judge. */

import type { Command } from 'commander';
import type { History } from '../check/history.js';
import type { Verdict } from '../check/judge.js';
import { TramError } from '../errors.js';
import { count, paint } from './colors.js';
import { ExitCode } from './exit-codes.js';
import type { TraceSource } from './trace-source.js';

const HELP = `
The history is in JSON Lines; docs/check.md describes the events. "tram up --trace" and the option
"trace" of a cluster write it into a directory, with a file for each replica and client. The safety
properties can be judged on any history. Validity, agreement and durability need a history of a
cluster that was drained (its last line says "quiescent": true). FIFO order needs to know where
messages enter the tree. Real-time order is promised if the "groups" event says "order": "strict",
and needs the times of clients. Durability is promised by "era" events: a cluster with a journal that
starts again after a power cut continues its history. A property that can't be judged is reported as
unknown.

Examples:
  $ tram check trace.jsonl
  $ tram check history/
  $ tram check trace.jsonl --json | jq '.properties[] | select(.outcome == "violated")'

Exit codes:
  0  no property is violated; some may be unknown
  2  the history is missing or malformed
  3  a property that the run promises is violated
`;

export function registerCheck(program: Command): void {
  program
    .command('check')
    .helpGroup('Judge a run:')
    .summary('check a recorded history against the properties of atomic multicast')
    .description(
      'Judges a recorded history: validity, uniform agreement, integrity, prefix and acyclic order, ' +
        'partial genuineness, FIFO per client and entry group, real-time order, and durability across power cuts. A violation comes with a witness.',
    )
    .argument('<history>', 'a file of JSON Lines, or a directory of such files; "-" reads stdin')
    .option('--json', 'print the verdict as one JSON object')
    .addHelpText('after', HELP)
    .action(async (file: string, options: { json?: boolean }) => {
      process.exitCode = await check(file, options.json === true);
    });
}

async function check(path: string, json: boolean): Promise<number> {
  const { MalformedTraceError } = await import('../check/events.js');
  const { judge } = await import('../check/judge.js');
  const source = await open(path);
  try {
    const verdict = judge(await read(source));
    process.stdout.write(json ? `${JSON.stringify(verdict, null, 2)}\n` : formatVerdict(verdict));
    return verdict.outcome === 'violated' ? ExitCode.verificationFailed : ExitCode.fine;
  } catch (error) {
    if (error instanceof MalformedTraceError) {
      const { name, line } = source.place(error.line);
      const text = error.text === undefined ? '' : `\n  ${shorten(error.text)}`;
      throw new TramError(
        'TRAM_INVALID_ARGUMENT',
        `${name}, line ${line}: ${error.reason}${text}`,
        {
          hint: 'docs/check.md describes the events of a history.',
          cause: error,
        },
      );
    }
    if (isSystemError(error)) {
      const { message } = error;
      throw new TramError('TRAM_INVALID_ARGUMENT', `can't read ${path}: ${message}`, {
        hint: 'Name a file of JSON Lines, or a directory of such files.',
        cause: error,
      });
    }
    throw error;
  }
}

async function read(source: TraceSource): Promise<History> {
  const { readTrace } = await import('../check/trace.js');
  const history = await readTrace(source.chunks);
  for (const name of source.unfinished) {
    process.stderr.write(`tram check: the last line of ${name} is incomplete and is left out\n`);
  }
  return history;
}

async function open(path: string): Promise<TraceSource> {
  const { isDirectory, openDirectory, openFile, openStdin } = await import('./trace-source.js');
  if (path === '-') return openStdin();
  return (await isDirectory(path)) ? openDirectory(path) : openFile(path);
}

/** The verdict as a table. Other commands that judge a run use it too. */
export function formatVerdict(verdict: Verdict): string {
  const lines = verdict.properties.map((property) => {
    const line = `${property.property.padEnd(22)} ${outcome(property.outcome)}`;
    if (property.outcome === 'unknown') return `${line}: ${property.reason}`;
    const witness = property.outcome === 'holds' ? undefined : property.witness;
    return witness === undefined ? line : `${line}\n  ${witness}`;
  });
  const { counts } = verdict;
  const summary = [
    count(counts.messages, 'message'),
    count(counts.deliveries, 'delivery', 'deliveries'),
    count(counts.groups, 'group'),
    count(counts.replicas, 'replica'),
    count(counts.crashes, 'crash', 'crashes'),
    count(counts.restarts, 'restart'),
    count(counts.restores, 'restore'),
    count(counts.clientCrashes, 'client crash', 'client crashes'),
    ...(counts.eras > 1 ? [count(counts.eras, 'era')] : []),
  ].join(', ');
  return `${lines.join('\n')}\n\n${summary}\nverdict: ${outcome(verdict.outcome)}\n`;
}

const COLORS = {
  holds: 'green',
  violated: 'red',
  unknown: 'yellow',
  'not-promised': 'dim',
} as const;

function outcome(text: keyof typeof COLORS): string {
  return paint(COLORS[text], text);
}

function shorten(text: string): string {
  const characters = 120;
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}
