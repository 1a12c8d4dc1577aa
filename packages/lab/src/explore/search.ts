/**
 * The search: depth first over all states of a scope, by doing and undoing actions. A state is visited once.
 *
 * It leaves out orders of actions that make no difference, by sleep sets (P. Godefroid, Partial-Order Methods for the
 * Verification of Concurrent Systems, 1996). After an action has been explored in a state, it *sleeps* while actions
 * happen that are independent of it: what follows from it then was explored before, in the other order. This leaves out
 * transitions, and no state. The sleep set depends on the way to a state. So each state is kept with the actions that
 * have slept whenever it was visited, and if some of them do not sleep when it is reached again, those are explored then.
 */
import { type Action, codeOf, isSame } from './action.js';
import { areIndependent, type Footprint, footprint } from './independence.js';
import { Violation } from './orders.js';
import type { Scope } from './scope.js';
import { SmallWorld } from './small-world.js';
import { Visited } from './visited.js';

export interface Found {
  readonly actions: readonly Action[];
  readonly message: string;
}

/** What a search has done so far. */
export interface Counts {
  states: number;
  transitions: number;
  /** The longest sequence of actions. */
  depth: number;
}

export interface Result extends Counts {
  /** Have all states been visited? If so and nothing was found, the scope holds. */
  readonly isExhausted: boolean;
  readonly found: Found | undefined;
  /** Did `mustStop` end it? */
  readonly wasStopped: boolean;
  readonly tableBytes: number;
}

export interface SearchOptions {
  /** Only sequences of at most so many actions. Without sleep sets, since they do not keep the shortest one. */
  readonly actionsMax?: number;
  readonly usesSleepSets?: boolean;
  /** Asked now and then: should the search give up? */
  readonly mustStop?: (counts: Counts) => boolean;
}

class Stopped extends Error {}

const ASK_EVERY = 1024;
const WORD_BITS = 32;
/** How many actions can sleep: those with the lowest numbers. That others never sleep is sound. */
const SLEEP_WORDS = 2;

export class Search {
  private readonly world: SmallWorld;
  /** With each state, the actions that sleep there or, if the length is limited, how many actions were left. */
  private readonly visited: Visited;
  private readonly path: Action[] = [];
  private readonly counts: Counts = { states: 0, transitions: 0, depth: 0 };
  private readonly numbers = new Map<number, number>();
  private readonly numbered: Action[] = [];
  private readonly usesSleepSets: boolean;
  private isCut = false;

  constructor(
    scope: Scope,
    private readonly options: SearchOptions = {},
  ) {
    this.world = new SmallWorld(scope);
    this.usesSleepSets = options.actionsMax === undefined && options.usesSleepSets !== false;
    this.visited = new Visited(this.usesSleepSets ? SLEEP_WORDS : 1);
  }

  run(): Result {
    let wasStopped = false;
    let found: Found | undefined;
    try {
      this.explore([]);
    } catch (error) {
      if (error instanceof Violation) found = { actions: [...this.path], message: error.message };
      else if (error instanceof Stopped) wasStopped = true;
      else throw error;
    }
    const tableBytes = this.visited.bytes;
    const isExhausted = found === undefined && !wasStopped && !this.isCut;
    return { ...this.counts, isExhausted, found, wasStopped, tableBytes };
  }

  /** @param asleep  actions that need not be explored here */
  private explore(asleep: readonly Footprint[]): void {
    const { world, visited, counts, path } = this;
    const at = visited.visit(world.print.low, world.print.high);
    counts.depth = Math.max(counts.depth, path.length);
    if (visited.wasNew) this.countState();
    let open: Action[];
    let sleeping: Footprint[];
    if (!this.usesSleepSets) {
      if (!this.hasMoreLeft(at)) return;
      open = world.choices();
      sleeping = [];
    } else if (visited.wasNew) {
      open = world.choices().filter((action) => !includes(asleep, action));
      sleeping = [...asleep];
      this.storeSleep(at, sleeping);
    } else {
      const slept = this.sleepOf(at);
      open = slept.filter((action) => !includes(asleep, action));
      if (open.length === 0) return;
      sleeping = asleep.filter(({ action }) => slept.some((other) => isSame(other, action)));
      this.storeSleep(at, sleeping);
    }
    for (const action of open) this.follow(action, sleeping);
  }

  private follow(action: Action, sleeping: Footprint[]): void {
    const { world, path } = this;
    const { print, journal } = world;
    const { low, high } = print;
    const { mark } = journal;
    const here = footprint(world, action);
    path.push(action);
    this.counts.transitions++;
    world.act(action);
    if (print.low !== low || print.high !== high) {
      this.explore(sleeping.filter((other) => areIndependent(other, here)));
    }
    path.pop();
    journal.undo(mark);
    print.low = low;
    print.high = high;
    if (this.usesSleepSets && this.numberOf(action) < SLEEP_WORDS * WORD_BITS) sleeping.push(here);
  }

  private countState(): void {
    const { counts, options } = this;
    counts.states++;
    if (counts.states % ASK_EVERY === 0 && options.mustStop?.(counts)) throw new Stopped();
  }

  // --- limited length ------------------------------------------------------------------------

  /** Are there more actions left than when the state was visited before? */
  private hasMoreLeft(at: number): boolean {
    const { visited, path } = this;
    const left = (this.options.actionsMax ?? LONG) - path.length;
    if (left <= 0) this.isCut = true;
    if (left <= 0 || visited.note(at) >= left) return false;
    visited.setNote(at, this.options.actionsMax === undefined ? LONG : left);
    return true;
  }

  // --- sleep sets ----------------------------------------------------------------------------

  private storeSleep(at: number, asleep: readonly Footprint[]): void {
    const { visited } = this;
    for (let word = 0; word < SLEEP_WORDS; word++) visited.setNote(at + word, 0);
    for (const { action } of asleep) {
      const number = this.numberOf(action);
      const word = at + Math.floor(number / WORD_BITS);
      visited.setNote(word, visited.note(word) | (1 << (number % WORD_BITS)));
    }
  }

  /** The actions that slept when the state was visited before. */
  private sleepOf(at: number): Action[] {
    const slept: Action[] = [];
    for (let word = 0; word < SLEEP_WORDS; word++) {
      for (let bits = this.visited.note(at + word); bits !== 0; bits &= bits - 1) {
        const bit = WORD_BITS - 1 - Math.clz32(bits & -bits);
        slept.push(this.numbered[word * WORD_BITS + bit]);
      }
    }
    return slept;
  }

  private numberOf(action: Action): number {
    const code = codeOf(action);
    let number = this.numbers.get(code);
    if (number === undefined) {
      number = this.numbered.length;
      this.numbers.set(code, number);
      this.numbered.push(action);
    }
    return number;
  }
}

const LONG = 0x7fffffff;

function includes(footprints: readonly Footprint[], action: Action): boolean {
  for (const footprint of footprints) if (isSame(footprint.action, action)) return true;
  return false;
}
