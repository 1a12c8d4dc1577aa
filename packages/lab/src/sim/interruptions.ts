/**
 * Interrupts the steps of participants between any two loads and stores, as an operating system interrupts threads: at a
 * drawn point of a step, words land in the region of the participant, or the others run for a while. Called by
 * `world.ts`.
 *
 * Invariants: a participant that waits in the middle of a step does not run, and no fault is applied to it before its
 * step ends, except that it may be killed there. The participant that was interrupted last continues first.
 */
import type { Application } from 'tram-multicast/internal/protocol/edges.js';
import type { Host } from './hosts.js';
import type { InterruptionPlan } from './plan.js';
import { handlePoints, libraryIsInstrumented } from './points.js';
import { Killed } from './simulated-memory.js';
import type { World } from './world.js';

interface Scripted {
  readonly host: Host;
  pointsLeft: number;
  readonly action: () => void;
}

export class Interruptions {
  private isOn = false;
  /** Points until the next interruption. */
  private left = 0;
  /** A run must end. */
  private longOnesLeft = LONG_ONES_MAX;
  /** How often the others may still run in the middle of the current step. */
  private runsLeft = 0;
  /** The participant that runs, if it may be interrupted. */
  private current: Host | undefined;
  /** The participants that wait in the middle of a step, the last one interrupted last. */
  private readonly waiting: Host[] = [];
  /** What a script does in the middle of a step. */
  private scripted: Scripted | undefined;

  constructor(
    private readonly world: World,
    private readonly plan: InterruptionPlan | undefined,
  ) {}

  /** @throws if steps are to be interrupted, and the library has no points */
  prepare(): void {
    if (this.plan !== undefined) this.requirePoints();
  }

  begin(): void {
    this.isOn = this.plan !== undefined;
  }

  private requirePoints(): void {
    if (libraryIsInstrumented()) return;
    throw new Error('interruptions need an instrumented library: use loadMutant() or tram-lab');
  }

  end(): void {
    this.isOn = false;
  }

  /** Interrupt a participant once, at its `point`-th point from now on, and let `action` run there. */
  interruptAt(host: Host, point: number, action: () => void): void {
    this.requirePoints();
    this.scripted = { host, pointsLeft: point, action };
  }

  /** Does any participant wait in the middle of a step? */
  get isInterrupting(): boolean {
    return this.waiting.length > 0;
  }

  isWaiting(host: Host): boolean {
    return this.waiting.includes(host);
  }

  /** Has its step ended, and does no fault wait for that? */
  isBetweenSteps(host: Host): boolean {
    return host.afterStep === undefined && !this.isWaiting(host);
  }

  /** Let a participant act, and interrupt it. */
  run<Result>(host: Host, action: () => Result): Result {
    if (!this.isOn && this.scripted?.host !== host) return action();
    const { runsLeft } = this;
    this.runsLeft = RUNS_PER_STEP_MAX;
    try {
      return this.as(host, action);
    } finally {
      this.runsLeft = runsLeft;
    }
  }

  /** The same application, which is not interrupted: it reports to the ledger of the whole world. */
  shield(application: Application): Application {
    return {
      tickEveryUs: application.tickEveryUs,
      deliver: (message, replier) =>
        this.as(undefined, () => application.deliver(message, replier)),
      abandoned: (id, replier) => this.as(undefined, () => application.abandoned?.(id, replier)),
      tick: (orderedUs, replier) => this.as(undefined, () => application.tick(orderedUs, replier)),
      snapshot: () => application.snapshot(),
      restore: (snapshot, orderedUs) => application.restore(snapshot, orderedUs),
    };
  }

  /** @param host  who acts, or undefined if that must not be interrupted */
  private as<Result>(host: Host | undefined, action: () => Result): Result {
    const outer = this.current;
    this.set(host);
    try {
      return action();
    } finally {
      this.set(outer);
    }
  }

  private set(host: Host | undefined): void {
    this.current = host;
    handlePoints(host && this.atPoint);
  }

  private readonly atPoint = (): void => {
    if (this.scripted !== undefined) {
      this.atScriptedPoint(this.scripted);
      return;
    }
    if (!this.isOn || --this.left > 0) return;
    const host = this.current!;
    const { memory, state } = host;
    this.suspend(host, () => {
      this.drawNext();
      this.letOthersRun(host);
    });
    this.drawNext();
    endIfKilled(host, memory, state);
    if (host.state === 'up') memory.dieIfDue();
  };

  private atScriptedPoint(scripted: Scripted): void {
    if (--scripted.pointsLeft > 0) return;
    this.scripted = undefined;
    const { host, action } = scripted;
    const { memory, state } = host;
    this.suspend(host, action);
    endIfKilled(host, memory, state);
  }

  /** @param meanwhile  runs while the participant waits */
  private suspend(host: Host, meanwhile: () => void): void {
    this.waiting.push(host);
    this.as(undefined, meanwhile);
    this.waiting.pop();
  }

  /** The more participants wait, the rarer are interruptions. Otherwise the first one would wait for too long. */
  private drawNext(): void {
    const { everyPoints } = this.plan!;
    this.left = 1 + this.world.random.below(2 * everyPoints * RARER ** this.waiting.length);
  }

  private letOthersRun(host: Host): void {
    const { world } = this;
    const { random } = world;
    const { depthMax, longEvery } = this.plan!;
    if (random.below(2) === 0 || this.runsLeft === 0 || this.waiting.length > depthMax) {
      world.fabric.landSome(host.participant);
      return;
    }
    this.runsLeft--;
    if (longEvery > 0 && this.longOnesLeft > 0 && random.below(longEvery) === 0) {
      this.longOnesLeft--;
      const untilUs = world.nowUs + random.below(world.plan.timing.suspectAfterUs * SUSPICIONS_MAX);
      while (world.nowUs < untilUs && !world.isIdle) world.advance();
      return;
    }
    const events = random.between(1, random.below(4) === 0 ? 60 : 8);
    for (let i = 0; i < events && !world.isIdle; i++) world.advance();
  }
}

/** Ends the step of a participant that was killed while it waited, and may even have a new incarnation. */
function endIfKilled(host: Host, memory: Host['memory'], state: Host['state']): void {
  const hasEnded = state !== 'down' && host.state === 'down';
  if (hasEnded || host.memory !== memory) throw new Killed();
}

const RARER = 8;
/** A step of many loads and stores must end before others suspect the participant, or nothing would get done. */
const RUNS_PER_STEP_MAX = 4;
const LONG_ONES_MAX = 12;
/** A long interruption takes at most so many times as long as members need to suspect each other. */
const SUSPICIONS_MAX = 10;
