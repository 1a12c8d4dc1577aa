/**
 * The calls that wait for a deferred reply, and the sessions that have ended. Every member has one; delivery.ts, replies.ts
 * and leader.ts use it.
 *
 * The kept replies (replies.ts) determine which calls wait. `places` only finds them by the ids of their messages.
 *
 * The sessions of a client slot follow one another. For a group, a session has ended once the group has delivered an entry
 * of a later session, or an own entry that says so. No client takes its replies any more.
 *
 * Invariants: members that have delivered up to the same index have the same calls and sessions here. All calls of a client
 * slot that wait are of the session `firstLive`.
 */
import type { Sizes } from '../layout.js';
import type { Replies } from './replies.js';

export class Waiting {
  /** By the id of the message that waits: client × callsMax + call slot. Made when the first reply is deferred. */
  private places: Map<string, number> | undefined;
  /** Per client slot: how many of its calls wait. */
  readonly counts: Int32Array;
  /** Per client slot: all sessions before this one have ended. */
  readonly firstLive: Int32Array;
  private readonly callsMax: number;

  constructor({ clients, callsMax }: Sizes) {
    this.counts = new Int32Array(clients);
    this.firstLive = new Int32Array(clients);
    this.callsMax = callsMax;
  }

  /** How many calls wait. */
  get total(): number {
    return this.places?.size ?? 0;
  }

  hasEnded(client: number, session: number): boolean {
    return session < this.firstLive[client];
  }

  add(id: string, client: number, call: number): void {
    this.places ??= new Map();
    this.places.set(id, client * this.callsMax + call);
    this.counts[client]++;
  }

  /** The message with this id waits no longer. Returns its place, or -1 if it did not wait. */
  remove(id: string): number {
    const place = this.places?.get(id);
    if (place === undefined) return -1;
    this.places!.delete(id);
    this.counts[this.clientAt(place)]--;
    return place;
  }

  clientAt(place: number): number {
    return Math.floor(place / this.callsMax);
  }

  callAt(place: number): number {
    return place % this.callsMax;
  }

  /** All sessions before this one have ended. Returns the ids of their messages that waited, in the order of the call slots. */
  end(client: number, firstLive: number, replies: Replies): string[] {
    const ids: string[] = [];
    this.firstLive[client] = firstLive;
    for (let call = 0; call < this.callsMax && this.counts[client] > 0; call++) {
      const id = replies.waitingIn(client, call);
      if (id === undefined) continue;
      this.remove(id);
      replies.drop(client, call);
      ids.push(id);
    }
    return ids;
  }

  /** Find the calls that wait again, after the kept replies were replaced. */
  rebuild(replies: Replies): void {
    this.places = undefined;
    this.counts.fill(0);
    for (let client = 0; client < this.counts.length; client++) {
      for (let call = 0; call < this.callsMax; call++) {
        const id = replies.waitingIn(client, call);
        if (id !== undefined) this.add(id, client, call);
      }
    }
  }
}
