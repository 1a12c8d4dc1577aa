/** Buffers for replies. A connection has one only from the first reply of a turn until it is sent: most connections are silent. */

import { ReplyWriter } from '../resp/writer.js';

const KEPT_MAX = 64;
/** A larger buffer is not kept. */
const CAPACITY_MAX = 256 * 1024;

export class Writers {
  readonly #free: ReplyWriter[] = [];

  take(): ReplyWriter {
    return this.#free.pop() ?? new ReplyWriter();
  }

  /** Nobody may use what was written any more. */
  giveBack(writer: ReplyWriter): void {
    if (this.#free.length >= KEPT_MAX || writer.capacity > CAPACITY_MAX) return;
    writer.clear();
    this.#free.push(writer);
  }
}
