/**
 * Checks the explorer itself, on random walks through a scope. In every state that a walk comes to, each possible action
 * is done and undone. Then
 *
 * - *undo is exact*: the state that is left has the fingerprint that it had, computed anew from all objects and words,
 *   including those that fingerprints leave out;
 * - *what is left out does not matter*: all states with one fingerprint have the same actions, and each action leads to
 *   the same fingerprint from all of them;
 * - *independence is real*: any two actions that count as independent lead to the same state in either order.
 */
import { Random } from '../sim/random.js';
import { type Action, format, isSame } from './action.js';
import { areIndependent, footprint } from './independence.js';
import type { Scope } from './scope.js';
import { SmallWorld } from './small-world.js';

export interface Verified {
  readonly states: number;
  readonly transitions: number;
  /** How often a walk came to a fingerprint that it, or an earlier one, had come to with other words or objects. */
  readonly merged: number;
}

/** The explorer is wrong: what it claims does not hold for this script. */
export class VerificationError extends Error {
  override readonly name = 'VerificationError';
}

const WALK_ACTIONS_MAX = 60;

interface Known {
  readonly future: string;
  readonly whole: string;
}

export class Verification {
  private readonly world: SmallWorld;
  private readonly random: Random;
  private readonly known = new Map<string, Known>();
  private readonly path: Action[] = [];
  private transitions = 0;
  private merged = 0;

  constructor(scope: Scope, seed: number) {
    this.world = new SmallWorld(scope);
    this.random = new Random(seed);
  }

  run(walks: number): Verified {
    const { world, path } = this;
    for (let walk = 0; walk < walks; walk++) {
      path.length = 0;
      const start = this.text();
      while (path.length < WALK_ACTIONS_MAX) {
        const choices = world.choices();
        if (choices.length === 0) break;
        this.check(choices);
        const action = this.random.pick(choices);
        path.push(action);
        world.act(action);
      }
      const { low, high } = fingerprintOf(start);
      world.journal.undo(0);
      world.print.low = low;
      world.print.high = high;
    }
    return { states: this.known.size, transitions: this.transitions, merged: this.merged };
  }

  private check(choices: readonly Action[]): void {
    const { world, known } = this;
    const whole = world.describeWhole();
    const future = choices.map((action) => `${format(action)} ${this.after(action)}`).join('\n');
    if (world.describeWhole() !== whole) this.fail('undo is not exact');
    const before = known.get(this.text());
    if (before === undefined) known.set(this.text(), { future, whole });
    else {
      if (before.future !== future) {
        this.fail('two states with one fingerprint have different futures');
      }
      if (before.whole !== whole) this.merged++;
    }
    this.checkIndependence(choices);
  }

  private checkIndependence(choices: readonly Action[]): void {
    const { world, random } = this;
    const a = random.pick(choices);
    const b = random.pick(choices);
    if (isSame(a, b) || !areIndependent(footprint(world, a), footprint(world, b))) return;
    if (this.after(a, b) === this.after(b, a)) return;
    this.fail(`${format(a)} and ${format(b)} are not independent`);
  }

  /** The fingerprint after these actions. */
  private after(...actions: Action[]): string {
    const { world } = this;
    const { journal, print } = world;
    const { low, high } = print;
    const { mark } = journal;
    for (const action of actions) world.act(action);
    this.transitions += actions.length;
    const text = this.text();
    journal.undo(mark);
    print.low = low;
    print.high = high;
    return text;
  }

  private text(): string {
    const { low, high } = this.world.print;
    return `${low} ${high}`;
  }

  private fail(what: string): never {
    throw new VerificationError(`${what}, after: ${this.path.map(format).join(' ')}`);
  }
}

function fingerprintOf(text: string): { low: number; high: number } {
  const [low, high] = text.split(' ').map(Number);
  return { low, high };
}
