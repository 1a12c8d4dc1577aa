/**
 * The backlog of a leader: decided entries that truncation has dropped from the log although a member that lags may not
 * have delivered them. The leader keeps copies in private memory, so the log need not wait for that member. The member
 * fetches the entries from here (leadership/snapshots.ts). If the backlog exceeds its bound, it is emptied, and a member
 * that needed it fetches a snapshot instead.
 *
 * While no member lags, the backlog is empty and costs nothing.
 *
 * Invariant: it holds entries firstIndex … endIndex - 1, without gaps, as they lay in the log. All of them are decided.
 */
import { copyWords, slotAt, type Window, word } from '../../memory/record.js';

/** No index: the backlog is empty. */
export const EMPTY = -1;

/** Consecutive entries of one ballot. The used words never change again. */
interface Piece {
  readonly ballot: number;
  readonly firstIndex: number;
  readonly window: Window;
  usedWords: number;
  endIndex: number;
}

/** Entries to be sent to a member. */
export interface Entries {
  readonly ballot: number;
  readonly words: Int32Array;
  /** The index after that of the last entry. */
  readonly endIndex: number;
}

export class Backlog {
  private pieces: Piece[] = [];
  private words = 0;

  constructor(
    /** At least as much as the largest entry. */
    private readonly pieceWords: number,
    private readonly wordsMax: number,
  ) {}

  /** The index of the oldest entry, or EMPTY. */
  get firstIndex(): number {
    return this.pieces.length === 0 ? EMPTY : this.pieces[0].firstIndex;
  }

  clear(): void {
    if (this.pieces.length === 0) return;
    this.pieces = [];
    this.words = 0;
  }

  /** Add the entry that lies at `position` of the log. False if the bound is exceeded: then the backlog is empty. */
  add(log: Window, position: number, ballot: number, index: number): boolean {
    const count = word(log, position);
    let piece = this.pieces.at(-1);
    if (piece !== undefined && piece.endIndex !== index) this.clear();
    if (this.words + count > this.wordsMax) {
      this.clear();
      return false;
    }
    piece = this.pieces.at(-1);
    if (piece?.ballot !== ballot || piece.usedWords + count > this.pieceWords) {
      const window = slotAt(new Int32Array(this.pieceWords), 0);
      piece = { ballot, firstIndex: index, window, usedWords: 0, endIndex: index };
      this.pieces.push(piece);
    }
    copyWords(log, position, piece.window, piece.usedWords, count);
    piece.usedWords += count;
    piece.endIndex = index + 1;
    this.words += count;
    return true;
  }

  /** Entries from `index` on, not necessarily all of them; undefined if the backlog does not hold `index`. */
  from(index: number): Entries | undefined {
    for (const { ballot, firstIndex, endIndex, window, usedWords } of this.pieces) {
      if (index < firstIndex) return undefined;
      if (index >= endIndex) continue;
      let at = 0;
      for (let skipped = firstIndex; skipped < index; skipped++) at += word(window, at);
      return { ballot, words: window.words.subarray(at, usedWords), endIndex };
    }
    return undefined;
  }
}
