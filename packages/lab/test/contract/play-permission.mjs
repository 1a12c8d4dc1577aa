/**
 * Players that race for a permission, and players that read each other's words at the same moment.
 *
 * The check of permissions is exact. A writer writes increasing numbers, each under the latest guard that it knows, and records
 * for each guard the highest number that was `ok`. The owner records for each guard the number that it read after it had
 * permitted the next guard. The first number must never exceed the second.
 */
import { Random } from '../../dist/sim/random.js';
import { DONE, PLACE, Teller } from './play-common.mjs';

const OPEN = 0;
const FIRST_GUARD = 1;
const NO_MORE = -1;
/** The most polls for the counterpart before going on without it. */
const LOOKS_MAX = 500;
/** The most polls before an action, so that it happens at a random moment. */
const LINGER_MAX = 32;

// --- the race for a permission -------------------------------------------------------------------

/** Writes continuously, whether it is permitted or not. */
export function stubbornWriter(memory, { owner, words, rounds, outstandingMax }) {
  const { own } = memory;
  const block = new Int32Array(words);
  const oks = new Int32Array(rounds);
  let number = 0;
  let outstanding = 0;
  let refused = 0;

  const completed = () => {
    const { tag, guard, outcome } = memory.completion;
    outstanding--;
    if (outcome === 'ok') oks[guard - FIRST_GUARD] = tag;
    else refused++;
  };

  return {
    step() {
      while (memory.poll()) completed();
      const guard = own[PLACE.told];
      if (guard === NO_MORE) return outstanding === 0 ? DONE : 0;
      if (guard === 0 || outstanding >= outstandingMax) return 0;
      block.fill(++number);
      outstanding++;
      if (words === 1) memory.writeWord(owner, PLACE.block, number, guard, number);
      else memory.write(owner, PLACE.block, block, 0, words, guard, number);
      return 1;
    },
    result: () => ({ oks, refused }),
  };
}

/** Permits one guard after the other, and records what was written under the previous one. */
export function revoker(memory, { writer, words, rounds, looksMax = LOOKS_MAX, seed }) {
  const { own } = memory;
  const random = new Random(seed);
  const teller = new Teller(memory, writer, PLACE.told);
  const seals = new Int32Array(rounds);
  let round = 0;
  let before = 0;
  let looks = 0;
  let linger = 0;
  let raced = 0;

  const begin = () => {
    before = own[PLACE.block];
    looks = 0;
    linger = random.below(LINGER_MAX);
    teller.tell(FIRST_GUARD + round);
  };
  const seal = () => {
    let least = own[PLACE.block];
    for (let i = 1; i < words; i++) least = Math.min(least, own[PLACE.block + i]);
    return least;
  };
  const revoke = () => {
    memory.permit(FIRST_GUARD + round + 1);
    seals[round++] = seal();
  };

  memory.permit(FIRST_GUARD);
  begin();
  return {
    step() {
      while (memory.poll());
      // Do not wait forever for a writer that is not scheduled.
      if (own[PLACE.block] === before && ++looks < looksMax) return 1;
      if (linger-- > 0) return 1;
      if (looks < looksMax) raced++;
      revoke();
      if (round === rounds) {
        teller.tell(NO_MORE);
        return DONE;
      }
      begin();
      return 1;
    },
    result: () => ({ seals, raced }),
  };
}

// --- planted bugs --------------------------------------------------------------------------------

/** The bug that the contract warns of: it checks the permission, and then writes. */
export function checksFirst(memory, { permissionOf }) {
  return withVerdicts(memory, (peer, guard, write) => {
    const isPermitted = permissionOf(peer) === guard;
    write();
    return isPermitted;
  });
}

/** It writes and then checks, without a fence: the processor may check before the write is visible. */
export function unfenced(memory, { permissionPlainly }) {
  return withVerdicts(memory, (peer, guard, write) => {
    write();
    return permissionPlainly(peer) === guard;
  });
}

/** A memory whose outcomes are decided by `judge`. */
function withVerdicts(memory, judge) {
  const verdicts = [];
  const completion = { peer: 0, tag: 0, guard: 0, outcome: 'ok' };
  return {
    own: memory.own,
    completion,
    permit: (guard) => memory.permit(guard),
    writeWord(peer, to, value, guard, tag) {
      this.write(peer, to, Int32Array.of(value), 0, 1, guard, tag);
    },
    write(peer, to, source, from, count, guard, tag) {
      const isOk = judge(peer, guard, () => memory.write(peer, to, source, from, count, OPEN, 0));
      verdicts.push({ peer, tag, guard, outcome: isOk ? 'ok' : 'refused' });
    },
    poll() {
      while (memory.poll());
      if (verdicts.length === 0) return false;
      Object.assign(completion, verdicts.shift());
      return true;
    },
  };
}

