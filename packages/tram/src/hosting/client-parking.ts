/**
 * Whether the thread of a client uses a core, for hosts to know (`duty.ts`), and how a host wakes it that has a reply for it. Only a
 * thread that shares its memory as a SharedArrayBuffer can be woken in its event loop.
 *
 * Invariant: the client clears its ready flag before it collects replies, and sets `parked` before it reads the flag for the last
 * time. A host that replies sets the flag before it reads `parked`. So either the client sees the flag, or the host wakes it.
 */
import { HOST, PARKED } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import type { ClusterContext } from './cluster-context.js';

/**
 * A client that can be woken polls for less than it takes to be woken on a busy machine: hosts and other programs may need the core.
 * For one that polls by a timer afterwards, it pays to poll for longer.
 */
const EAGER_US = { woken: 50, timed: 2000 } as const;

export class ClientParking {
  readonly canBeWoken: boolean;
  /** For so long after the last reply the client polls with every turn of the event loop. */
  readonly eagerUs: number;
  private readonly words: Int32Array;
  private readonly parkedAt: number;
  private readonly readyAt: number;
  /** Is there a promise that resolves when a host wakes the thread? */
  private isListening = false;

  constructor(
    private readonly context: ClusterContext,
    participant: ParticipantId,
    /** Called in the event loop when a host has woken the thread. */
    private readonly onWoken: () => void,
  ) {
    const { arena, map, network } = context;
    this.words = arena.words;
    this.parkedAt = map.host(map.hostOf(participant)) + HOST.parked;
    this.readyAt = map.ready(participant);
    this.canBeWoken = network === undefined && arena.parking.waitAsync !== undefined;
    this.eagerUs = this.canBeWoken ? EAGER_US.woken : EAGER_US.timed;
  }

  /** The thread polls with every turn of its event loop. */
  awake(): void {
    this.note(PARKED.awake);
  }

  /** The thread does not poll: it waits for nothing, or for a timer. */
  absent(): void {
    this.note(PARKED.absent);
  }

  /** To be called before replies are collected. */
  clearReady(): void {
    if (this.canBeWoken) Atomics.exchange(this.words, this.readyAt, 0);
  }

  /**
   * A host that replies from now on wakes the thread.
   * @returns false if one has replied since `clearReady`
   */
  park(): boolean {
    this.note(PARKED.parked);
    if (Atomics.load(this.words, this.readyAt) !== 0) return false;
    if (this.isListening) return true;
    const woken = this.context.arena.parking.waitAsync!(this.parkedAt, PARKED.parked);
    if (woken === undefined) return false;
    this.isListening = true;
    woken.then(() => {
      this.isListening = false;
      // An error is an uncaught exception, as in a poll by a timer, and not a rejection.
      queueMicrotask(this.onWoken);
    });
    return true;
  }

  /** The client has ended. A promise that nobody resolves would keep the arena. */
  end(): void {
    this.absent();
    if (this.isListening) this.context.arena.parking.wake(this.parkedAt);
  }

  private note(parked: number): void {
    if (this.words[this.parkedAt] !== parked) Atomics.store(this.words, this.parkedAt, parked);
  }
}
