/** What does not fit into one message: uploads from gateways, and replies that gateways fetch. Both in pieces. */

import { type Header, KIND } from '../messages/message.js';
import type { Bytes } from '../resp/reply.js';

/** What its gateway leaves for so long is dropped: a stored reply, or an upload that belongs to no transaction. */
export const KEPT_MS = 60_000;

interface Parcel {
  readonly bytes: Uint8Array;
  untilMs: number;
}

export interface ParcelState {
  readonly uploads: Map<string, Parcel>;
  readonly stored: Map<number, Parcel>;
  lastStored: number;
}

export class Parcels {
  readonly state: ParcelState;

  constructor(state?: ParcelState) {
    this.state = state ?? { uploads: new Map(), stored: new Map(), lastStored: 0 };
  }

  /**
   * Pieces come in order. One whose predecessors were dropped is dropped too.
   * @param length  of the whole upload @param untilMs  then it is dropped
   */
  upload(id: string, at: number, length: number, piece: Uint8Array, untilMs: number): void {
    if (at === 0) this.state.uploads.set(id, { bytes: Buffer.alloc(length), untilMs });
    const parcel = this.state.uploads.get(id);
    if (parcel === undefined) return;
    parcel.bytes.set(piece, at);
    parcel.untilMs = untilMs;
  }

  /** Takes an upload out. @returns undefined if there is none, or it was dropped */
  take(id: string): Uint8Array | undefined {
    const bytes = this.state.uploads.get(id)?.bytes;
    this.state.uploads.delete(id);
    return bytes;
  }

  /** @returns the number to fetch it by */
  store(bytes: Uint8Array, nowMs: number): number {
    const number = ++this.state.lastStored;
    this.state.stored.set(number, { bytes, untilMs: nowMs + KEPT_MS });
    return number;
  }

  /** Empty if it was dropped. The last piece drops it. */
  fetch(number: number, from: number, to: number, nowMs: number): Uint8Array {
    const parcel = this.state.stored.get(number);
    if (parcel === undefined) return new Uint8Array(0);
    parcel.untilMs = nowMs + KEPT_MS;
    if (to >= parcel.bytes.length) this.state.stored.delete(number);
    return parcel.bytes.subarray(from, to);
  }

  dropOld(nowMs: number): void {
    for (const [id, { untilMs }] of this.state.uploads) {
      if (untilMs <= nowMs) this.state.uploads.delete(id);
    }
    for (const [number, { untilMs }] of this.state.stored) {
      if (untilMs <= nowMs) this.state.stored.delete(number);
    }
  }
}

/** The name of an upload that a message refers to. */
export function uploadOf({ kind, sender, subject }: Header, number: number): string {
  // What prepares a transaction comes before it.
  return subject === '' || kind === KIND.prepare
    ? `${sender} ${number}`
    : uploadOfTransaction(subject);
}

/** A transaction has one upload at a shard at most. */
export function uploadOfTransaction(id: Bytes): string {
  return `transaction ${id}`;
}
