/** The holes of docs/paper-errata.md, as the build has read them. */

import table from 'virtual:holes';
import type { Shown } from 'tram-lab/dist/sim/mutations/judged.js';
import type { Options } from 'tram-lab/dist/sim/plan.js';

export interface Hole {
  readonly name: string;
  readonly title: string;
  /** What happens, and how it is corrected. */
  readonly story: string;
  readonly correction: string;
  /** The run that shows it; null if the design leaves no place for the hole. */
  readonly run: { readonly seed: number; readonly as: string; readonly options?: Options } | null;
  /** The run in which the judge sees it; null if it breaks no property. */
  readonly shown: Shown | null;
}

/** Without the assertions of the protocol, the name of the script and of the mutation in a link has this suffix. */
const UNASSERTED = '_unasserted';

/** A run that shows a hole. */
export interface HoleRun {
  readonly mutation: string;
  readonly seed: number;
  readonly options: Options;
}

/** The run in which a check of the simulator notices the hole. */
export function caughtRun({ name, run }: Hole): HoleRun {
  const { seed, options = {} } = run!;
  return { mutation: name, seed, options };
}

/** The run in which the judge sees that a property is violated; undefined if the hole breaks none. */
export function judgedRun({ name, shown }: Hole): HoleRun | undefined {
  if (shown === null) return undefined;
  const { seed, options, isUnasserted } = shown;
  return { mutation: isUnasserted ? `${name}${UNASSERTED}` : name, seed, options };
}

export const HOLES: readonly Hole[] = table;

/** @param mutation  as it is in a link */
export function findHole(mutation: string | undefined): Hole | undefined {
  const name = mutation?.replace(UNASSERTED, '');
  return HOLES.find((hole) => hole.name === name);
}

/** Is there a script for this mutation? What a link says must not name any other file. */
export function isKnown(mutation: string | undefined): boolean {
  const runs = HOLES.filter(({ run }) => run !== null).flatMap((hole) => [
    caughtRun(hole),
    judgedRun(hole),
  ]);
  return mutation === undefined || runs.some((run) => run?.mutation === mutation);
}
