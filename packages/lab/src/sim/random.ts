/** A fast pseudo-random generator (sfc32) in 32-bit integer arithmetic. A seed gives the same numbers on every machine. */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private d = 1;

  constructor(seed: number) {
    this.a = seed | 0;
    this.b = Math.floor(seed / 4294967296) | 0;
    this.c = 0x9e3779b9 | 0;
    for (let i = 0; i < 16; i++) this.next();
  }

  /** 32 random bits, as an unsigned number. */
  next(): number {
    const sum = (this.a + this.b + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    this.c |= 0;
    return sum >>> 0;
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    return Math.floor((this.next() * bound) / 4294967296);
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  percent(chance: number): boolean {
    return this.below(100) < chance;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)];
  }
}
