/** The explorer around a mutant: see `sim/mutations/mutant.ts`. */
import { withMutant } from '../sim/mutations/mutant.js';

export type Subject = typeof import('./subject.js');

/** Without names, the protocol as it is. */
export function loadExplorer(...names: readonly string[]): Promise<Subject> {
  if (names.length === 0) return import('./subject.js');
  return withMutant(names, (lab) => import(new URL('explore/subject.js', lab).href));
}
