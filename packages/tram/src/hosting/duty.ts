/**
 * The duty cycle of a host: runs the agents that have work, and parks the thread when none has. It knows nothing
 * of what the agents do.
 *
 * An agent runs when its ready flag is set, when it did much work the last time, with every heartbeat, when it is due by
 * its own account, and when there is news of other hosts. Flags that are marked *later* are served after a short delay, so that their work comes in
 * batches. A writer that sets an urgent flag of a parked host wakes it. After a long idle time heartbeats become rarer.
 *
 * After urgent work the host spins for a while, because waking a parked thread costs more than most answers take. Then it
 * parks. It parks at once if more hosts are awake than there are cores: then one of them waits for the core on which this one
 * would spin, and it may be the one that has the next work for it.
 *
 * An atomic exchange clears a flag, so that the agent reads its memory after that. It waits until the other core gives up the
 * flag. So for the first flag after an idle turn, the host does without: it clears the flag plainly and runs the agent, which may
 * then miss a write whose flag was cleared. The agent gets a *second look*, after a fence, in the next turn.
 *
 * Invariant: the host clears a flag before it runs the agent, and sets `parked` before it reads the flags for the
 * last time. It does not park while an agent is to have a second look. So no urgent flag is missed.
 */
import { type Arena, PARKED, type Parking } from '../memory/arena.js';

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
  /**
   * Receives what has arrived, and sets the ready flags of the agents it is for.
   *
   * @returns whether another host waited for it, and will probably send more: this counts as work
   */
  poll(nowUs: number): boolean;
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
  /** The words of all hosts that use the same cores, this one included, which say whether they are parked. */
  readonly allParked: readonly number[];
}

export interface Pacing {
  /** Every agent runs at least this often. */
  readonly heartbeatUs: number;
  /** Every agent runs at least this often after a long idle time. */
  readonly quietHeartbeatUs: number;
  /** How often flags marked *later* are served while there are any. */
  readonly laterUs: number;
  /** How long the host spins after urgent work before it parks, … */
  readonly spinUs: number;
  /** … unless more hosts are awake than there are cores. */
  readonly cores: number;
  /** Called between two looks at the flags while the host spins. */
  readonly relax: () => void;
}

/** An agent that did this much work may have stopped at its bound, so it runs again at once. */
export const MUCH_WORK = 16;
/** Reading the clock costs more than reading the flags. Work may take long, so each piece of it counts as a turn. */
const TURNS_PER_CLOCK = 16;
/** As long as there is work, agents with flags marked *later* run in every so many turns at most: with many agents, turns are long. */
const TURNS_PER_LATER = 4;
const IDLE_AFTER_US = 10_000;
const QUIET_AFTER_US = 200_000;
/** There may be very many client slots. Those in use are the first ones, more or less. */
const LOOKS_MAX = 64;
/** No agent. */
const NOBODY = -1;

