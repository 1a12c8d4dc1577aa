/** A host that sleeps whenever it can, and participants that wake it. */

import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { Duty } from 'tram-multicast/internal/hosting/duty.js';
import { HOST, PARKED } from 'tram-multicast/internal/memory/arena.js';
import { wakeParked } from 'tram-multicast/internal/memory/shared.js';
import { Random } from '../../dist/sim/random.js';
import { DONE, PLACE, Teller } from './play-common.mjs';

/** Longer than the time limit of the suite: a host that sleeps this long was never woken. */
const NEVER_US = 300e6;
/** How long the host spins before it sleeps, in every second round; a waker rests about as long. */
const SPIN_US = 3;
const REST_STEPS_MAX = 1500;
const PATIENCE_STEPS = 20_000;
/** Far longer than a waker ever rests. */
const OVERSLEPT_US = 5000;
const LINE_WORDS = 16;

/**
 * Answers every waker's number with the same number, and sleeps in between without a time limit. It runs in one step: the duty
 * cycle is the loop.
 */
export function sleeper(memory, { wakers, rounds, sleepUs = NEVER_US }, { arena, map }) {
  const host = map.hostOf(memory.self);
  const answers = wakers.map((peer) => new Teller(memory, peer, PLACE.answered));
  const answered = new Int32Array(wakers.length);
  let sleeps = 0;
  let overslept = 0;
  let runs = 0;
  let left = wakers.length;

  const agent = {
    doWork() {
      memory.own[PLACE.block] = ++runs;
      let work = 0;
      for (let i = 0; i < wakers.length; i++) {
        const asked = memory.own[PLACE.told + i * LINE_WORDS];
        if (asked === answered[i]) continue;
        answered[i] = asked;
        if (asked === rounds) left--;
        answers[i].tell(asked);
        // Odd numbers count as work, even ones do not: the host spins for a while, or sleeps at once.
        work += asked & 1;
      }
      return work;
    },
  };
  const others = map.participantsOf(host).slice(1);
  const agents = [agent, ...others.map(() => ({ doWork: () => 0 }))];
  const ready = map.readyOf(host);
  const counted = {
    words: arena.words,
    parking: {
      wait(at, expected, timeoutUs) {
        sleeps++;
        const fromUs = nowUs();
        arena.parking.wait(at, expected, timeoutUs);
        const hasSlept = nowUs() - fromUs >= timeoutUs && timeoutUs > OVERSLEPT_US;
        if (hasSlept && Atomics.load(arena.words, ready) !== 0) overslept++;
      },
    },
  };
  const at = {
    parked: map.host(host) + HOST.parked,
    ready,
    readyLater: map.readyLaterOf(host),
    allParked: map.allParked,
  };
  const pacing = {
    heartbeatUs: sleepUs,
    quietHeartbeatUs: sleepUs,
    laterUs: sleepUs,
    spinUs: SPIN_US,
    cores: Number.POSITIVE_INFINITY,
    relax: () => undefined,
  };
  const clock = () => (left === 0 ? Number.POSITIVE_INFINITY : nowUs());
  const duty = new Duty(counted, at, agents, pacing, clock);

  return {
    step() {
      duty.run(NEVER_US);
      return DONE;
    },
    result: () => ({ sleeps, overslept }),
  };
}

/**
 * Writes a number, wakes the host, waits for the answer, and repeats after a random time: while the host spins, as it goes to
 * sleep, or when it sleeps.
 */
export function waker(memory, { sleeper: peer, place, rounds, seed }) {
  const random = new Random(seed);
  const teller = new Teller(memory, peer, PLACE.told + place * LINE_WORDS);
  let number = 0;
  let rest = 0;
  let waited = 0;
  return {
    step() {
      // Keep the core for a while, to be running when the host goes to sleep on the other core.
      if (memory.own[PLACE.answered] !== number) return ++waited < PATIENCE_STEPS ? 1 : 0;
      waited = 0;
      if (number === rounds) {
        // The host has answered, and may sleep again before it knows that this was the last round.
        memory.wake(peer, true);
        return DONE;
      }
      if (rest-- > 0) return 1;
      rest = random.below(REST_STEPS_MAX);
      teller.tell(++number);
      memory.wake(peer, true);
      return 1;
    },
    result: () => ({}),
  };
}

const DELAY_POLLS = 50_000;

/**
 * A planted bug: it checks whether the host sleeps before it marks the work as ready. In between it delays, so that a host that
 * was about to sleep does so.
 */
export function wakesCarelessly(memory, { arena, map }) {
  const { words } = arena;
  return {
    own: memory.own,
    write: (...args) => memory.write(...args),
    wake(peer) {
      const parked = map.host(map.hostOf(peer)) + HOST.parked;
      const isParked = Atomics.load(words, parked) === PARKED.parked;
      for (let i = 0; i < DELAY_POLLS && Atomics.load(words, parked) !== PARKED.parked; i++);
      Atomics.store(words, map.ready(peer), 1);
      if (isParked) wakeParked(arena.words, arena.parking, parked);
    },
  };
}
