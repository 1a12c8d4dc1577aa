/**
 * Players that are interrupted: writers that are killed or paused in the middle of large records, and readers of what they
 * have written.
 */
import {
  epochAt,
  FRAME_WORDS,
  HEAD_WORDS,
  hashWords,
  NO_WORDS,
  numberAt,
  sealHashed,
  slotAt,
  word,
  wordsOf,
} from 'tram-multicast/internal/memory/record.js';
import { Complaints, DONE, OUTSTANDING_MAX, PLACE, pattern, Teller } from './play-common.mjs';

const OPEN = 0;

// --- writers that are killed ---------------------------------------------------------------------

/** Bodies with precomputed hashes, so that a writer spends nearly all its time on writing. */
class Bodies {
  static COUNT = 4;
  constructor(words) {
    this.words = words;
    this.list = Array.from({ length: Bodies.COUNT }, (_, which) => {
      const body = Int32Array.from({ length: words }, (_, i) => pattern(which, i));
      return { body, hash: hashWords(slotAt(body, 0), 0, words, NO_WORDS) };
    });
  }

  of(number) {
    return this.list[number % Bodies.COUNT];
  }

  isIn(record, number) {
    const { body } = this.of(number);
    for (let i = 0; i < this.words; i++) if (word(record, HEAD_WORDS + i) !== body[i]) return false;
    return true;
  }
}

/** The number of places that records are written to in rotation, whether they were read or not. */
const PLACES = 3;

/**
 * Announces its incarnation and then writes records, endlessly or a given number. A place gets another body in the next
 * incarnation and in the next lap.
 */
export function incarnationWriter(memory, { reader, epoch, bodyWords, records }) {
  const bodies = new Bodies(bodyWords);
  const recordWords = bodyWords + FRAME_WORDS;
  const sources = bodies.list.map(({ body }) => {
    const record = slotAt(new Int32Array(recordWords), 0);
    record.words.set(body, HEAD_WORDS);
    return record;
  });
  let number = 0;
  let outstanding = 0;
  new Teller(memory, reader, PLACE.told).tell(epoch);

  return {
    step() {
      while (memory.poll()) if (memory.completion.tag === 1) outstanding--;
      if (number === records) return DONE;
      if (outstanding > OUTSTANDING_MAX) return 0;
      const which = (epoch + number) % Bodies.COUNT;
      const source = sources[which];
      sealHashed(source, 0, bodyWords, epoch, number, bodies.list[which].hash);
      const to = PLACE.block + (number % PLACES) * recordWords;
      memory.write(reader, to, source.words, 0, recordWords, OPEN, 1);
      outstanding++;
      number++;
      return 1;
    },
    result: () => ({ records: number }),
  };
}

/** Polls all places in rotation and takes every valid record, until the last record of the last incarnation. */
export function incarnationReader(memory, { lastEpoch, lastRecords, bodyWords }) {
  const { own } = memory;
  const recordWords = bodyWords + FRAME_WORDS;
  const copy = slotAt(new Int32Array(recordWords), 0);
  const bodies = new Bodies(bodyWords);
  const complaints = new Complaints();
  const isHalf = new Array(PLACES).fill(false);
  let incarnation = 0;
  let place = 0;
  let taken = 0;
  let leftHalf = 0;
  let isDone = false;

  const take = (epoch, number) => {
    taken++;
    const isRight = number % PLACES === place && bodies.isIn(copy, epoch + number);
    if (!isRight) complaints.add(`${number} of incarnation ${epoch} is wrong at place ${place}`);
    if (epoch === lastEpoch && number === lastRecords - 1) isDone = true;
  };

  return {
    step() {
      if (own[PLACE.told] !== incarnation) {
        incarnation = own[PLACE.told];
        if (isHalf.includes(true)) leftHalf++;
      }
      place = (place + 1) % PLACES;
      const at = PLACE.block + place * recordWords;
      copy.words.set(own.subarray(at, at + recordWords));
      const epoch = epochAt(copy, 0);
      const number = numberAt(copy, 0);
      const isWhole = wordsOf(copy, 0, epoch, number, recordWords) === recordWords;
      isHalf[place] = !isWhole && copy.words.some((value) => value !== 0);
      if (isWhole) take(epoch, number);
      return isDone ? DONE : 1;
    },
    result: () => ({ wrong: complaints.list, taken, leftHalf }),
  };
}

