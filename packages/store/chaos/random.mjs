/** Random choices that depend on a seed alone. */

/** Mulberry32. @param {number} seed @returns {() => number} 0 <= x < 1 */
export function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.next = mulberry32(seed);
  }

  /** @param {number} probability */
  chance(probability) {
    return this.next() < probability;
  }

  /** An integer from `min` to `max`. @param {number} min @param {number} max */
  integer(min, max) {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** @template T @param {readonly T[]} items @returns {T} */
  pick(items) {
    return items[Math.floor(this.next() * items.length)];
  }

  /** @template T @param {readonly T[]} items @param {number} count @returns {T[]} different ones */
  some(items, count) {
    const left = [...items];
    return Array.from({ length: count }, () => left.splice(this.integer(0, left.length - 1), 1)[0]);
  }
}
