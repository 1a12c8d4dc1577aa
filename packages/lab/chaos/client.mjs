/**
 * A client of a chaos or soak run, in a process of its own: `node client.mjs ADDRESS SETTINGS`. Started by `clients.mjs`.
 *
 * It multicasts transfers, audits and messages whose replies are deferred, until its parent tells it to stop. It gives up
 * some of those that wait, waits until all others are answered, and reports totals. With `fingerprints` it only waits until
 * no message waits any more, and asks every replica to write a fingerprint of its state. A run may kill or stop the process
 * at any time, so it writes each acknowledged message to its records at once, and each one that it gives up.
 */
import { setMaxListeners } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import { Client } from 'tram-multicast';
import { endWithParent } from '../dist/bench/load/end-with-parent.js';
import { Random } from '../dist/sim/random.js';
import { ACCOUNTS, START_BALANCE } from './bank.mjs';
import { nowUs } from './processes.mjs';

/**
 * @typedef {object} ClientSettings
 * @property {string} name     unique in the run
 * @property {number} seed
 * @property {number} groups
 * @property {number} window   messages in flight
 * @property {number} rate     messages a second on average; 0 for as many as possible
 * @property {string} [records]  the file for acknowledged messages
 * @property {string} [givenUp]  the file for messages that were given up
 * @property {WaitSettings} [waits]  without it, no reply is deferred
 * @property {boolean} [fewGroups]  send most messages to one or two groups only
 * @property {string} [fingerprints]  the directory for fingerprints; the client does nothing else then
 */

/**
 * @typedef {object} WaitSettings
 * @property {number} percent  of the messages are to wait
 * @property {number | null} patienceMs  after which groups answer even those that wait for nothing; `null` for never
 */

/**
 * A line of the records.
 * @typedef {object} Acknowledged
 * @property {string} id
 * @property {string} nonce
 * @property {readonly number[]} groups
 * @property {number} sentUs
 * @property {number} answeredUs
 * @property {number} answeredMs  by the wall clock
 * @property {readonly GroupReply[]} replies
 * @property {readonly import('./turnstile.mjs').Wait[]} [waits]  which groups were to defer their replies
 * @property {number} [total]  the sum that an audit found
 */

/** @typedef {import('./turnstile.mjs').Moment & { group: number, released?: import('./turnstile.mjs').Release }} GroupReply */

/**
 * A message that the client gave up, by `timeoutMs` or a signal.
 * @typedef {object} GivenUp
 * @property {string} nonce
 * @property {string} code  of the error
 */

const BURST_MS = { least: 5, most: 200 };
const AUDIT_PERCENT = 10;
const FEW_PERCENT = 90;
/** How many groups defer their replies to a message that waits, for how many messages, for how long. */
const WAIT_GROUPS_MOST = 3;
const WAIT_MESSAGES = { least: 1, most: 60 };
const WAIT_MS = { least: 1, most: 300 };
/** Of those that wait, some are given up: before or after their groups have replied, and a few can't be answered at all. */
const GIVE_UP_PERCENT = 40;
const ENDLESS_PERCENT = 50;
const GIVE_UP_MS = { least: 1, most: 200 };
/** Longer, so that some wait whenever a client is killed. */
const GIVE_UP_ENDLESS_MS = { least: 1, most: 2000 };
const GIVEN_UP = new Set(['TRAM_OUTCOME_UNKNOWN', 'TRAM_TIMEOUT', 'TRAM_ABORTED']);
const PATIENT = { timeoutMs: Infinity };
const CONNECT_MS = 60_000;
const RETRY_MS = 200;
const TRANSIENT = new Set(['TRAM_UNREACHABLE', 'TRAM_NO_CLIENT_SLOT']);

/** @type {ClientSettings} */
const settings = JSON.parse(process.argv[3]);
const { groups, rate } = settings;
const allGroups = [...Array(groups).keys()];
const rightTotal = groups * ACCOUNTS * START_BALANCE;
const random = new Random(settings.seed);
const records = settings.records === undefined ? undefined : openSync(settings.records, 'wx');
const givenUpRecords =
  settings.givenUp === undefined ? undefined : openSync(settings.givenUp, 'wx');
/** Gives up all messages that are to be given up. */
const stop = new AbortController();
setMaxListeners(0, stop.signal);
const client = await connect(process.argv[2]);

let isStopping = false;
let sent = 0;
let answered = 0;
let givenUp = 0;
let audits = 0;
let wrongAudits = 0;
let tokens = 0;
/** @type {(() => void)[]} */
const waiting = [];

process.on('message', () => {
  isStopping = true;
  stop.abort();
  release(waiting.length);
});
endWithParent();
process.send?.({ what: 'connected', name: client.name });

if (settings.fingerprints !== undefined) {
  await untilNothingWaits();
  await send(allGroups, { what: 'fingerprint', directory: settings.fingerprints });
} else {
  if (rate > 0) refill();
  await Promise.all(Array.from({ length: settings.window }, work));
}
await client.close();
process.send?.({ what: 'done', sent, answered, givenUp, audits, wrongAudits }, () => undefined);

/**
 * Retries: a cluster across machines may be unreachable for a while, and a host that lost its memory grants no slots for
 * ten seconds. @param {string} address
 */
