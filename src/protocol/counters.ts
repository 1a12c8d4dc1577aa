/**
 * What has come from each source and what has gone to each child, as a function of the log alone
 * (paper's slot_in and slot_out, kept in the log's own terms: holes H5 and H6).
 *
 * A replica keeps one for the entries it has delivered; a leader keeps a second one for all entries
 * it has proposed. Folding the same entries gives the same counters on every member.
 *
 * Invariant: an entry continues its source without a gap and without repeating.
 */
import { MESSAGE, ORIGIN, originIn, PARENT, type Sizes } from '../memory/layout.js';
import { extend, HEAD_WORDS, type Window, word } from '../memory/window.js';
import { assert } from './assert.js';
import type { Overlay } from './overlay.js';

export class Counters {
  /** Per client slot: its session, the number of its next message, and where in its inbox that starts. */
  readonly session: Int32Array;
  readonly nextNumber: Float64Array;
  readonly nextPosition: Int32Array;
  /** How many messages have come from the parent. */
  nextFromParent: number;
  /** Per child: how many messages have gone to it. */
  readonly nextTo: Float64Array;

  constructor(
    sizes: Sizes,
    private readonly overlay: Overlay,
    private readonly children: readonly number[],
  ) {
    this.session = new Int32Array(sizes.clients);
    this.nextNumber = new Float64Array(sizes.clients);
    this.nextPosition = new Int32Array(sizes.clients);
    this.nextFromParent = sizes.origin;
    this.nextTo = new Float64Array(children.length).fill(sizes.origin);
  }

  copyFrom(other: Counters): void {
    this.session.set(other.session);
    this.nextNumber.set(other.nextNumber);
    this.nextPosition.set(other.nextPosition);
    this.nextFromParent = other.nextFromParent;
    this.nextTo.set(other.nextTo);
  }

  /** A client slot has a new user: its messages start from the beginning. */
  open(client: number, session: number, origin: number): void {
    this.session[client] = session;
    this.nextNumber[client] = origin;
    this.nextPosition[client] = origin | 0;
  }

  /** Fold in the log entry whose record starts at `position`. */
  note(log: Window, position: number, origin: number): void {
    const message = position + HEAD_WORDS;
    const from = position + originIn(word(log, position));
    const source = word(log, from + ORIGIN.source);
    const number = word(log, from + ORIGIN.number);
    if (source === PARENT) {
      assert(
        number === (this.nextFromParent | 0),
        'an entry from the parent continues what was decided from the parent',
      );
      this.nextFromParent++;
    } else {
      const session = word(log, message + MESSAGE.session);
      if (session > this.session[source]!) this.open(source, session, origin);
      assert(
        session === this.session[source] && number === (this.nextNumber[source]! | 0),
        "an entry from a client continues its session's numbers",
      );
      this.nextNumber[source] = extend(this.nextNumber[source]!, number) + 1;
      this.nextPosition[source] = word(log, from + ORIGIN.nextPosition);
    }
    const low = word(log, message + MESSAGE.destinationsLow);
    const high = word(log, message + MESSAGE.destinationsHigh);
    for (let i = 0; i < this.children.length; i++) {
      if (this.overlay.reaches(this.children[i]!, low, high)) this.nextTo[i]!++;
    }
  }
}

/** Where the entry at `position` goes. */
export function destinationsLow(log: Window, position: number): number {
  return word(log, position + HEAD_WORDS + MESSAGE.destinationsLow);
}

export function destinationsHigh(log: Window, position: number): number {
  return word(log, position + HEAD_WORDS + MESSAGE.destinationsHigh);
}