// --- store mine, load yours ----------------------------------------------------------------------

/**
 * In each round both players write for the other and then read what the other has written. They must never both miss the other's
 * write. If it happens at all, it happens when both act at the same moment. So they wait for each other before each round, for a
 * limited time.
 *
 * @param act  acts in this round; returns what it saw (0: nothing), or undefined if that is not known yet
 */
function inRounds(memory, { peer, rounds, looksMax = LOOKS_MAX }, act) {
  const random = new Random(memory.self + 1);
  const teller = new Teller(memory, peer, PLACE.told);
  const seen = new Uint8Array(rounds);
  let round = 0;
  let looks = 0;
  let linger = 0;
  teller.tell(1);
  return {
    step() {
      const isTogether = memory.own[PLACE.told] > round;
      if (!isTogether && ++looks < looksMax) return 1;
      // Random delays, so that neither player is always first.
      if (linger-- > 0) return 1;
      const sight = act(round);
      if (sight === undefined) return 0;
      seen[round++] = sight;
      looks = 0;
      linger = random.below(LINGER_MAX);
      if (round === rounds) return DONE;
      teller.tell(round + 1);
      return 1;
    },
    result: () => seen,
  };
}

const MISSED = 0;
const SEEN = 1;
const REFUSED = 2;

/** Posts once and then waits for the completion. */
function posting(memory, post) {
  let isPosted = false;
  return (round) => {
    if (!isPosted) post(round);
    isPosted = true;
    while (memory.poll()) {
      if (memory.completion.tag === 0) continue;
      isPosted = false;
      return memory.completion.outcome;
    }
    return undefined;
  };
}

/** The owner permits the next guard and reads the writer's word; the writer writes under the previous guard. */
export function permitLitmus(memory, options) {
  const { peer, isOwner } = options;
  if (isOwner) {
    memory.permit(FIRST_GUARD);
    return inRounds(memory, options, (round) => {
      memory.permit(FIRST_GUARD + round + 1);
      return memory.own[PLACE.block + round] === 0 ? MISSED : SEEN;
    });
  }
  const one = Int32Array.of(1);
  const write = posting(memory, (round) =>
    memory.write(peer, PLACE.block + round, one, 0, 1, FIRST_GUARD + round, 1),
  );
  return inRounds(memory, options, (round) => {
    const outcome = write(round);
    // A refusal means that the writer saw the new permission.
    return outcome === undefined ? undefined : outcome === 'ok' ? MISSED : SEEN;
  });
}

/** Each writes to the other and, after completion, reads what the other has written. */
export function writeLitmus(memory, options) {
  const { peer, guard, waits } = options;
  const one = Int32Array.of(1);
  if (guard !== OPEN) memory.permit(guard);
  const look = (round) => (memory.own[PLACE.block + round] === 0 ? MISSED : SEEN);
  if (!waits) {
    return inRounds(memory, options, (round) => {
      memory.write(peer, PLACE.block + round, one, 0, 1, guard, 0);
      return look(round);
    });
  }
  const write = posting(memory, (round) =>
    memory.write(peer, PLACE.block + round, one, 0, 1, guard, 1),
  );
  return inRounds(memory, options, (round) => {
    const outcome = write(round);
    if (outcome === undefined) return undefined;
    return outcome === 'ok' ? look(round) : REFUSED;
  });
}

/** Each writes into its own region and then reads the other's. */
export function ownLitmus(memory, options) {
  const { peer } = options;
  const into = new Int32Array(1);
  const post = posting(memory, (round) => {
    memory.own[PLACE.block + round] = 1;
    memory.read(peer, PLACE.block + round, 1, into, 0, 1);
  });
  return inRounds(memory, options, (round) => {
    if (post(round) === undefined) return undefined;
    return into[0] === 0 ? MISSED : SEEN;
  });
}

/** Each posts to the same third participant a write, and then a read of what the other writes. */
export function thirdPartyLitmus(memory, options) {
  const { third, mine, yours, rounds } = options;
  const one = Int32Array.of(1);
  const into = new Int32Array(1);
  const post = posting(memory, (round) => {
    memory.write(third, PLACE.block + mine * rounds + round, one, 0, 1, OPEN, 0);
    memory.read(third, PLACE.block + yours * rounds + round, 1, into, 0, 1);
  });
  return inRounds(memory, options, (round) => {
    if (post(round) === undefined) return undefined;
    return into[0] === 0 ? MISSED : SEEN;
  });
}