// --- a writer that is paused ---------------------------------------------------------------------

/**
 * Fills the owner's block with records repeatedly, under one guard. A word, under the same guard, announces each pass, and each
 * pass has its own epoch. Ends when a write is refused.
 */
export function appender(memory, { owner, guard, firstPass, blockWords, bodyWords }) {
  const record = slotAt(new Int32Array(bodyWords + FRAME_WORDS), 0);
  const announcement = new Int32Array(1);
  const bodies = new Bodies(bodyWords);
  const recordWords = record.words.length;
  const recordsMax = Math.floor(blockWords / recordWords);
  let pass = firstPass;
  let number = -1;
  let isWaiting = false;
  let ok = { pass: 0, records: 0 };
  let isRefused = false;

  const announce = () => {
    announcement[0] = pass;
    memory.write(owner, PLACE.told, announcement, 0, 1, guard, 1);
  };
  const append = () => {
    const { body, hash } = bodies.of(pass + number);
    record.words.set(body, HEAD_WORDS);
    sealHashed(record, 0, bodyWords, pass, number, hash);
    const to = PLACE.block + number * recordWords;
    memory.write(owner, to, record.words, 0, recordWords, guard, 1);
  };

  const completed = () => {
    isWaiting = false;
    if (memory.completion.outcome !== 'ok') {
      isRefused = true;
      return;
    }
    number++;
    ok = { pass, records: number };
    if (number < recordsMax) return;
    pass++;
    number = -1;
  };

  return {
    step() {
      while (memory.poll()) completed();
      if (isRefused) return DONE;
      if (isWaiting) return 0;
      isWaiting = true;
      if (number < 0) announce();
      else append();
      while (memory.poll()) completed();
      return isRefused ? DONE : 1;
    },
    result: () => ok,
  };
}

/** Revokes the permission by permitting `guard`. Its result is the pass, the number of records and their hash at that time. */
export function sealer(memory, { guard, bodyWords }) {
  const block = slotAt(memory.own, PLACE.block);
  const recordWords = bodyWords + FRAME_WORDS;
  let sealed;
  return {
    step() {
      memory.permit(guard);
      const pass = memory.own[PLACE.told];
      let records = 0;
      while (wordsOf(block, records * recordWords, pass, records, recordWords) > 0) records++;
      sealed = { pass, records, hash: prefixHash(memory, records, bodyWords) };
      return DONE;
    },
    result: () => sealed,
  };
}

/** Computes the hash of the first records. */
export function rehash(memory, { records, bodyWords }) {
  return { step: () => DONE, result: () => prefixHash(memory, records, bodyWords) };
}

function prefixHash({ own }, records, bodyWords) {
  const count = records * (bodyWords + FRAME_WORDS);
  return hashWords(slotAt(own, PLACE.block), 0, count, NO_WORDS);
}

// --- an owner that empties its region ------------------------------------------------------------

/**
 * Polls a word of the owner's region until it is cleared, and then checks what must have happened before: the first word of the
 * row is cleared, and the permission is revoked.
 */
export function watcher(memory, { owner, row, guard }) {
  const into = new Int32Array(1);
  const one = Int32Array.of(1);
  const LOOK = 1;
  const ROW = 2;
  const WRITE = 3;
  let found;
  let isEmptied = false;
  let outcome;

  const post = (tag) => {
    if (tag === LOOK) memory.read(owner, PLACE.told, 1, into, 0, LOOK);
    else if (tag === ROW) memory.read(owner, row, 1, into, 0, ROW);
    else memory.write(owner, PLACE.answered, one, 0, 1, guard, WRITE);
  };
  const completed = () => {
    const { tag, outcome: its } = memory.completion;
    // The owner is not running and out of reach: try again.
    if (its === 'lost') post(tag);
    else if (tag === WRITE) outcome = its;
    else if (tag === ROW) found = into[0];
    else if (into[0] !== 0) post(LOOK);
    else isEmptied = true;
  };
  post(LOOK);
  return {
    step() {
      if (!memory.poll()) return 0;
      completed();
      if (outcome !== undefined) return DONE;
      if (isEmptied) {
        isEmptied = false;
        post(ROW);
        post(WRITE);
      }
      return 1;
    },
    result: () => ({ row: found, outcome }),
  };
}
