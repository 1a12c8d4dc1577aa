/** The summary that an import prints at its end. */

import type { Followed } from './from-replication.js';
import type { Tally } from './importer.js';
import { count, duration, shown, size } from './texts.js';

export interface Report {
  readonly lines: readonly string[];
  /** Whether everything is in the store that was to be imported, and has not expired. */
  readonly isComplete: boolean;
}

/** @param choseDatabase  whether the others are left out because the user has said so */
export function reportOf(tally: Tally, seconds: number, choseDatabase: boolean): Report {
  const { keys, libraries, existing, tooLong, expired, otherDatabases, refusedLibraries } = tally;
  const rate = Math.round(keys / Math.max(seconds, 0.001));
  const and =
    libraries === 0
      ? ''
      : ` and ${count(libraries, 'library of functions', 'libraries of functions')}`;
  const lines = [
    `imported ${count(keys, 'key')}${and} in ${duration(seconds)} (${count(rate, 'key')}/s)`,
  ];
  if (expired > 0) lines.push(`left out: ${count(expired, 'key')} that had expired`);
  if (existing.count > 0) {
    lines.push(
      `left out: ${count(existing.count, 'key')} that the store had already, the first is ${shown(existing.first!)}. With --replace, they get the values of Redis.`,
    );
  }
  if (tooLong.count > 0) {
    lines.push(
      `left out: ${count(tooLong.count, 'key')} with a value that is too long for a request, the first is ${shown(tooLong.first!)}`,
    );
  }
  for (const message of refusedLibraries)
    lines.push(`left out: a library of functions: ${message}`);
  for (const [database, others] of [...otherDatabases].sort(([a], [b]) => a - b)) {
    lines.push(
      `left out: ${count(others, 'key')} of database ${database}. The store has one database; --db chooses the one that is imported.`,
    );
  }
  const isComplete =
    existing.count + tooLong.count + refusedLibraries.length === 0 &&
    (choseDatabase || otherDatabases.size === 0);
  return { lines, isComplete };
}

export function reportOfChanges({ changes, leftOut, missing }: Followed): Report {
  const lines = [`followed ${count(changes, 'change')}`];
  if (leftOut > 0) lines.push(`left out: ${count(leftOut, 'change')} of other databases`);
  if (missing === undefined) lines.push('Redis did not tell whether there were more');
  else if (missing > 0) lines.push(`left out: the last ${size(missing)} of changes`);
  else lines.push('the store has everything that Redis had when this was ended');
  return { lines, isComplete: missing === 0 };
}
