/** Exhausts the swept scopes with every mutation that has no script, to see that none of them shows it. */
import { NOT_FOUND, SWEPT_SCOPES } from './findings.js';
import { loadExplorer } from './mutant.js';
import type { Result } from './search.js';

export interface Swept {
  readonly mutation: string;
  readonly scope: string;
  readonly result: Result;
}

/** @param msMax  for each scope with each mutation */
export async function* sweep(msMax: number): AsyncGenerator<Swept> {
  for (const mutation of Object.keys(NOT_FOUND)) {
    const { Search, SCOPES } = await loadExplorer(mutation);
    for (const scope of SWEPT_SCOPES) {
      const endsMs = performance.now() + msMax;
      const mustStop = (): boolean => performance.now() > endsMs;
      yield { mutation, scope, result: new Search(SCOPES.get(scope)!, { mustStop }).run() };
    }
  }
}
