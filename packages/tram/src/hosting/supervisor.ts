/**
 * Restarts hosts that end unexpectedly, for the process that has started them. A host that keeps ending is left down: at
 * most 5 restarts a minute, each after twice the delay of the one before.
 *
 * A host that was ended on purpose is marked in the arena (`HOST.staysDown`) before it ends, by whichever process ends it,
 * and so is a host that another process is about to start. So the supervisor does not interfere with either.
 */
import { TramError } from '../errors.js';
import { ARENA, ARENA_STATE } from '../memory/arena.js';
import type { ClusterContext } from './cluster-context.js';
import { keepDown, staysDown } from './oversight.js';
import { isLocked } from './status.js';

const RESTARTS_MAX = 5;
const PERIOD_MS = 60_000;
const FIRST_DELAY_MS = 100;
/** How often to look for hosts that other processes have restarted, and that have ended again. */
const LOOK_MS = 200;

export interface SupervisorEvents {
  /** Starts the host with the memory that it left. Rejects if it fails. */
  restart(host: number): Promise<void>;
  /** Does this process know when the host ends, or is it starting the host? */
  isWatched(host: number): boolean;
  /** A host that is not watched has ended. */
  onEnded(host: number): void;
  onRestarting(host: number, delayMs: number): void;
  /** It has ended too often. */
  onGivenUp(host: number, why: string): void;
}

export class Supervisor {
  /** By host: when it was restarted in the last period. */
  private readonly restartsMs = new Map<number, number[]>();
  /** By host: the restart that waits for its delay. */
  private readonly waiting = new Map<number, NodeJS.Timeout>();
  private readonly looking: NodeJS.Timeout;
  private isClosed = false;

  constructor(
    private readonly context: ClusterContext,
    private readonly events: SupervisorEvents,
  ) {
    this.looking = setInterval(() => this.look(), LOOK_MS).unref();
  }

  private look(): void {
    const { arena, map } = this.context;
    for (let host = 0; host < map.hosts; host++) {
      const hasEnded = isLocked(arena, host) === false;
      if (hasEnded && this.isDue(host) && !this.events.isWatched(host)) this.events.onEnded(host);
    }
  }

  /** Has it ended unexpectedly, and is it not waiting for its restart yet? */
  private isDue(host: number): boolean {
    const { arena } = this.context;
    return (
      !this.isClosed &&
      Atomics.load(arena.words, ARENA.state) === ARENA_STATE.running &&
      !staysDown(this.context, host) &&
      !isLocked(arena, host) &&
      !this.waiting.has(host)
    );
  }

  /** A host has ended, or did not start. */
  ended(host: number, why: string): void {
    if (!this.isDue(host)) return;
    const nowMs = Date.now();
    const recent = (this.restartsMs.get(host) ?? []).filter((at) => at > nowMs - PERIOD_MS);
    if (recent.length === RESTARTS_MAX) {
      keepDown(this.context, host);
      this.restartsMs.delete(host);
      this.events.onGivenUp(host, why);
      return;
    }
    this.restartsMs.set(host, [...recent, nowMs]);
    const delayMs = FIRST_DELAY_MS * 2 ** recent.length;
    this.waiting.set(
      host,
      setTimeout(() => void this.restart(host), delayMs),
    );
    this.events.onRestarting(host, delayMs);
  }

  private async restart(host: number): Promise<void> {
    this.waiting.delete(host);
    if (!this.isDue(host)) return;
    try {
      await this.events.restart(host);
    } catch (error) {
      // Another process has restarted it.
      if (error instanceof TramError && error.code === 'TRAM_HOST_RUNNING') return;
      this.ended(host, error instanceof Error ? error.message : String(error));
    }
  }

  /** Somebody else starts this host. */
  leave(host: number): void {
    clearTimeout(this.waiting.get(host));
    this.waiting.delete(host);
  }

  close(): void {
    this.isClosed = true;
    clearInterval(this.looking);
    for (const host of [...this.waiting.keys()]) this.leave(host);
  }
}
