/**
 * Litmus tests between two threads: `node races.mjs [ROUNDS]` prints, for each race, how many violations a reader saw in
 * so many rounds. It needs no test runner, so it runs in an emulator as well.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import {
  copyHashed,
  copyPart,
  hashWords,
  NO_WORDS,
  slotAt,
} from '../../../tram/dist/memory/record.js';
import { readFence } from '../../../tram/dist/memory/shared.js';
import { acquires, DATA_BYTES, FLAG_BYTES, fences, plain, publishes } from './loads.mjs';

const FLAG = FLAG_BYTES / 4;
const DATA = DATA_BYTES / 4;
/** Set by the reader when it has seen enough. */
const STOP = 0;
/** A count that is stored before the block is overwritten. */
const START = 16;
const BLOCK = 1024;
const BLOCK_WORDS = 200;
const SOURCE = 4096;
const WORDS = 8192;
const ROUNDS_PER_LOOK = 64;
/** So often a reader must have seen a word change: otherwise nothing has raced. */
const CHANGES_MIN = 100;

/** Repeat until the reader stops us. */
function repeat(words, step) {
  for (let k = 1; Atomics.load(words, STOP) === 0; ) {
    for (let i = 0; i < ROUNDS_PER_LOOK; i++, k++) step(k);
  }
}

/** All words of the block become 0 or all become -1, by a copy from and to these places. */
function copies(copy, from, to, count) {
  return {
    write: (words) =>
      repeat(words, (k) => {
        words.fill(-(k & 1), SOURCE, SOURCE + BLOCK_WORDS + 2);
        copy(words, SOURCE + from, words, BLOCK + to, count);
      }),
    // Both ends, where engines copy byte by byte, and the middle.
    read: (words) =>
      isTorn(words[BLOCK + to]) ||
      isTorn(words[BLOCK + to + (count >> 1)]) ||
      isTorn(words[BLOCK + to + count - 1]),
  };
}

/** The words of the block become 0 or -1 one by one, and the reader copies them. */
function reads(copy, from, to, count) {
  const target = new Int32Array(BLOCK_WORDS + 2);
  return {
    write: (words) =>
      repeat(words, (k) => {
        for (let i = 0; i < BLOCK_WORDS + 2; i++) words[BLOCK + i] = -(k & 1);
      }),
    read: (words) => {
      copy(words, BLOCK + from, target, to, count);
      return target.some(isTorn);
    },
  };
}

/** The words of the block change one by one, and the reader copies and hashes them: the hash must be that of its copy. */
function hashes(copy) {
  const target = slotAt(new Int32Array(BLOCK_WORDS), 0);
  return {
    write: (words) =>
      repeat(words, (k) => {
        for (let i = 0; i < BLOCK_WORDS; i++) words[BLOCK + i] = k + i;
      }),
    read: (words) =>
      copy(slotAt(words, BLOCK), 0, target, 0, BLOCK_WORDS) !==
      hashWords(target, 0, BLOCK_WORDS, NO_WORDS),
  };
}

/** Loads each word twice. */
function copyAndHash(from, fromPosition, to, toPosition, count) {
  let hash = NO_WORDS;
  for (let i = 0; i < count; i++) {
    copyPart(from.words, from.at + fromPosition + i, to.words, to.at + toPosition + i, 1);
    hash = hashWords(from, fromPosition + i, 1, hash);
  }
  return hash;
}

function isTorn(value) {
  return value !== 0 && value !== -1;
}

function engine(from, fromAt, to, toAt, count) {
  to.set(from.subarray(fromAt, fromAt + count), toAt);
}

const messages = (read) => ({ write: (words) => repeat(words, (k) => publishes(words, -k)), read });

/** A copy that is checked afterwards: the writer announces that it overwrites the block before it does. */
const overwrites = {
  write: (words) => {
    const source = new Int32Array(BLOCK_WORDS);
    repeat(words, (k) => {
      Atomics.store(words, START, k);
      Atomics.load(words, START);
      copyPart(source.fill(k), 0, words, BLOCK, BLOCK_WORDS);
      for (let i = 0; i < 100; i++) Atomics.load(words, START);
    });
  },
  copy: new Int32Array(BLOCK_WORDS),
  read: (words) => {
    const { copy } = overwrites;
    const before = Atomics.load(words, START);
    copyPart(words, BLOCK, copy, 0, BLOCK_WORDS);
    readFence();
    if (words[START] !== before) return false;
    for (let i = 0; i < BLOCK_WORDS; i++) if (copy[i] > before) return true;
    return false;
  },
};

const RACES = {
  'a word that is loaded by Atomics': messages(acquires),
  'a word before a fence': messages(fences),
  'a copy that is checked after a fence': overwrites,
  'a copy that starts at a pair of words': copies(copyPart, 0, 0, BLOCK_WORDS),
  'a copy of an odd number of words': copies(copyPart, 0, 0, BLOCK_WORDS - 1),
  'a copy from an odd word to an odd word': copies(copyPart, 1, 1, BLOCK_WORDS),
  'a copy from an odd word to an even one': copies(copyPart, 1, 0, BLOCK_WORDS),
  'a copy to private memory': reads(copyPart, 0, 0, BLOCK_WORDS),
  'a copy to private memory, from an odd word': reads(copyPart, 1, 0, BLOCK_WORDS - 1),
  'the hash of a copy': hashes(copyHashed),
  'control: two plain loads': messages(plain),
  "control: the engine's copy of an odd number of words": copies(engine, 0, 0, BLOCK_WORDS - 1),
  "control: the engine's copy from an odd word": copies(engine, 1, 0, BLOCK_WORDS),
  'control: words that are loaded again for the hash': hashes(copyAndHash),
};

/** The words of which the reader watches one to know that the writer runs. */
const CHANGING = [FLAG, DATA, START, BLOCK + 1];

/** So many rounds of the reader, and more until the writer has run beside it. */
async function race(name, rounds) {
  const words = new Int32Array(new SharedArrayBuffer(WORDS * 4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { words, name } });
  const ended = new Promise((resolve, reject) =>
    worker.once('exit', resolve).once('error', reject),
  );
  const { read } = RACES[name];
  const last = new Int32Array(CHANGING.length);
  let changes = 0;
  let violations = 0;
  for (let round = 0; round < rounds || changes < CHANGES_MIN; round += ROUNDS_PER_LOOK) {
    for (let i = 0; i < ROUNDS_PER_LOOK; i++) if (read(words)) violations++;
    for (let i = 0; i < CHANGING.length; i++) {
      const value = Atomics.load(words, CHANGING[i]);
      if (value === last[i]) continue;
      last[i] = value;
      changes++;
    }
    // A worker needs this thread's event loop to start.
    if (changes === 0) await new Promise(setImmediate);
  }
  Atomics.store(words, STOP, 1);
  await ended;
  return violations;
}

if (isMainThread) {
  const rounds = Number(process.argv[2] ?? 1_000_000);
  const violations = {};
  for (const name of Object.keys(RACES)) violations[name] = await race(name, rounds);
  console.log(JSON.stringify(violations, undefined, 2));
} else {
  RACES[workerData.name].write(workerData.words);
}
