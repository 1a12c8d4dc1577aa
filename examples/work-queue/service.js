/**
 * A queue of jobs. Two workers cannot claim the same job, because claims are messages, and messages are ordered: the first claim
 * gets the job.
 *
 * A worker may crash, so a claim expires. But a service must not read a clock: each replica would read another time. So the
 * service asks for ticks, which all replicas deliver at the same place in the order. A slow worker may finish after its claim
 * has expired. So each claim has a number, and a result counts only with the number of the latest claim.
 */
const CLAIM_MS = 1000;

/**
 * @typedef {{ what: 'add', job: string } | { what: 'claim' }
 *   | { what: 'done', job: string, claim: number } | { what: 'report' }} Command
 */

/** @typedef {{ job: string, claim: number, untilMs: number }} Claim */

let state = {
  claims: 0,
  /** @type {string[]} */
  waiting: [],
  /** @type {Claim[]} */
  claimed: [],
  /** Jobs whose claims have expired, once for each claim. @type {string[]} */
  lost: [],
  /** @type {string[]} */
  done: [],
};

/**
 * @param {import('tram-multicast').Message} message
 * @param {import('tram-multicast').ServiceContext} context
 */
export function deliver({ payload }, { nowMs }) {
  return encode(execute(JSON.parse(new TextDecoder().decode(payload)), nowMs));
}

/**
 * @param {Command} command
 * @param {number} nowMs
 */
function execute(command, nowMs) {
  switch (command.what) {
    case 'add':
      state.waiting.push(command.job);
      return {};
    case 'claim':
      return claimNext(nowMs);
    case 'done':
      return { isAccepted: finish(command.job, command.claim) };
    case 'report':
      return { lost: state.lost, claims: state.claims };
  }
}

/** @param {number} nowMs */
function claimNext(nowMs) {
  const job = state.waiting.shift();
  if (job === undefined) return { isOver: state.claimed.length === 0 };
  const claim = ++state.claims;
  state.claimed.push({ job, claim, untilMs: nowMs + CLAIM_MS });
  return { job, claim };
}

export const ticks = { everyMs: 50 };

/** @param {import('tram-multicast').ServiceContext} context */
export function tick({ nowMs }) {
  const lost = state.claimed.filter(({ untilMs }) => untilMs <= nowMs);
  if (lost.length === 0) return;
  state.claimed = state.claimed.filter((claim) => !lost.includes(claim));
  state.waiting.push(...lost.map(({ job }) => job));
  state.lost.push(...lost.map(({ job }) => job));
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
