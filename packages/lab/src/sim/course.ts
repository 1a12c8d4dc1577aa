/**
 * The course of a run, one event at a time: the workload with its faults, then, without faults, everything drains, then
 * the judge. With durability, it is the course of one era. Called by `World.run`, and by the page, which shows the events.
 */
import { Drain, describe } from './drain.js';
import { SimulationFailure } from './ledger.js';
import type { World } from './world.js';

type Stage = 'interrupted workload' | 'workload' | 'drain' | 'over';

/** How long the workload may take, interrupted or not. */
export const RUN_LIMIT_US = 400_000;
const DRAIN_LIMIT_US = 200_000;

export class Course {
  private stage: Stage = 'interrupted workload';
  private untilUs: number;
  private drain: Drain | undefined;

  constructor(private readonly world: World) {
    world.begin();
    this.untilUs = world.nowUs + RUN_LIMIT_US;
  }

  /** Run the next event. Returns false if there is none: the run has ended, and its history was judged. */
  advance(): boolean {
    const { world } = this;
    while (this.stage !== 'over') {
      if (!this.isStageDone()) {
        if (world.nowUs > this.untilUs) requireEnd(world, this.limitUs);
        world.advance();
        return true;
      }
      this.beginNextStage();
    }
    return false;
  }

  private get limitUs(): number {
    return this.stage === 'drain' ? DRAIN_LIMIT_US : RUN_LIMIT_US;
  }

  private isStageDone(): boolean {
    const { world } = this;
    if (this.drain !== undefined) return this.drain.isDone();
    if (this.stage === 'workload') return world.isPlanDone();
    // Where interrupted steps take longer than the suspicion time-out, nothing may get done. They end here at the latest.
    const isInterrupted = world.plan.interruptions !== undefined && world.nowUs < this.untilUs;
    return !isInterrupted || world.isPlanDone();
  }

  private beginNextStage(): void {
    const { world } = this;
    if (this.stage === 'interrupted workload') {
      world.interruptions.end();
      this.stage = 'workload';
    } else if (this.stage === 'workload' && !world.isOver) {
      world.heal();
      this.drain = new Drain(world);
      this.stage = 'drain';
    } else {
      if (!world.isOver) this.drain?.end();
      this.stage = 'over';
    }
    this.untilUs = world.nowUs + this.limitUs;
  }
}

/** @throws {SimulationFailure} */
export function requireEnd(world: World, limitUs: number): never {
  throw new SimulationFailure(
    'liveness',
    `nothing more happens after ${limitUs} µs\n${describe(world)}`,
  );
}
