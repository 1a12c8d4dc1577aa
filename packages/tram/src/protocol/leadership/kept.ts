/**
 * What a member keeps in its own region for its next incarnation, used by member.ts. If the region outlives the process,
 * the next incarnation resumes with what was promised and with the logs written for it.
 *
 * Invariant: each value is a single word, which can't tear, and is stored before anything that follows from it is done.
 */
import { KEPT } from '../layout.js';

/** Indices are kept in units of this: near enough to complete an index of which only the low word is known. */
const ERA = 2 ** 30;

export class Kept {
  constructor(
    private readonly words: Int32Array,
    private readonly at: number,
  ) {}

  /** The first key that was made since the region was last empty: promises and logs since then count. */
  get firstKey(): number {
    return this.words[this.at + KEPT.firstKey];
  }

  /** Has it been a member since then? Not while it recovers: its promise and its log do not tell enough yet. */
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

  /** How many keys were made since then. */
  get keys(): number {
    return this.words[this.at + KEPT.keys];
  }

  set keys(count: number) {
    this.words[this.at + KEPT.keys] = count;
  }

  /** An index within 2³¹ of those in the log. */
  get near(): number {
    return this.words[this.at + KEPT.era] * ERA;
  }

  set near(index: number) {
    this.words[this.at + KEPT.era] = Math.floor(index / ERA);
  }

  /** The region is empty: begin with nothing. */
  begin(firstKey: number): void {
    this.words.fill(0, this.at, this.at + KEPT.words);
    this.words[this.at + KEPT.firstKey] = firstKey;
  }
}
