/**
 * The players of the contract suite: what two or three participants do to each other's memory. A player works on any memory,
 * does a little with every step, and never waits. So the same player runs in a tight loop in a thread or a process
 * (`counterpart.mjs`), and step by step on a simulated memory (`stage-simulated.ts`).
 *
 * Plain JavaScript over the built dist/: Node 20 cannot run TypeScript.
 */
import { DONE } from './play-common.mjs';
import * as incarnations from './play-incarnations.mjs';
import * as loss from './play-loss.mjs';
import * as order from './play-order.mjs';
import * as parking from './play-parking.mjs';
import * as permission from './play-permission.mjs';
import * as records from './play-records.mjs';

export { DONE };

const players = { ...order, ...records, ...incarnations, ...loss, ...permission, ...parking };

/**
 * @param options  for the player; `planted` names a bug of its memory
 * @param context  `permissionOf`, `permissionPlainly` and, for real memories, `arena` and `map`
 */
export function newPlayer(name, memory, options, context) {
  const { planted } = options;
  const its = planted === undefined ? memory : players[planted](memory, context);
  return players[name](its, options, context);
}

/** A memory that executes single actions on demand. */
export function newPuppet(memory) {
  let fetched = new Int32Array(0);
  return {
    permit: (guard) => memory.permit(guard),
    permitted: () => memory.permitted(),
    write: (peer, to, values, guard, tag) =>
      memory.write(peer, to, Int32Array.from(values), 0, values.length, guard, tag),
    /** Writes of one word each, at the same place: 1, 2, 3 … */
    writeMany(peer, to, count) {
      const word = new Int32Array(1);
      for (let tag = 1; tag <= count; tag++) {
        word[0] = tag;
        memory.write(peer, to, word, 0, 1, 0, tag);
      }
    },
    /** Writes from an array that changes right after. */
    writeAndForget(peer, to, values, from, count, tag) {
      const source = Int32Array.from(values);
      memory.write(peer, to, source, from, count, 0, tag);
      source.fill(-1);
    },
    read(peer, at, count, tag) {
      fetched = new Int32Array(count);
      memory.read(peer, at, count, fetched, 0, tag);
    },
    fetched: () => [...fetched],
    completions() {
      const list = [];
      while (memory.poll()) list.push({ ...memory.completion });
      return list;
    },
    own: (at, count) => [...memory.own.subarray(at, at + count)],
    setOwn: (at, value) => {
      memory.own[at] = value;
    },
    ownWords: () => memory.own.length,
    isEmpty: () => memory.own.every((word) => word === 0),
    scratch: (words) => [...memory.scratch(words).fill(7)],
    freshScratch: (words) => [...memory.scratch(words)],
    wake: (peer, urgent) => memory.wake(peer, urgent),
    hasEnded: (peer) => memory.hasEnded(peer),
  };
}
