/**
 * What a member keeps in its own region for its next life: single words, which can't tear, each stored
 * before anything is done that follows from it. A process that dies leaves them as they are; if the
 * region outlives it, the next life resumes with what it had promised and with the logs written for it.
 */
import { KEPT } from '../layout.js';

/** Indices are known to within so much: near enough to tell a whole one by its low word. */
const ERA = 2 ** 30;

export class Kept {
  constructor(
    private readonly words: Int32Array,
    private readonly at: number,
  ) {}

  /** The life whose promises and logs count here: the one in which the region was last empty. */
  get life(): number {
    return this.words[this.at + KEPT.life];
  }

  /** Was it a member in that life? Not while it recovers: then its promise and its log tell too little. */
  get isMember(): boolean {
    return this.words[this.at + KEPT.member] === 1;
  }

  becomeMember(): void {
    this.words[this.at + KEPT.member] = 1;
  }

  get promised(): number {
    return this.words[this.at + KEPT.promised];
  }

  set promised(ballot: number) {
    this.words[this.at + KEPT.promised] = ballot;
  }

  /** How many keys were made in that life. */
  get keys(): number {
    return this.words[this.at + KEPT.keys];
  }

  set keys(count: number) {
    this.words[this.at + KEPT.keys] = count;
  }

  /** An index not far from those in the log. */
  get near(): number {
    return this.words[this.at + KEPT.era] * ERA;
  }

  set near(index: number) {
    this.words[this.at + KEPT.era] = Math.floor(index / ERA);
  }

  /** A new life begins with nothing. */
  begin(incarnation: number): void {
    this.words.fill(0, this.at, this.at + KEPT.words);
    this.words[this.at + KEPT.life] = incarnation;
  }
}
