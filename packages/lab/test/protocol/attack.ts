/**
 * Scripted attacks: interleavings that once broke the protocol, or could. Each names members by letters, drives the
 * cluster to the brink, and then gives the harm a chance to happen. The world compares every delivery with what
 * others delivered, so that harm is an error at that moment; `settle` demands that all messages are delivered
 * everywhere once the trouble is over.
 */
import { expect, test } from 'vitest';
import { loadMutant, type Subject } from '../../src/sim/mutations/mutant.js';
import * as intact from '../../src/sim/mutations/subject.js';

/** How harm shows: two replicas disagree on an order, or something that must happen does not. */
export const DIVERGED = /where another replica/;
export const STUCK = /nothing more happens/;

/** The script takes its stage from what it attacks: the protocol as it is, or a mutant. */
type Script = (subject: Subject) => void;

/**
 * The script holds.
 * @param catches  mutations with which it fails, and how that shows
 */
export function attack(
  title: string,
  catches: Readonly<Record<string, RegExp>>,
  script: Script,
): void {
  test(title, () => script(intact));
  test.each(Object.entries(catches))(`${title}: fails with %s`, async (name, message) => {
    const mutant = await loadMutant(name);
    expect(() => script(mutant)).toThrow(message);
  });
}
