/**
 * The duty cycle of a host: runs the agents that have work, and parks the thread when none has. It knows nothing
 * of what the agents do.
 *
 * An agent runs when its ready flag is set, when it did much work the last time, with every heartbeat, when it is due by
 * its own account, and when there is news of other hosts. Flags that are marked *later* are served after a short delay, so that their work comes in
 * batches. After work the host spins for a while, because waking a parked thread costs more than most answers take.
 * Then it parks. A writer that sets an urgent flag of a parked host wakes it. After a long idle time heartbeats become
 * rarer.
 *
 * Invariant: the host clears a flag before it runs the agent, and sets `parked` before it reads the flags for the
 * last time. So no urgent flag is missed.
 */
import type { Arena, Parking } from '../memory/arena.js';

export interface Agent {
  /** Does a bounded amount of work without waiting, and returns how much. After `MUCH_WORK` it runs again at once. */
  doWork(nowUs: number): number;
  /** It runs at this time at the latest. May change with `doWork`. */
  readonly dueUs?: number;
}

/** What a host looks at besides its agents: other hosts. */
export interface Watch {
  /** Runs with every heartbeat, before the agents, and when there is news. */
  look(nowUs: number): void;
  /** In every turn: is there something that all agents must know at once? */
  hasNews?(): boolean;
  /** How to park, if news must wake the host. */
  readonly parking?: Parking;
}

/** Carries words to and from other machines. */
export interface Wire {
  /** Receives what has arrived, and sets the ready flags of the agents it is for. */
  poll(nowUs: number): void;
  /**
   * Sends the posted writes.
   *
   * @param batchUs  how long non-urgent writes may be batched, at most
   */
  flush(nowUs: number, batchUs?: number): void;
}

/** The words of the arena that belong to one host. */
export interface DutyWords {
  readonly parked: number;
  readonly ready: number;
  readonly readyLater: number;
}

export interface Pacing {
  /** Every agent runs at least this often. */
  readonly heartbeatUs: number;
  /** Every agent runs at least this often after a long idle time. */
  readonly quietHeartbeatUs: number;
  /** How often flags marked *later* are served while there are any. */
  readonly laterUs: number;
  /** How long the host spins before it parks. */
  readonly spinUs: number;
  /** Called between two looks at the flags while the host spins. */
  readonly relax: () => void;
}

/** An agent that did this much work may have stopped at its bound, so it runs again at once. */
export const MUCH_WORK = 16;
/** Reading the clock costs more than reading the flags. Work may take long, so each piece of it counts as a turn. */
const TURNS_PER_CLOCK = 16;
const QUIET_AFTER_US = 200_000;

export class Duty {
  private readonly words: Int32Array;
  private readonly parking: Parking;
  private readonly wasBusy: Uint8Array;
  /** When each agent is due, as of its last `doWork`. */
  private readonly dueUs: Float64Array;
  private beatUs = Number.NEGATIVE_INFINITY;
  private laterUs = Number.NEGATIVE_INFINITY;
  private hadLaterUs = Number.NEGATIVE_INFINITY;
  private workedUs: number;

  constructor(
    arena: Arena,
    private readonly at: DutyWords,
    private readonly agents: readonly Agent[],
    private readonly pacing: Pacing,
    /** A monotonic clock, in microseconds. */
    private readonly clock: () => number,
    private readonly watch?: Watch,
    private readonly wire?: Wire,
    /** Runs after each turn. */
    private readonly onTurnEnd?: () => void,
  ) {
    this.words = arena.words;
    this.parking = watch?.parking ?? arena.parking;
    this.wasBusy = new Uint8Array(agents.length);
    this.dueUs = new Float64Array(agents.length).fill(Number.POSITIVE_INFINITY);
    this.workedUs = clock();
  }

  /** Works, spins and parks for this long, and at most one park longer. */
  run(durationUs: number): void {
    const { clock } = this;
    let nowUs = clock();
    const untilUs = nowUs + durationUs;
    let turns = 0;
    let hasWorked = false;
    while (nowUs < untilUs) {
      const work = this.turn(nowUs);
      if (work > 0) {
        hasWorked = true;
      } else if (!hasWorked && nowUs - this.workedUs > this.pacing.spinUs) {
        this.park(nowUs, untilUs);
        nowUs = clock();
        continue;
      } else {
        this.pacing.relax();
      }
      turns += 1 + work;
      if (turns < TURNS_PER_CLOCK) continue;
      turns = 0;
      nowUs = clock();
      if (hasWorked) this.workedUs = nowUs;
      hasWorked = false;
    }
  }

  /** Runs each agent that is due, once. Returns the work of agents that ran for another reason than the time. */
  private turn(nowUs: number): number {
    const { words, at, agents, wasBusy, dueUs, pacing, wire } = this;
    let work = 0;
    wire?.poll(nowUs);
    const hasNews = this.watch?.hasNews?.() === true;
    const beats = hasNews || nowUs - this.beatUs >= this.heartbeatUs(nowUs);
    const takesLater = beats || nowUs - this.laterUs >= pacing.laterUs;
    if (beats) {
      this.beatUs = nowUs;
      this.watch?.look(nowUs);
    }
    if (takesLater) this.laterUs = nowUs;
    for (let i = 0; i < agents.length; i++) {
      let isDue = beats || wasBusy[i] === 1 || nowUs >= dueUs[i];
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
      const done = agents[i].doWork(nowUs);
      wasBusy[i] = done >= MUCH_WORK ? 1 : 0;
      dueUs[i] = agents[i].dueUs ?? Number.POSITIVE_INFINITY;
      work += done;
    }
    wire?.flush(nowUs);
    this.onTurnEnd?.();
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
    const timeoutUs = Math.min(wakesUs, untilUs, ...this.dueUs) - nowUs;
    if (timeoutUs <= 0) return;
    this.wire?.flush(nowUs, 0);
    Atomics.store(words, at.parked, 1);
    if (!this.hasUrgent()) this.parking.wait(at.parked, 1, timeoutUs);
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
