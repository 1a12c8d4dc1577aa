/** Players that write blocks of words, and players that read them meanwhile. */
import { Random } from '../../dist/sim/random.js';
import { Complaints, DONE, OUTSTANDING_MAX, PLACE } from './play-common.mjs';

const OPEN = 0;
const ALL_BITS = -1;

/** Writes a block, then words of all ones or all zeros beside it, then a word that announces both; and reads that word. */
export function orderWriter(memory, { peers, words, rounds, seed }) {
  const random = new Random(seed);
  const complaints = new Complaints();
  const block = new Int32Array(words);
  const told = new Int32Array(1);
  const posted = new Map(peers.map((peer) => [peer, []]));
  const last = new Map(peers.map((peer) => [peer, 0]));
  let tag = 0;
  let outstanding = 0;
  let left = rounds * peers.length;

  const post = (peer, action, expected) => {
    posted.get(peer).push({ tag: ++tag, expected });
    outstanding++;
    action(tag);
  };
  const write = (peer, to, source, count) =>
    post(peer, (its) => memory.write(peer, to, source, 0, count, OPEN, its));

  const round = (peer) => {
    const number = last.get(peer) + 1;
    last.set(peer, number);
    write(peer, PLACE.block, block.fill(number), words);
    write(peer, PLACE.block + words, block.fill(number % 2 === 0 ? 0 : ALL_BITS), words);
    told[0] = number;
    write(peer, PLACE.told, told, 1);
    if (random.below(4) > 0) return;
    const into = new Int32Array(3);
    post(peer, (its) => memory.read(peer, PLACE.told, 1, into, 1, its), { into, number });
  };

  const completed = () => {
    const { peer, tag: its, outcome } = memory.completion;
    const next = posted.get(peer).shift();
    outstanding--;
    if (its !== next.tag) complaints.add(`to ${peer}: ${its} completed, not ${next.tag}`);
    if (outcome !== 'ok') complaints.add(`to ${peer}: ${its} was ${outcome}`);
    if (next.expected === undefined) return;
    const { into, number } = next.expected;
    if (into.join() !== `0,${number},0`) complaints.add(`read ${into}, not ${number}`);
  };

  return {
    step() {
      while (memory.poll()) completed();
      if (left === 0) return outstanding === 0 ? DONE : 0;
      if (outstanding > OUTSTANDING_MAX) return 0;
      const behind = peers.filter((peer) => last.get(peer) < rounds);
      round(random.pick(behind));
      left--;
      return 1;
    },
    result: () => ({ wrong: complaints.list }),
  };
}

/** A reader that has seen the last word sees everything that was posted before it. */
export function orderReader(memory, { words, rounds }) {
  const { own } = memory;
  const complaints = new Complaints();
  let halfWay = 0;
  return {
    step() {
      const told = own[PLACE.told];
      memory.readFence();
      let least = own[PLACE.block];
      let most = least;
      for (let at = PLACE.block; at < PLACE.block + words; at++) {
        const value = own[at];
        if (value < least) least = value;
        if (value > most) most = value;
        const stripe = own[at + words];
        if (stripe !== 0 && stripe !== ALL_BITS) complaints.add(`a word was torn: ${stripe}`);
      }
      memory.readFence();
      const after = own[PLACE.told];
      if (least < told) complaints.add(`found ${least} where ${told} was posted`);
      if (most > after + 1) complaints.add(`found ${most} before ${after} was announced`);
      if (least < most) halfWay++;
      return after === rounds ? DONE : 1;
    },
    result: () => ({ wrong: complaints.list, halfWay }),
  };
}

/** Writes blocks of equal words, one write each. */
export function blockWriter(memory, { reader, words, rounds, guard }) {
  const block = new Int32Array(words);
  let number = 0;
  return {
    step() {
      block.fill(++number);
      memory.write(reader, PLACE.block, block, 0, words, guard, number);
      while (memory.poll());
      return number === rounds ? DONE : 1;
    },
    result: () => ({}),
  };
}

/** A reader that has seen the first word of a write sees all of it. */
export function headReader(memory, { words, rounds }) {
  const { own } = memory;
  const complaints = new Complaints();
  return {
    step() {
      const head = own[PLACE.block];
      memory.readFence();
      for (let at = PLACE.block + 1; at < PLACE.block + words; at++) {
        const value = own[at];
        if (value < head)
          complaints.add(`${value} at ${at - PLACE.block} behind a head of ${head}`);
      }
      return head === rounds ? DONE : 1;
    },
    result: () => ({ wrong: complaints.list }),
  };
}

/** Announces itself and then does not poll for a while: meanwhile no write lands at its host. */
export function absentee(memory, { ms }) {
  const never = new Int32Array(new SharedArrayBuffer(4));
  return {
    step() {
      memory.own[PLACE.told] = 1;
      Atomics.wait(never, 0, 0, ms);
      return DONE;
    },
    result: () => ({}),
  };
}
