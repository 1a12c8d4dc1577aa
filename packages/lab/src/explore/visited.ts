/**
 * The states that a search has visited: a hash table of fingerprints, with open addressing, in typed arrays. With each
 * fingerprint it keeps a few words of the search.
 */

const FIRST_PLACES = 1 << 16;

export class Visited {
  size = 0;
  /** Was the state new that `visit` was called for last? */
  wasNew = false;
  private places = FIRST_PLACES;
  /** For each place: low and high word of the fingerprint, and the notes. Both words are 0 in an empty place. */
  private table: Int32Array;
  private readonly stride: number;

  /** @param notes  how many words are kept with each fingerprint */
  constructor(readonly notes: number) {
    this.stride = 2 + notes;
    this.table = new Int32Array(this.places * this.stride);
  }

  get bytes(): number {
    return this.table.byteLength;
  }

  /** Where the state's notes are, until the next call. If the state is new, `wasNew` is true, and its notes are 0. */
  visit(lowWord: number, high: number): number {
    // Zero stands for an empty place.
    const low = lowWord === 0 && high === 0 ? 1 : lowWord;
    if (this.size * 4 > this.places * 3) this.grow();
    const at = this.find(low, high);
    const { table } = this;
    this.wasNew = table[at] === 0 && table[at + 1] === 0;
    if (this.wasNew) {
      this.size++;
      table[at] = low;
      table[at + 1] = high;
    }
    return at + 2;
  }

  note(at: number): number {
    return this.table[at];
  }

  setNote(at: number, value: number): void {
    this.table[at] = value;
  }

  private find(low: number, high: number): number {
    const { table, stride, places } = this;
    let place = (low ^ Math.imul(high, 0x9e3779b1)) & (places - 1);
    for (;;) {
      const at = place * stride;
      if (table[at] === low && table[at + 1] === high) return at;
      if (table[at] === 0 && table[at + 1] === 0) return at;
      place = (place + 1) & (places - 1);
    }
  }

  private grow(): void {
    const { table: old, stride } = this;
    this.places *= 2;
    this.table = new Int32Array(this.places * stride);
    for (let from = 0; from < old.length; from += stride) {
      if (old[from] === 0 && old[from + 1] === 0) continue;
      const at = this.find(old[from], old[from + 1]);
      for (let i = 0; i < stride; i++) this.table[at + i] = old[from + i];
    }
  }
}
