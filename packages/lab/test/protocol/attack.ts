/**
 * Scripted attacks: interleavings that have broken the protocol, or could. Each names members by letters and creates a
 * state in which an error can do harm. The world compares every delivery with those of other replicas, so harm is an
 * error at once. `settle` ends all faults and demands that every message is delivered everywhere.
 */
import { expect, test } from 'vitest';
import { loadMutant, type Subject } from '../../src/sim/mutations/mutant.js';
import * as intact from '../../src/sim/mutations/subject.js';

/** The messages of the two kinds of harm: replicas disagree on an order, or the cluster makes no progress. */
export const DIVERGED = /where another replica/;
export const STUCK = /nothing more happens/;

/** The subject is the unchanged protocol or a mutant. The script uses its `Stage`. */
type Script = (subject: Subject) => void;

/**
 * The script passes with the unchanged protocol.
 * @param catches  mutations with which it fails, and the messages of the failures
 */
export function attack(
  title: string,
  catches: Readonly<Record<string, RegExp>>,
  script: Script,
): void {
  test(title, () => script(intact));
  testMutants(title, catches, script);
}

/** The same for a script that interrupts steps, which needs an instrumented library. */
export function interruptedAttack(
  title: string,
  catches: Readonly<Record<string, RegExp>>,
  script: Script,
): void {
  test(title, async () => script(await loadMutant()));
  testMutants(title, catches, script);
}

function testMutants(
  title: string,
  catches: Readonly<Record<string, RegExp>>,
  script: Script,
): void {
  test.each(Object.entries(catches))(`${title}: fails with %s`, async (name, message) => {
    const mutant = await loadMutant(name);
    expect(() => script(mutant)).toThrow(message);
  });
}
