/**
 * The duty cycle of a host: runs those of its agents that have something to do, and sleeps when none
 * has. It knows nothing of what they do.
 *
 * An agent runs when somebody has set its ready flag, when it did much the last time, and with
 * every heartbeat. What others marked as ready *later* waits for a moment, so that it comes in batches. After
 * work the host spins for a while, because waking a sleeper costs more than most answers take; then it
 * parks, and whoever has something urgent for one of its agents wakes it. Where nothing has happened for
 * long, hearts beat more slowly.
 *
 * Invariant: a flag is taken down before its agent runs, and the host says that it is parked before it
 * looks at the flags for the last time. So nothing urgent is overslept.
 */
import type { Arena } from '../memory/arena.js';

export interface Agent {
  /** Do a bounded amount of work, never wait; returns how much it was. After `MUCH_WORK` it runs again at once. */
  doWork(nowUs: number): number;
}

/** What brings words from elsewhere, and takes them there. */
export interface Wire {
  /** Take what has come, and tell those whom it is for. */
  poll(nowUs: number): void;
  /**
   * Send what was posted.
   *
   * @param companyUs  for how long what nobody waits for may wait for more; it knows itself how long is good
   */
  flush(nowUs: number, companyUs?: number): void;
}

/** Words of the arena that belong to a host. */
export interface DutyWords {
  readonly parked: number;
  readonly ready: number;
  readonly readyLater: number;
}

export interface Pacing {
  /** Every agent runs at least this often … */
  readonly heartbeatUs: number;
  /** … and so often when there has been nothing to do for a while. */
  readonly quietHeartbeatUs: number;
  /** What can wait is done this often while there is some. */
  readonly laterUs: number;
  /** How long to look for more work before parking. */
  readonly spinUs: number;
  /** Called while there is nothing to do but to look again. */
  readonly relax: () => void;
}

/** Who did so much may have stopped for its bound: it runs again at once. Others are called when there is more. */
export const MUCH_WORK = 16;
/** The clock costs more than a look at the flags. */
const TURNS_PER_CLOCK = 16;
const QUIET_AFTER_US = 200_000;

export class Duty {
  private readonly words: Int32Array;
  private readonly wasBusy: Uint8Array;
  private beatUs = Number.NEGATIVE_INFINITY;
  private laterUs = Number.NEGATIVE_INFINITY;
  private hadLaterUs = Number.NEGATIVE_INFINITY;
  private workedUs: number;

  constructor(
    private readonly arena: Arena,
    private readonly at: DutyWords,
    private readonly agents: readonly Agent[],
    private readonly pacing: Pacing,
    /** Microseconds that never go back. */
    private readonly clock: () => number,
    /** Runs with every heartbeat, before the others. */
    private readonly watch?: Agent,
    private readonly wire?: Wire,
  ) {
    this.words = arena.words;
    this.wasBusy = new Uint8Array(agents.length);
    this.workedUs = clock();
  }

  /** Work, spin and sleep for so long, and perhaps one sleep longer. */
  run(durationUs: number): void {
    const { clock } = this;
    let nowUs = clock();
    const untilUs = nowUs + durationUs;
    let turns = 0;
    let hasWorked = false;
    while (nowUs < untilUs) {
      if (this.turn(nowUs) > 0) {
        hasWorked = true;
      } else if (!hasWorked && nowUs - this.workedUs > this.pacing.spinUs) {
        this.park(nowUs, untilUs);
        nowUs = clock();
        continue;
      } else {
        this.pacing.relax();
      }
      if (++turns % TURNS_PER_CLOCK > 0) continue;
      nowUs = clock();
      if (hasWorked) this.workedUs = nowUs;
      hasWorked = false;
    }
  }

  /** Run each agent that is due, once. Returns how much was done for a reason other than the time. */
  private turn(nowUs: number): number {
    const { words, at, agents, wasBusy, pacing, wire } = this;
    let work = 0;
    wire?.poll(nowUs);
    const beats = nowUs - this.beatUs >= this.heartbeatUs(nowUs);
    const takesLater = beats || nowUs - this.laterUs >= pacing.laterUs;
    if (beats) {
      this.beatUs = nowUs;
      this.watch?.doWork(nowUs);
    }
    if (takesLater) this.laterUs = nowUs;
    for (let i = 0; i < agents.length; i++) {
      let isDue = beats || wasBusy[i] === 1;
      if (words[at.ready + i] !== 0) {
        Atomics.exchange(words, at.ready + i, 0);
        isDue = true;
      }
      if (takesLater && words[at.readyLater + i] !== 0) {
        Atomics.exchange(words, at.readyLater + i, 0);
        this.hadLaterUs = nowUs;
        isDue = true;
      }
      if (!isDue) continue;
      const done = agents[i]!.doWork(nowUs);
      wasBusy[i] = done >= MUCH_WORK ? 1 : 0;
      work += done;
    }
    wire?.flush(nowUs);
    return work;
  }

  private heartbeatUs(nowUs: number): number {
    const activeUs = Math.max(this.workedUs, this.hadLaterUs);
    const { heartbeatUs, quietHeartbeatUs } = this.pacing;
    return nowUs - activeUs > QUIET_AFTER_US ? quietHeartbeatUs : heartbeatUs;
  }

  private park(nowUs: number, untilUs: number): void {
    const { words, at, pacing } = this;
    const expectsMore = nowUs - this.hadLaterUs < pacing.heartbeatUs;
    const wakesUs = expectsMore ? nowUs + pacing.laterUs : this.beatUs + this.heartbeatUs(nowUs);
    const timeoutUs = Math.min(wakesUs, untilUs) - nowUs;
    if (timeoutUs <= 0) return;
    this.wire?.flush(nowUs, 0);
    Atomics.store(words, at.parked, 1);
    if (!this.hasUrgent()) this.arena.parking.wait(at.parked, 1, timeoutUs);
    Atomics.store(words, at.parked, 0);
  }

  private hasUrgent(): boolean {
    const { words, at } = this;
    for (let i = 0; i < this.agents.length; i++) {
      if (Atomics.load(words, at.ready + i) !== 0) return true;
    }
    return false;
  }
}
