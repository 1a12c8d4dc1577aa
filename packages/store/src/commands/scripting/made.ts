/** What was made of texts, such as compiled scripts: it is not made again each time. */

import type { Bytes } from '../../resp/reply.js';

/** What each one counts for, besides the length of its text. */
const WEIGHT = 4096;

export class Made<T> {
  readonly #all = new Map<Bytes, T>();
  #weight = 0;

  /**
   * @param max  above this weight, all are forgotten
   * @param make  what it throws is thrown again each time
   */
  constructor(
    private readonly max: number,
    private readonly make: (text: Bytes) => T,
  ) {}

  of(text: Bytes): T {
    const known = this.#all.get(text);
    if (known !== undefined) return known;
    const made = this.make(text);
    const weight = WEIGHT + text.length;
    if (this.#weight + weight > this.max) {
      this.#all.clear();
      this.#weight = 0;
    }
    this.#all.set(text, made);
    this.#weight += weight;
    return made;
  }
}
