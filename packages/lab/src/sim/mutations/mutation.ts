/** A mutation: a small change of the library's built source, and how the lab notices it. */
import type { SimulationFailure } from '../ledger.js';
import type { Options } from '../plan.js';

export interface Edit {
  /** Path below the library's `dist`. */
  readonly file: string;
  /** Text of the built JavaScript; it occurs exactly once in that file. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly title: string;
  readonly edits: readonly Edit[];
  readonly caughtBy: BySeed | ByScript;
}

export interface BySeed {
  /** A seed whose run fails within few steps, with these options. */
  readonly seed: number;
  readonly as: SimulationFailure['kind'];
  /** Which runs show it best. */
  readonly options?: Options;
}

/** No seed is known to show it soon; a scripted attack does. */
export interface ByScript {
  /** The test file in `test/protocol` or `test/journal`, without `.test.ts`. */
  readonly script: string;
}

/** A mutation does not fit the source, or several do not fit together. */
export class MutationError extends Error {
  override readonly name = 'MutationError';
}

/** The text with the edit applied. @throws {MutationError} unless `find` occurs exactly once */
export function applyEdit(text: string, { file, find, replace }: Edit): string {
  const [before, after, ...more] = text.split(find);
  if (after === undefined) throw new MutationError(`${file} does not contain: ${find}`);
  if (more.length > 0) throw new MutationError(`${file} contains more than once: ${find}`);
  return before + replace + after;
}
