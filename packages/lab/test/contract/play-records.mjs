/** Players that write records, in a ring or word by word, and players that read them meanwhile. */
import {
  distance,
  epochAt,
  FRAME_WORDS,
  framedWords,
  HEAD_WORDS,
  numberAt,
  postRange,
  ringAt,
  seal,
  slotAt,
  word,
  wordsOf,
} from 'tram-multicast/internal/memory/record.js';
import { Random } from '../../dist/sim/random.js';
import { Complaints, DONE, OUTSTANDING_MAX, PLACE, pattern, Teller } from './play-common.mjs';

const OPEN = 0;
const SALT = 0x5a17;

// --- records in a ring ---------------------------------------------------------------------------

/** Empty, the maximum, or a size in between. */
function bodyWordsOf(number, bodyWordsMax) {
  const drawn = pattern(number, 77) >>> 0;
  if (drawn % 4 === 0) return 0;
  if (drawn % 4 === 1) return bodyWordsMax;
  return (drawn >>> 2) % (bodyWordsMax + 1);
}

/**
 * The first number and position, shortly before their sign changes.
 */
const FIRST = 0x7fffff80;

/** Writes records, several in one write, as fast as the ring has room. */
export function ringWriter(memory, options) {
  const { reader, epoch, ringWords, bodyWordsMax, batchMax, records, guard, usesScratch, seed } =
    options;
  const random = new Random(seed);
  const words = usesScratch ? memory.scratch(ringWords) : new Int32Array(ringWords);
  const mirror = ringAt(words, 0, ringWords, SALT);
  const complaints = new Complaints();
  const endNumber = FIRST + records;
  let number = FIRST;
  let end = FIRST | 0;
  let outstanding = 0;
  let timesFull = 0;
  memory.own[PLACE.answered] = FIRST | 0;

  const room = () => ringWords - distance(end, memory.own[PLACE.answered]);

  /** @returns false if there is no room for the next record */
  const append = () => {
    const bodyWords = bodyWordsOf(number, bodyWordsMax);
    if (bodyWords + FRAME_WORDS > room()) return false;
    for (let i = 0; i < bodyWords; i++) {
      words[(end + HEAD_WORDS + i) & mirror.mask] = pattern(number, i);
    }
    end = (end + seal(mirror, end, bodyWords, epoch, number++)) | 0;
    return true;
  };

  const completed = () => {
    if (memory.completion.tag === 0) return;
    outstanding--;
    if (memory.completion.outcome !== 'ok') complaints.add(memory.completion.outcome);
  };

  return {
    step() {
      while (memory.poll()) completed();
      if (number === endNumber) return outstanding === 0 ? DONE : 0;
      if (outstanding > OUTSTANDING_MAX) return 0;
      const start = end;
      const batch = 1 + random.below(batchMax);
      for (let i = 0; i < batch && number < endNumber; i++) if (!append()) break;
      if (end === start) {
        timesFull++;
        return 0;
      }
      outstanding++;
      postRange(memory, reader, PLACE.block, mirror, start, end, guard, 0, 1);
      return 1;
    },
    result: () => ({ wrong: complaints.list, timesFull }),
  };
}

/** Planted bugs: the reader checks only both ends of a record, or only its head. */
const CREDULOUS = {
  ends: framedWords,
  head: (ring, position, epoch, number) =>
    epochAt(ring, position) === epoch && numberAt(ring, position) === (number | 0)
      ? word(ring, position)
      : 0,
};

