/**
 * A child process of `arena-file.test.ts` and `lifelines.test.ts`: runs the job that the command line names, with the path of
 * an arena and numbers, and sends messages to its parent.
 *
 * Runs the built JavaScript: Node 20 cannot run TypeScript.
 */
import { closeSync, existsSync, openSync, unlinkSync } from 'node:fs';
import Module from 'node:module';
import {
  createArenaFile,
  openArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { isCut } from 'tram-multicast/internal/memory/processes/lifelines.js';
import { native } from 'tram-multicast/internal/memory/processes/native.js';

const LINE_WORDS = 16;
const SPINS_MAX = 500;
const ROUNDS_TOGETHER = 1000;

const jobs = {
  /** Holds a host's lock until killed. */
  async hold(path, host) {
    openArenaFile(path).lockHost(host, 0);
    await tell('locked');
    await new Promise(() => setInterval(() => undefined, 1000));
  },

  /** Holds a lifeline until killed or told to end. */
  async lifeline(path, lifeline) {
    const arena = openArenaFile(path);
    await tell(arena.holdLifeline(lifeline) ? 'held' : 'there is none');
    await new Promise((resolve) => process.once('message', resolve));
    arena.close();
  },

  /** Sleeps on a word and on a lifeline of another process, and tells each change of the lifeline and when it saw it. */
  async watch(path, parked, lifeline) {
    const arena = openArenaFile(path);
    const lifelines = arena.watchLifelines([lifeline], parked);
    lifelines.haveChanged();
    await tell('watches');
    for (;;) {
      lifelines.parking.wait(parked, 0, Number.POSITIVE_INFINITY);
      const atMs = Number(process.hrtime.bigint()) / 1e6;
      if (Atomics.load(arena.words, parked) !== 0) return tell('woken');
      if (lifelines.haveChanged()) await tell({ isCut: isCut(arena.words, lifeline), atMs });
    }
  },

  /** Sleeps while a word is 0, without a time limit; counts the wake-ups in another word. */
  async sleep(path, at, wakes) {
    const { words, parking } = openArenaFile(path);
    await tell('going to sleep');
    while (Atomics.load(words, at) === 0) {
      parking.wait(at, 0, Number.POSITIVE_INFINITY);
      Atomics.add(words, wakes, 1);
    }
    await tell('awake');
  },

  /** Adds 1 to a word, many times. */
  async add(path, at, times) {
    const { words } = openArenaFile(path);
    for (let time = 0; time < times; time++) Atomics.add(words, at, 1);
    await tell('done');
  },

  /**
   * Stores a word and loads that of the other process, at another place in each round; records where the other's was missing.
   * Both must never be missing. That is likely only if both act at the same moment, so they wait for each other: briefly before
   * each round, and without a limit from time to time.
   */
  async litmus(path, isAtomic, rounds, mine, yours) {
    const { words } = openArenaFile(path);
    const step = isAtomic === 1 ? atomicStep : plainStep;
    for (let round = 0; round < rounds; round++) {
      Atomics.store(words, mine, round + 1);
      if (round % ROUNDS_TOGETHER === 0) waitFor(words, yours, round + 1);
      else spin(words, yours, round + 1);
      const stored = LINE_WORDS + round;
      if (step(words, mine + stored, yours + stored) === 0) words[mine + stored + rounds] = 1;
    }
    await tell('done');
  },

  /** In a /dev/shm that is too small. */
  async noSpace(path, words) {
    await tell({ outcome: outcome(() => createArenaFile(path, words)), left: existsSync(path) });
    // As if other processes had taken the space just after the check.
    const descriptor = openSync(path, 'w+');
    await tell({ errno: native().reserve(descriptor, 0, words * 4) });
    closeSync(descriptor);
    unlinkSync(path);
  },

  async withoutKoffi(path, words) {
    const resolve = Module._resolveFilename;
    Module._resolveFilename = (request, ...rest) =>
      resolve(request === 'koffi' ? 'no-such-package' : request, ...rest);
    await tell({ outcome: outcome(() => createArenaFile(path, words)), left: existsSync(path) });
  },
};

function atomicStep(words, mine, yours) {
  Atomics.store(words, mine, 1);
  return Atomics.load(words, yours);
}

function plainStep(words, mine, yours) {
  words[mine] = 1;
  return words[yours];
}

function waitFor(words, at, value) {
  while (!spin(words, at, value)) native().yieldProcessor();
}

/** @returns whether the word has reached the value within a few microseconds */
function spin(words, at, value) {
  for (let spins = 0; spins < SPINS_MAX; spins++) {
    if (Atomics.load(words, at) >= value) return true;
  }
  return false;
}

function outcome(action) {
  try {
    action();
    return { code: 'none' };
  } catch ({ code, message, hint }) {
    return { code, message, hint };
  }
}

/** Resolves once the message is sent: the next action may block forever. */
function tell(message) {
  return new Promise((resolve) => process.send(message, resolve));
}

const [job, path, ...numbers] = process.argv.slice(2);
await jobs[job](path, ...numbers.map(Number));
process.disconnect();
