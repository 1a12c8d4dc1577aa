/** Players whose peer ends and comes back: what they post meanwhile is lost. */
import { Random } from '../../dist/sim/random.js';
import { Complaints, DONE, PLACE } from './play-common.mjs';

const OPEN = 0;
const OUTSTANDING_MAX = 64;
/** The most steps without polling for completions. */
const DOZE_STEPS_MAX = 3000;

/**
 * Writes 1, 2, 3 … each to the next word, with reads in between, and sometimes does not poll for a while. It writes lost numbers
 * again, in order, once everything that was posted has completed. So there is never a gap.
 */
export function gapWriter(memory, { owner, rounds, seed }) {
  const random = new Random(seed);
  const complaints = new Complaints();
  const one = new Int32Array(1);
  const into = new Int32Array(1);
  /** Posted and not completed: a tag, and the number that is written, or 0 for a read. */
  const posted = [];
  let tag = 0;
  let next = 1;
  let confirmed = 0;
  let lossesMax = 0;
  let losses = 0;
  let doze = 0;

  const post = () => {
    const isRead = random.below(5) === 0;
    posted.push({ tag: ++tag, number: isRead ? 0 : next });
    if (isRead) {
      memory.read(owner, PLACE.block + 1, 1, into, 0, tag);
      return;
    }
    one[0] = next;
    memory.write(owner, PLACE.block + next, one, 0, 1, OPEN, tag);
    next++;
  };

  const completed = () => {
    const { tag: its, outcome } = memory.completion;
    const first = posted.shift();
    if (first?.tag !== its) complaints.add(`${its} completed, not ${first?.tag}`);
    if (outcome === 'lost') losses++;
    else if (losses > 0) complaints.add(`${its} was ${outcome} behind a loss`);
    else if (first.number > 0) confirmed = first.number;
  };

  const takeStock = () => {
    while (memory.poll()) completed();
    if (losses === 0 || posted.length > 0) return;
    lossesMax = Math.max(lossesMax, losses);
    losses = 0;
    next = confirmed + 1;
  };

  return {
    step() {
      if (doze-- <= 0) {
        takeStock();
        if (confirmed === rounds) return DONE;
        if (random.below(10) === 0) doze = random.below(DOZE_STEPS_MAX);
      }
      if (losses > 0 || next > rounds || posted.length >= OUTSTANDING_MAX) return 0;
      post();
      return 1;
    },
    result: () => ({ wrong: complaints.list, lossesMax }),
  };
}

/** Checks that no word is written after a missing one. */
export function gapReader(memory, { rounds }) {
  const { own } = memory;
  const complaints = new Complaints();
  let seen = 0;
  return {
    step() {
      // From right to left, because words land from left to right meanwhile.
      const least = Math.min(rounds, seen + OUTSTANDING_MAX);
      let end = seen;
      for (let number = least; number > seen; number--) {
        const word = own[PLACE.block + number];
        if (word !== 0 && word !== number) complaints.add(`found ${word} at ${number}`);
        if (word !== 0 && end === seen) end = number;
        if (word === 0 && end > seen) complaints.add(`${end} is there, and ${number} is not`);
      }
      const did = end - seen;
      seen = end;
      return seen === rounds ? DONE : did;
    },
    result: () => ({ wrong: complaints.list }),
  };
}
