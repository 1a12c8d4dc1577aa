/** What the players have in common: what a step returns, where things lie in a region, what is written. */

/** A step returns how much it did: 0 is nothing, and `DONE` is the last step. */
export const DONE = -1;

/** So much may be posted before anybody waits for completions. */
export const OUTSTANDING_MAX = 12;

/**
 * Places in a region, the same for every player. Each word has a line of its own, so that nobody waits
 * for another's line.
 */
export const PLACE = {
  /** Said by the counterpart: its round, what it took, what it may write under. */
  told: 16,
  answered: 32,
  /** Where several words are written. */
  block: 1024,
};

/** Words that differ for each record and each place in it. */
export function pattern(number, place) {
  return Math.imul((number + 1) ^ Math.imul(place, 0x27d4eb2f), 0x9e3779b1);
}

/** The first few things that were wrong: enough to understand, few enough to print. */
export class Complaints {
  list = [];
  add(text) {
    if (this.list.length < 5) this.list.push(text);
  }
}

/** Post one word that nobody waits for. */
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
