/** The entries that a leader keeps for members that lag. */
import { describe, expect, test } from 'vitest';
import { FRAME_WORDS, ringAt, seal, type Window } from '../../src/memory/record.js';
import { Backlog, EMPTY } from '../../src/protocol/data-path/backlog.js';

const BODY_WORDS = 3;
const ENTRY_WORDS = BODY_WORDS + FRAME_WORDS;
const BALLOT = 9;

/** A log of entries of equal size. */
function logWith(count: number): Window {
  const log = ringAt(new Int32Array(256), 0, 256, 0);
  for (let index = 0; index < count; index++) {
    seal(log, index * ENTRY_WORDS, BODY_WORDS, BALLOT, index);
  }
  return log;
}

function add(backlog: Backlog, log: Window, from: number, to: number, ballot = BALLOT): boolean {
  let fits = true;
  for (let index = from; index < to; index++) {
    fits = backlog.add(log, index * ENTRY_WORDS, ballot, index);
  }
  return fits;
}

/** The indices of entries. */
function indicesOf(words: Int32Array): number[] {
  return Array.from({ length: words.length / ENTRY_WORDS }, (_, i) => words[i * ENTRY_WORDS + 2]);
}

describe('a backlog', () => {
  test('is empty at first, and when it was cleared', () => {
    const backlog = new Backlog(64, 1000);
    expect(backlog.firstIndex).toBe(EMPTY);
    expect(backlog.from(0)).toBeUndefined();
    add(backlog, logWith(5), 0, 5);
    backlog.clear();
    expect(backlog.firstIndex).toBe(EMPTY);
    expect(backlog.from(0)).toBeUndefined();
  });

  test('hands out entries from any index on, piece by piece', () => {
    const pieceWords = 4 * ENTRY_WORDS;
    const backlog = new Backlog(pieceWords, 1000);
    expect(add(backlog, logWith(10), 2, 10)).toBe(true);
    expect(backlog.firstIndex).toBe(2);
    const read: number[] = [];
    for (let next = 2; next < 10; ) {
      const { words, endIndex, ballot } = backlog.from(next)!;
      expect(ballot).toBe(BALLOT);
      expect(words.length).toBeLessThanOrEqual(pieceWords);
      read.push(...indicesOf(words));
      next = endIndex;
    }
    expect(read).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(indicesOf(backlog.from(5)!.words)).toEqual([5]);
    expect(backlog.from(1)).toBeUndefined();
    expect(backlog.from(10)).toBeUndefined();
  });

  test('that exceeds its bound is emptied', () => {
    const backlog = new Backlog(64, 3 * ENTRY_WORDS);
    const log = logWith(8);
    expect(add(backlog, log, 0, 3)).toBe(true);
    expect(add(backlog, log, 3, 4)).toBe(false);
    expect(backlog.firstIndex).toBe(EMPTY);
    expect(add(backlog, log, 4, 7)).toBe(true);
    expect(backlog.firstIndex).toBe(4);
  });

  test('starts anew if entries are missing in between', () => {
    const backlog = new Backlog(64, 1000);
    const log = logWith(8);
    add(backlog, log, 0, 3);
    add(backlog, log, 5, 7);
    expect(backlog.firstIndex).toBe(5);
    expect(backlog.from(2)).toBeUndefined();
  });

  test('does not mix entries of two ballots in one piece', () => {
    const backlog = new Backlog(256, 1000);
    const log = logWith(8);
    add(backlog, log, 0, 3);
    add(backlog, log, 3, 5, BALLOT + 8);
    expect(backlog.from(0)).toMatchObject({ ballot: BALLOT, endIndex: 3 });
    expect(backlog.from(3)).toMatchObject({ ballot: BALLOT + 8, endIndex: 5 });
  });
});
