/**
 * How many calls of one client go to the shards at a time. It depends on how long the replies to the last ones were: a client that asks
 * for a lot and does not read it must not fill the memory of the shards and the gateway.
 */

/** The calls of a new client. */
const CALLS_FIRST = 8;
const CALLS_MAX = 1024;
/** What the replies to a piece should not exceed. */
const REPLY_BYTES_MAX = 1024 * 1024;

export class PieceSize {
  #callsMax = CALLS_FIRST;

  isReachedBy(calls: number): boolean {
    return calls >= this.#callsMax;
  }

  /** These are the replies to a piece. */
  learn(replies: readonly Uint8Array[]): void {
    let bytes = 0;
    for (const { length } of replies) bytes += length;
    if (bytes > REPLY_BYTES_MAX) {
      this.#callsMax = Math.max(1, Math.floor((replies.length * REPLY_BYTES_MAX) / bytes));
    } else if (this.isReachedBy(replies.length)) {
      this.#callsMax = Math.min(CALLS_MAX, 2 * this.#callsMax);
    }
  }
}
