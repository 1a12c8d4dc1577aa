/**
 * Fingerprints of states: 64 bits, in two words. A state is a set of places, each with a value. The fingerprint is the
 * sum, in each word, of a mix of place and value. So it does not depend on an order, and a change of one place costs the
 * same however large the state is.
 *
 * Two states out of n have the same fingerprint with a probability of about n² / 2⁶⁵: for ten million states, 3 in a
 * million. If that happens, the second state is not explored.
 */

function mixLow(place: number, value: number): number {
  let h = Math.imul(value ^ 0x3c6ef372, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 15) ^ place, 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return h ^ (h >>> 15);
}

function mixHigh(place: number, value: number): number {
  let h = Math.imul(place ^ 0x510e527f, 0x7feb352d);
  h = Math.imul(h ^ (h >>> 16) ^ value, 0x6c8e9cf5);
  h = Math.imul(h ^ (h >>> 13), 0x1b56c4e9);
  return h ^ (h >>> 16);
}

/** A name for a part of a place. */
export function placeIn(place: number, part: number): number {
  return mixHigh(Math.imul(place, 0x01000193) ^ part, part);
}

const words = new Map<unknown, number>();

/** A word that stands for a text, a boolean, `undefined` or `null`. */
export function wordOf(value: unknown): number {
  let word = words.get(value);
  if (word === undefined) {
    const text = `${typeof value} ${value}`;
    word = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) word = placeIn(word, text.charCodeAt(i));
    words.set(value, word);
  }
  return word;
}

const float = new Float64Array(1);
const halves = new Int32Array(float.buffer);

export class Fingerprint {
  low = 0;
  high = 0;

  addWord(place: number, value: number): void {
    this.low = (this.low + mixLow(place, value)) | 0;
    this.high = (this.high + mixHigh(place, value)) | 0;
  }

  removeWord(place: number, value: number): void {
    this.low = (this.low - mixLow(place, value)) | 0;
    this.high = (this.high - mixHigh(place, value)) | 0;
  }

  /** Add a number, a boolean, a string, `undefined` or `null`. */
  add(place: number, value: unknown): void {
    if (typeof value === 'number') {
      if ((value | 0) === value) {
        this.addWord(place, value);
        return;
      }
      float[0] = value;
      this.addWord(placeIn(place, 1), halves[0]);
      this.addWord(placeIn(place, 2), halves[1]);
      return;
    }
    this.addWord(placeIn(place, 3), wordOf(value));
  }

  /** The opposite of `add`. */
  remove(place: number, value: unknown): void {
    const { low, high } = this;
    this.low = 0;
    this.high = 0;
    this.add(place, value);
    this.low = (low - this.low) | 0;
    this.high = (high - this.high) | 0;
  }

  include(other: Fingerprint): void {
    this.low = (this.low + other.low) | 0;
    this.high = (this.high + other.high) | 0;
  }

  exclude(other: Fingerprint): void {
    this.low = (this.low - other.low) | 0;
    this.high = (this.high - other.high) | 0;
  }

  copyFrom({ low, high }: Fingerprint): void {
    this.low = low;
    this.high = high;
  }

  equals({ low, high }: Fingerprint): boolean {
    return this.low === low && this.high === high;
  }

  clear(): void {
    this.low = 0;
    this.high = 0;
  }
}