/** @param options  `trusts`: one of the planted bugs */
export function ringReader(memory, options) {
  const { writer, epoch, ringWords, bodyWordsMax, records, seed, trusts } = options;
  const random = new Random(seed);
  const ring = ringAt(memory.own, PLACE.block, ringWords, SALT);
  const answer = new Teller(memory, writer, PLACE.answered);
  const complaints = new Complaints();
  const find = CREDULOUS[trusts] ?? wordsOf;
  const wordsMax = bodyWordsMax + FRAME_WORDS;
  const endNumber = FIRST + records;
  let number = FIRST;
  let position = FIRST | 0;
  let answered = position;
  let untilAnswer = 0;
  let rest = 0;

  const look = (words) => {
    const bodyWords = bodyWordsOf(number, bodyWordsMax);
    if (words !== bodyWords + FRAME_WORDS) complaints.add(`${number} has ${words} words`);
    for (let i = 0; i < bodyWords; i++) {
      if (word(ring, position + HEAD_WORDS + i) !== pattern(number, i)) {
        complaints.add(`${number} is wrong at ${i} of ${bodyWords}`);
        return;
      }
    }
  };

  const giveBack = () => {
    if (answered === position) return;
    answered = position;
    answer.tell(position);
    untilAnswer = random.below(8);
  };

  const take = (words) => {
    look(words);
    number++;
    position = (position + words) | 0;
    if (--untilAnswer <= 0) giveBack();
    // Sometimes rest long enough for the ring to fill up.
    if (random.below(20) === 0) rest = random.below(200);
  };

  return {
    step() {
      while (memory.poll());
      if (rest-- > 0) return 1;
      const words = find(ring, position, epoch, number, wordsMax);
      if (words === 0) {
        giveBack();
        return 0;
      }
      take(words);
      return number === endNumber ? DONE : 1;
    },
    result: () => ({ wrong: complaints.list }),
  };
}

// --- records that arrive word by word ------------------------------------------------------------

/** Writes the words of a record one by one, in random order; posts `told` before the last one. */
export function scatterWriter(memory, { reader, bodyWordsMax, records, seed }) {
  const random = new Random(seed);
  const slot = slotAt(new Int32Array(bodyWordsMax + FRAME_WORDS), 0);
  const there = new Int32Array(bodyWordsMax + FRAME_WORDS);
  const teller = new Teller(memory, reader, PLACE.told);
  let number = 0;
  let left = [];

  const begin = () => {
    const bodyWords = random.below(bodyWordsMax + 1);
    number++;
    for (let i = 0; i < bodyWords; i++) slot.words[HEAD_WORDS + i] = pattern(number, i);
    const words = seal(slot, 0, bodyWords, number * 7, number);
    left = Array.from({ length: words }, (_, place) => place);
    for (let i = words - 1; i > 0; i--) swap(i, random.below(i + 1));
    // The last word must differ from the previous contents of its place, so that the record is incomplete without it.
    const missed = left.findIndex((place) => slot.words[place] !== there[place]);
    swap(0, missed);
  };
  const swap = (a, b) => {
    [left[a], left[b]] = [left[b], left[a]];
  };

  return {
    step() {
      while (memory.poll());
      if (left.length === 0) {
        if (memory.own[PLACE.answered] !== number) return 0;
        if (number === records) return DONE;
        begin();
      }
      if (left.length === 1) teller.tell(number);
      const place = left.pop();
      there[place] = slot.words[place];
      memory.write(reader, PLACE.block + place, slot.words, place, 1, OPEN, 0);
      return 1;
    },
    result: () => ({}),
  };
}

export function scatterReader(memory, { writer, bodyWordsMax, records }) {
  const { own } = memory;
  const slot = slotAt(own, PLACE.block);
  const answer = new Teller(memory, writer, PLACE.answered);
  const complaints = new Complaints();
  let number = 1;
  return {
    step() {
      const words = wordsOf(slot, 0, number * 7, number, bodyWordsMax + FRAME_WORDS);
      if (words === 0) return 0;
      memory.readFence();
      if (own[PLACE.told] < number) complaints.add(`${number} was taken before its last word`);
      for (let i = 0; i < words - FRAME_WORDS; i++) {
        if (word(slot, HEAD_WORDS + i) !== pattern(number, i)) complaints.add(`${number} is wrong`);
      }
      answer.tell(number);
      return number++ === records ? DONE : 1;
    },
    result: () => ({ wrong: complaints.list }),
  };
}
