/**
 * The messages that wait for a deferred reply at one replica of the bank. Called by `bank.mjs`.
 *
 * A message waits until its group has delivered a number of further messages, or until ordered time has advanced by a
 * number of milliseconds, whichever comes first. Its reply tells the places and times at which its group let it wait and
 * released it, so that `verify-replies.mjs` can compare them with the trace. Everything here is part of the state of the
 * group, and is in snapshots.
 */

/**
 * How long a message waits at a group: for so many messages, or so many milliseconds of ordered time. `null`: without end.
 * @typedef {[group: number, messages: number | null, ms: number | null]} Wait
 */

/**
 * A place in the deliveries of a group, and its ordered time there. The first message is at place 1.
 * @typedef {{ place: number, nowMs: number }} Moment
 */

/**
 * Part of a deferred reply: when, and by which message; by a tick if there is none.
 * @typedef {Moment & { by: string | null }} Release
 */

/**
 * @typedef {object} Waiting
 * @property {string} id
 * @property {string} nonce
 * @property {Moment} since
 * @property {number | null} untilPlace
 * @property {number | null} untilMs
 */

/** @typedef {import('tram-multicast').ServiceContext} ServiceContext */

export class Turnstile {
  /** In the order in which they came. @type {Waiting[]} */
  waiting = [];
  /** The nonces of the messages that were abandoned, and the places of the last deliveries before. @type {[string, number][]} */
  abandoned = [];
  /** Replies that TRAM refused, although the message waits. */
  refused = 0;

  /**
   * Lets a message wait. @param {string} id @param {string} nonce @param {Wait} wait @param {Moment} since
   */
  enter(id, nonce, [, messages, ms], since) {
    this.waiting.push({
      id,
      nonce,
      since,
      untilPlace: messages === null ? null : since.place + messages,
      untilMs: ms === null ? null : since.nowMs + ms,
    });
  }

  /** Replies to all messages that waited for this delivery. @param {string} by @param {number} place @param {ServiceContext} context */
  delivered(by, place, context) {
    this.release(
      ({ untilPlace }) => untilPlace !== null && untilPlace <= place,
      { place, nowMs: context.nowMs, by },
      context,
    );
  }

  /** Replies to all messages that waited for this time. @param {number} place  of the last delivery @param {ServiceContext} context */
  ticked(place, context) {
    const { nowMs } = context;
    this.release(
      ({ untilMs }) => untilMs !== null && untilMs <= nowMs,
      { place, nowMs, by: null },
      context,
    );
  }

  /**
   * @param {(waiting: Waiting) => boolean} isDue
   * @param {Release} released
   * @param {ServiceContext} context
   */
  release(isDue, released, context) {
    const due = this.waiting.filter(isDue);
    if (due.length === 0) return;
    this.waiting = this.waiting.filter((waiting) => !isDue(waiting));
    for (const { id, nonce, since } of due) {
      const reply = JSON.stringify({ id, nonce, ...since, released });
      if (!context.reply(id, new TextEncoder().encode(reply))) this.refused++;
    }
  }

  /** A message waits no longer, and has no reply. @param {string} id @param {number} place  of the last delivery */
  abandon(id, place) {
    const at = this.waiting.findIndex((waiting) => waiting.id === id);
    const nonce = at < 0 ? `${id}, which did not wait` : this.waiting[at].nonce;
    this.abandoned.push([nonce, place]);
    if (at >= 0) this.waiting.splice(at, 1);
  }

  toJSON() {
    const { waiting, abandoned, refused } = this;
    return { waiting, abandoned, refused };
  }
}
