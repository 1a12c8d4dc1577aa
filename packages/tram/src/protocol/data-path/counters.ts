/**
 * What has come from each source, as a function of the log alone (paper's slot_in; holes H5 and H6), and ordered time.
 * What has gone to each child needs no counter: it is named by its index in the log.
 *
 * A replica keeps one for the entries it has delivered (delivery.ts); a leader keeps a second one for all entries of its
 * log (leader.ts). Folding the same entries gives the same counters at every member.
 *
 * Invariants: an entry continues its source without repeating, and an entry from a client also without a gap. Every tick
 * advances ordered time.
 */

import { HEAD_WORDS, type Window, word } from '../../memory/record.js';
import { assert } from '../assert.js';
import { MESSAGE, OWN_KIND, PARENT, type Sizes, SOURCE, sourceIn } from '../layout.js';
import { WIDE } from '../wide.js';

export class Counters {
  /** Per client slot: its session (0: none yet), the number of its next message, and where in its inbox that starts. */
  readonly session: Int32Array;
  readonly nextNumber: Float64Array;
  readonly nextPosition: Int32Array;
  /** Every message from below this index of the parent's log that is meant for us has come. Never goes back. */
  nextFromParent: number;
  /** Ordered time: the stamp of the last tick, in microseconds since 1970; 0 before the first. Never goes back. */
  orderedUs = 0;

  constructor(sizes: Sizes) {
    this.session = new Int32Array(sizes.clients);
    this.nextNumber = new Float64Array(sizes.clients);
    this.nextPosition = new Int32Array(sizes.clients);
    this.nextFromParent = sizes.firstIndex;
  }

  copyFrom(other: Counters): void {
    this.session.set(other.session);
    this.nextNumber.set(other.nextNumber);
    this.nextPosition.set(other.nextPosition);
    this.nextFromParent = other.nextFromParent;
    this.orderedUs = other.orderedUs;
  }

  /** All sources begin anew, and ordered time goes on. */
  rebase(firstIndex: number): void {
    this.session.fill(0);
    this.nextNumber.fill(0);
    this.nextPosition.fill(0);
    this.nextFromParent = firstIndex;
  }

  /** A client slot has a new session: its messages start from the beginning. */
  open(client: number, session: number, firstIndex: number): void {
    this.session[client] = session;
    this.nextNumber[client] = firstIndex;
    this.nextPosition[client] = firstIndex | 0;
  }

  /** Fold in the log entry whose record starts at `position`. */
  note(log: Window, position: number, firstIndex: number): void {
    const message = position + HEAD_WORDS;
    const from = position + sourceIn(word(log, position));
    this.fold(
      word(log, from + SOURCE.id),
      word(log, from + SOURCE.number),
      word(log, from + SOURCE.nextPosition),
      word(log, message + MESSAGE.client),
      word(log, message + MESSAGE.session),
      firstIndex,
    );
  }

  /** Fold in the log entry with these words: those of `SOURCE`, then two of `MESSAGE`. */
  fold(
    source: number,
    number: number,
    nextPosition: number,
    client: number,
    session: number,
    firstIndex: number,
  ): void {
    if (source >= 0) {
      if (session > this.session[source]) this.open(source, session, firstIndex);
      assert(
        session === this.session[source] && number === (this.nextNumber[source] | 0),
        "an entry from a client continues its session's numbers",
      );
      this.nextNumber[source]++;
      this.nextPosition[source] = nextPosition;
    } else if (source === PARENT) {
      const index = nextPosition * WIDE + (number >>> 0);
      assert(
        index >= this.nextFromParent,
        'an entry from the parent follows what was decided from the parent',
      );
      this.nextFromParent = index + 1;
    } else if (number === OWN_KIND.tick) {
      this.noteTick(session * WIDE + (client >>> 0));
    }
  }

  private noteTick(stampUs: number): void {
    assert(stampUs > this.orderedUs, 'every tick advances ordered time');
    this.orderedUs = stampUs;
  }
}

/** The destinations of the entry at `position`, in two masks. */
export function destinationsLow(log: Window, position: number): number {
  return word(log, position + HEAD_WORDS + MESSAGE.destinationsLow);
}

export function destinationsHigh(log: Window, position: number): number {
  return word(log, position + HEAD_WORDS + MESSAGE.destinationsHigh);
}