export class Duty {
  private readonly words: Int32Array;
  private readonly parking: Parking;
  /** Has the agent done much work that was urgent? Then it runs again at once, and that is urgent too. */
  private readonly isBusy: Uint8Array;
  /** When each agent is due, as of its last `doWork`. One that has done much work is always due. */
  private readonly dueUs: Float64Array;
  /** No agent is due before this time: it is not above any of `dueUs`. */
  private nextDueUs = Number.NEGATIVE_INFINITY;
  private beatUs = Number.NEGATIVE_INFINITY;
  private laterUs = Number.NEGATIVE_INFINITY;
  private hadLaterUs = Number.NEGATIVE_INFINITY;
  /** So many turns with work come before flags marked *later* are served. */
  private turnsLeft = 0;
  private workedUs: number;
  private urgentUs: number;
  /** Was there urgent work since the clock was read? */
  private hadUrgent = false;
  /** The agent that gets a second look in the next turn, or NOBODY. */
  private second = NOBODY;
  /** Did the last turn find nothing to do? */
  private wasIdle = false;
  /** Empty if there is a core for each of them. */
  private readonly allParked: readonly number[];

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
    this.isBusy = new Uint8Array(agents.length);
    this.dueUs = new Float64Array(agents.length).fill(Number.POSITIVE_INFINITY);
    this.workedUs = clock();
    this.urgentUs = this.workedUs;
    this.allParked = at.allParked.length > pacing.cores ? at.allParked.slice(0, LOOKS_MAX) : [];
  }

  /** Has it had nothing to do for some time? */
  get isIdle(): boolean {
    return this.clock() - this.workedUs > IDLE_AFTER_US;
  }

  /** Works, spins and parks for this long, and at most one park longer. */
  run(durationUs: number): void {
    const { clock } = this;
    let nowUs = clock();
    const untilUs = nowUs + durationUs;
    let turns = 0;
    let hasWorked = false;
    Atomics.store(this.words, this.at.parked, PARKED.awake);
    while (nowUs < untilUs) {
      const work = this.turn(nowUs);
      if (work > 0) {
        hasWorked = true;
      } else if (!hasWorked && this.shouldPark(nowUs)) {
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
      if (this.hadUrgent) this.urgentUs = nowUs;
      hasWorked = false;
      this.hadUrgent = false;
    }
    Atomics.store(this.words, this.at.parked, PARKED.absent);
  }

  private shouldPark(nowUs: number): boolean {
    if (this.second !== NOBODY) return false;
    return nowUs - this.urgentUs > this.pacing.spinUs || this.isCrowded();
  }

  /** Are more hosts awake than there are cores? */
  private isCrowded(): boolean {
    return this.areAwake(this.pacing.cores);
  }

  /**
   * Between two runs, when this host does not count as awake: is there a core for it, and one more? On a single core, do all others
   * sleep?
   */
  get hasSpareCore(): boolean {
    return !this.areAwake(Math.max(0, this.pacing.cores - 2));
  }

  /** Are more hosts awake than this? */
  private areAwake(count: number): boolean {
    const { words, allParked } = this;
    let left = count;
    for (let i = 0; i < allParked.length; i++) {
      if (words[allParked[i]] === PARKED.awake && left-- === 0) return true;
    }
    return false;
  }

  /** Runs each agent that is due, once. Returns how much they did. */
  private turn(nowUs: number): number {
    const { words, at, agents, isBusy, dueUs, wire, second, wasIdle } = this;
    let work = 0;
    this.second = NOBODY;
    if (wire?.poll(nowUs) === true) {
      // Others wait for what we answer.
      this.hadUrgent = true;
      work = 1;
    }
    const hasNews = this.watch?.hasNews?.() === true;
    const beats = hasNews || nowUs - this.beatUs >= this.heartbeatUs(nowUs);
    const takesLater = beats || this.isLaterDue(nowUs);
    if (beats) {
      this.beatUs = nowUs;
      this.watch?.look(nowUs);
    }
    if (takesLater) {
      this.laterUs = nowUs;
      this.turnsLeft = TURNS_PER_LATER;
    }
    // In most turns an agent runs only if its flag is set, or for a second look.
    const onlyFlags = !takesLater && nowUs < this.nextDueUs;
    if (!onlyFlags) this.nextDueUs = Number.POSITIVE_INFINITY;
    for (let i = 0; i < agents.length; i++) {
      if (onlyFlags && words[at.ready + i] === 0 && i !== second) continue;
      let isUrgent = isBusy[i] === 1;
      let isDue = beats || nowUs >= dueUs[i];
      if (words[at.ready + i] !== 0 || i === second) {
        if (wasIdle && this.second === NOBODY && i !== second) {
          words[at.ready + i] = 0;
          this.second = i;
        } else if (i === second) {
          // A fence: on ARM, an exchange that reads our own plain store would order nothing (docs/memory-model.md).
          Atomics.store(words, at.ready + i, 0);
          Atomics.load(words, at.ready + i);
        } else {
          Atomics.exchange(words, at.ready + i, 0);
        }
        isUrgent = true;
        isDue = true;
      }
      if (takesLater && words[at.readyLater + i] !== 0) {
        Atomics.exchange(words, at.readyLater + i, 0);
        this.hadLaterUs = nowUs;
        isDue = true;
      }
      if (isDue) {
        const agent = agents[i];
        const done = agent.doWork(nowUs);
        const runsAgain = done >= MUCH_WORK;
        isBusy[i] = runsAgain && isUrgent ? 1 : 0;
        dueUs[i] = runsAgain ? Number.NEGATIVE_INFINITY : (agent.dueUs ?? Number.POSITIVE_INFINITY);
        if (isUrgent && done > 0) this.hadUrgent = true;
        work += done;
      }
      if (dueUs[i] < this.nextDueUs) this.nextDueUs = dueUs[i];
    }
    wire?.flush(nowUs);
    this.onTurnEnd?.();
    this.wasIdle = work === 0;
    this.turnsLeft = work > 0 ? this.turnsLeft - 1 : 0;
    return work;
  }

  private isLaterDue(nowUs: number): boolean {
    return this.turnsLeft <= 0 && nowUs - this.laterUs >= this.pacing.laterUs;
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
    Atomics.store(words, at.parked, PARKED.parked);
    if (!this.hasUrgent()) this.parking.wait(at.parked, PARKED.parked, timeoutUs);
    Atomics.store(words, at.parked, PARKED.awake);
  }

  private hasUrgent(): boolean {
    const { words, at } = this;
    for (let i = 0; i < this.agents.length; i++) {
      if (Atomics.load(words, at.ready + i) !== 0) return true;
    }
    return false;
  }
}
