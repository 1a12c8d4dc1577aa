/** A client's side of its inboxes at one group, and the calls that the group has not replied to. Called by `client.ts`. */
import { NO_SALT, ringAt, type Window } from 'tram-multicast/internal/memory/record.js';

export const NONE = -1;

/** The calls are a linked list, oldest first. */
export class Outbox {
  readonly mirror: Window;
  end: number;
  sent: number;
  written: number;
  /** All replicas of the group have delivered the messages up to here, or further. */
  freed: number;
  private first = NONE;
  private last = NONE;
  private readonly after: Int32Array;
  private readonly before: Int32Array;

  constructor(mirror: Int32Array, end: number, written: number, callsMax: number) {
    this.mirror = ringAt(mirror, 0, mirror.length, NO_SALT);
    this.end = end;
    this.sent = end;
    this.written = written;
    this.freed = end;
    this.after = new Int32Array(callsMax);
    this.before = new Int32Array(callsMax);
  }

  get oldest(): number {
    return this.first;
  }

  next(call: number): number {
    return this.after[call];
  }

  add(call: number): void {
    this.before[call] = this.last;
    this.after[call] = NONE;
    if (this.last === NONE) this.first = call;
    else this.after[this.last] = call;
    this.last = call;
  }

  drop(call: number): void {
    const before = this.before[call];
    const after = this.after[call];
    if (before === NONE) this.first = after;
    else this.after[before] = after;
    if (after === NONE) this.last = before;
    else this.before[after] = before;
  }
}
