/**
 * A queue of jobs. Two workers cannot claim the same job, because claims are messages, and messages are ordered: the first claim
 * gets the job.
 *
 * A worker may die, so a claim expires. But a service must not read a clock: each replica would read another time. Time arrives
 * as messages too, `tick`, which all replicas deliver at the same place of their order. A slow worker may finish after its claim
 * has expired. So each claim has a number, and a result counts only with the number of the latest claim.
 */
export const TICKS_PER_CLAIM = 4;

/**
 * @typedef {{ what: 'add', job: string } | { what: 'claim' } | { what: 'tick' }
 *   | { what: 'done', job: string, claim: number } | { what: 'report' }} Command
 */

/** @typedef {{ job: string, claim: number, runsOutAt: number }} Claim */

let state = {
  ticks: 0,
  claims: 0,
  /** @type {string[]} */
  waiting: [],
  /** @type {Claim[]} */
  claimed: [],
  /** @type {string[]} */
  done: [],
};

/** @param {import('tram-multicast').Message} message */
export function deliver({ payload }) {
  return encode(execute(JSON.parse(new TextDecoder().decode(payload))));
}

/** @param {Command} command */
function execute(command) {
  switch (command.what) {
    case 'add':
      state.waiting.push(command.job);
      return {};
    case 'claim':
      return claimNext();
    case 'tick':
      return tick();
    case 'done':
      return { isAccepted: finish(command.job, command.claim) };
    case 'report':
      return { done: state.done.length, claims: state.claims };
  }
}

function claimNext() {
  const job = state.waiting.shift();
  if (job === undefined) return { isOver: state.claimed.length === 0 };
  const claim = ++state.claims;
  state.claimed.push({ job, claim, runsOutAt: state.ticks + TICKS_PER_CLAIM });
  return { job, claim };
}

function tick() {
  state.ticks++;
  const lost = state.claimed.filter(({ runsOutAt }) => runsOutAt <= state.ticks);
  state.claimed = state.claimed.filter((claim) => !lost.includes(claim));
  state.waiting.push(...lost.map(({ job }) => job));
  return { lost: lost.map(({ job }) => job) };
}

/**
 * @param {string} job
 * @param {number} claim
 */
function finish(job, claim) {
  const place = state.claimed.findIndex((held) => held.job === job && held.claim === claim);
  if (place < 0) return false;
  state.claimed.splice(place, 1);
  state.done.push(job);
  return true;
}

export function snapshot() {
  return encode(state);
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  state = JSON.parse(new TextDecoder().decode(snapshot));
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}
