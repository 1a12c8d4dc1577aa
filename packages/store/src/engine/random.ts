/** Numbers that depend on the state alone, so replicas with the same state draw the same ones. Mulberry32. */

export class Random {
  constructor(public state: number) {}

  /** @returns 0 <= x < 1 */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let x = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }
}
