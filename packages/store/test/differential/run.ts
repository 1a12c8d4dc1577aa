/** Runs drawn commands at both targets, and finds the first reply that differs. */

import { type Comparison, exact } from './comparisons.js';
import { COMPARISONS } from './families/all.js';
import type { Target } from './target.js';
import { itemsOf, show, type Wire } from './wire.js';

/** Commands that belong together: the later ones make sure that a random choice leaves no difference. */
export type Step = readonly (readonly string[])[];

export interface Difference {
  readonly position: number;
  readonly command: readonly string[];
  readonly real: Wire;
  readonly ours: Wire;
}

function comparisonOf(command: readonly string[]): Comparison {
  const name = command[0].toLowerCase();
  const subcommand = `${name}|${command[1]?.toLowerCase()}`;
  return COMPARISONS[subcommand] ?? COMPARISONS[name] ?? exact;
}

function firstDifference(
  commands: readonly (readonly string[])[],
  real: readonly Wire[],
  ours: readonly Wire[],
): Difference | undefined {
  /** Those of the present transaction. */
  let queued: (readonly string[])[] | undefined;
  const position = commands.findIndex((command, i) => {
    if (command[0] === 'MULTI') queued = [];
    else if (command[0] === 'EXEC') {
      const transaction = queued!;
      queued = undefined;
      return !areAllAlike(transaction, real[i], ours[i]);
    } else if (queued === undefined) return !comparisonOf(command)(real[i], ours[i], command);
    else if (real[i][1] === 'QUEUED') queued.push(command);
    return !exact(real[i], ours[i], command);
  });
  if (position < 0) return undefined;
  return {
    position,
    command: commands[position],
    real: real[position],
    ours: ours[position],
  };
}

/** @returns whether these replies to EXEC are equal */
function areAllAlike(commands: readonly (readonly string[])[], real: Wire, ours: Wire): boolean {
  const [a, b] = [itemsOf(real), itemsOf(ours)];
  if (a === undefined || a.length !== b?.length) return exact(real, ours, []);
  return commands.every((command, i) => comparisonOf(command)(a[i], b[i], command));
}

/** How to read everything that a key of some type has. */
const READS: Readonly<Record<string, (key: string) => readonly string[]>> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

/** @returns the first difference, also in what the keys have at the end */
export async function differenceOf(
  real: Target,
  ours: Target,
  steps: readonly Step[],
  protocol: 2 | 3,
): Promise<Difference | undefined> {
  const commands = [['FLUSHALL'], ...steps.flat()];
  const both = async (batch: readonly (readonly string[])[]) =>
    Promise.all([real.run(batch, protocol), ours.run(batch, protocol)]);
  const [a, b] = await both(commands);
  const difference = firstDifference(commands, a, b);
  if (difference) return difference;

  const [[keys]] = await both([['KEYS', '*']]);
  const names = (keys[1] as readonly Wire[]).map(([, name]) => name as string);
  const types = await real.run(
    names.map((key) => ['TYPE', key]),
    protocol,
  );
  const audit = names.flatMap((key, i) => [
    ['TYPE', key],
    ['PEXPIRETIME', key],
    READS[types[i][1] as string](key),
  ]);
  audit.push(['KEYS', '*'], ['DBSIZE']);
  const [c, d] = await both(audit);
  return firstDifference(audit, c, d);
}

export function explain(steps: readonly Step[], protocol: 2 | 3, difference: Difference): string {
  return [
    `RESP ${protocol}, after these commands:`,
    ...steps.flat().map((command) => `  ${show(command)}`),
    `${show(difference.command)} differs:`,
    `  redis-server: ${show(difference.real)}`,
    `  the store:    ${show(difference.ours)}`,
  ].join('\n');
}
