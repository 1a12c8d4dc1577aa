/** Shared by all players: the result of a step, the places in a region, the contents of records. */

/** A step returns the amount of its work; `DONE` after the last step. */
export const DONE = -1;

/** The most writes that a player posts before it waits for completions. */
export const OUTSTANDING_MAX = 12;

/**
 * Places in a region, the same for every player. Each word has a cache line of its own.
 */
export const PLACE = {
  /** Written by the counterpart: its round, or the guard to write under. */
  told: 16,
  answered: 32,
  /** The place of several words. */
  block: 1024,
};

/** A word that depends on the record and the place in it. */
export function pattern(number, place) {
  return Math.imul((number + 1) ^ Math.imul(place, 0x27d4eb2f), 0x9e3779b1);
}

/** Keeps the first few errors. */
export class Complaints {
  list = [];
  add(text) {
    if (this.list.length < 5) this.list.push(text);
  }
}

/** Posts one word, fire-and-forget. */
export class Teller {
  word = new Int32Array(1);
  constructor(memory, peer, at) {
    this.memory = memory;
    this.peer = peer;
    this.at = at;
  }
  tell(value) {
    this.word[0] = value;
    this.memory.write(this.peer, this.at, this.word, 0, 1, 0, 0);
  }
}