async function connect(address) {
  const deadlineMs = Date.now() + CONNECT_MS;
  for (;;) {
    try {
      return await Client.connect(address);
    } catch (error) {
      const isTransient = TRANSIENT.has(/** @type {any} */ (error)?.code);
      if (!isTransient || Date.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

async function work() {
  for (;;) {
    await turn();
    if (isStopping) return;
    if (random.percent(AUDIT_PERCENT)) await audit();
    else if (settings.waits && random.percent(settings.waits.percent)) await wait(settings.waits);
    else await transfer();
  }
}

/** Resolves when the rate limit permits another message. */
async function turn() {
  if (rate === 0 || isStopping) return;
  if (tokens > 0) tokens--;
  else await new Promise((resolve) => waiting.push(() => resolve(undefined)));
}

/** Grants tokens in bursts, so that rings are sometimes full and replicas sometimes idle. */
function refill() {
  const burstMs = random.between(BURST_MS.least, BURST_MS.most);
  setTimeout(() => {
    if (isStopping) return;
    release(Math.max(1, Math.round((rate * burstMs) / 1000)));
    refill();
  }, burstMs);
}

/** @param {number} count */
function release(count) {
  const released = waiting.splice(0, count);
  // Unused tokens expire: a client that was delayed does not catch up.
  tokens = count - released.length;
  for (const go of released) go();
}

/** Moves amounts that sum to zero between accounts, of several groups or of one. */
async function transfer() {
  const destinations = drawGroups();
  const places = destinations.length > 1 ? destinations : [destinations[0], destinations[0]];
  const amounts = places.slice(1).map(() => random.between(-50, 50));
  amounts.push(-amounts.reduce((sum, amount) => sum + amount, 0));
  const moves = places.map((group, place) => [group, random.below(ACCOUNTS), amounts[place]]);
  await send(destinations, { what: 'transfer', moves });
}

async function audit() {
  await send(allGroups, { what: 'audit' });
}

/** Sends a message for which some groups, or all, defer their replies. @param {WaitSettings} settings */
async function wait({ patienceMs }) {
  const destinations = drawGroups().slice(0, WAIT_GROUPS_MOST);
  const isGivenUp = random.percent(GIVE_UP_PERCENT);
  const isEndless = isGivenUp && random.percent(ENDLESS_PERCENT);
  const waits = destinations.slice(0, random.between(1, destinations.length)).map((group) => {
    const messages = random.between(WAIT_MESSAGES.least, WAIT_MESSAGES.most);
    const ms = random.between(WAIT_MS.least, WAIT_MS.most);
    return isEndless ? [group, null, patienceMs] : [group, messages, ms];
  });
  const limit = isEndless ? GIVE_UP_ENDLESS_MS : GIVE_UP_MS;
  await send(destinations, { what: 'wait', waits }, isGivenUp ? drawLimit(limit) : PATIENT);
}

/** @param {{ least: number, most: number }} range @returns {import('tram-multicast').MulticastOptions} */
function drawLimit({ least, most }) {
  const ms = random.between(least, most);
  return random.percent(50)
    ? { timeoutMs: ms, signal: stop.signal }
    : { timeoutMs: Infinity, signal: AbortSignal.any([stop.signal, AbortSignal.timeout(ms)]) };
}

/** Groups abandon the messages of clients that have ended, or answer them in time. */
async function untilNothingWaits() {
  for (;;) {
    const replies = await send(allGroups, { what: 'waiting' });
    if (replies?.every(({ waiting }) => waiting === 0)) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function drawGroups() {
  const most = settings.fewGroups && random.percent(FEW_PERCENT) ? 2 : groups;
  const count = random.between(1, Math.min(most, groups));
  const left = [...allGroups];
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]);
}

/**
 * @param {number[]} destinations
 * @param {{ what: string, [more: string]: unknown }} command  see `bank.mjs`
 * @param {import('tram-multicast').MulticastOptions} [options]
 * @returns {Promise<any[] | undefined>} nothing if it was given up
 */
async function send(destinations, command, options = PATIENT) {
  const nonce = `${settings.name}.${++sent}`;
  const sentUs = nowUs();
  const payload = new TextEncoder().encode(JSON.stringify({ ...command, nonce }));
  let replies;
  try {
    replies = await client.multicast(destinations, payload, options);
  } catch (error) {
    const { code } = /** @type {any} */ (error);
    if (options === PATIENT || !GIVEN_UP.has(code)) throw error;
    givenUp++;
    record(givenUpRecords, { nonce, code });
    return undefined;
  }
  const [answeredUs, answeredMs] = [nowUs(), Date.now()];
  const texts = [...replies].map(([group, reply]) => ({
    ...JSON.parse(new TextDecoder().decode(reply)),
    group,
  }));
  const { id } = texts[0];
  if (texts.length !== destinations.length) throw new Error(`${id}: ${texts.length} replies`);
  if (texts.some((text) => text.id !== id || text.nonce !== nonce)) {
    throw new Error(`${nonce} was answered with ${JSON.stringify(texts)}`);
  }
  answered++;
  const isAudit = command.what === 'audit';
  const total = isAudit ? texts.reduce((sum, text) => sum + text.total, 0) : undefined;
  if (isAudit) audits++;
  if (isAudit && total !== rightTotal) wrongAudits++;
  record(records, {
    id,
    nonce,
    groups: destinations,
    sentUs,
    answeredUs,
    answeredMs,
    replies: texts.map(({ group, place, nowMs, released }) => ({ group, place, nowMs, released })),
    waits: command.waits,
    total,
  });
  return texts;
}

/** @param {number | undefined} file @param {unknown} line */
function record(file, line) {
  if (file !== undefined) writeSync(file, `${JSON.stringify(line)}\n`);
}
