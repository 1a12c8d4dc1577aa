/**
 * A client of a chaos or soak run, in a process of its own: `node client.mjs ADDRESS SETTINGS`. Started by `clients.mjs`.
 *
 * It multicasts transfers and audits until its parent tells it to stop, waits until all are answered, and reports totals.
 * With `fingerprints` it only asks every replica to write a fingerprint of its state. A run may kill or stop the process at
 * any time, so it writes each acknowledged message to its records at once.
 */
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
 * @property {boolean} [fewGroups]  send most messages to one or two groups only
 * @property {string} [fingerprints]  the directory for fingerprints; the client does nothing else then
 */

/**
 * A line of the records.
 * @typedef {object} Acknowledged
 * @property {string} id
 * @property {readonly number[]} groups
 * @property {number} sentUs
 * @property {number} answeredUs
 * @property {number} [total]  the sum that an audit found
 */

const BURST_MS = { least: 5, most: 200 };
const AUDIT_PERCENT = 10;
const FEW_PERCENT = 90;
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
const client = await connect(process.argv[2]);

let isStopping = false;
let sent = 0;
let answered = 0;
let audits = 0;
let wrongAudits = 0;
let tokens = 0;
/** @type {(() => void)[]} */
const waiting = [];

process.on('message', () => {
  isStopping = true;
  release(waiting.length);
});
endWithParent();
process.send?.({ what: 'connected', name: client.name });

if (settings.fingerprints !== undefined) {
  await send(allGroups, { what: 'fingerprint', directory: settings.fingerprints });
} else {
  if (rate > 0) refill();
  await Promise.all(Array.from({ length: settings.window }, work));
}
await client.close();
process.send?.({ what: 'done', sent, answered, audits, wrongAudits }, () => undefined);

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

function drawGroups() {
  const most = settings.fewGroups && random.percent(FEW_PERCENT) ? 2 : groups;
  const count = random.between(1, Math.min(most, groups));
  const left = [...allGroups];
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]);
}

/**
 * @param {number[]} destinations
 * @param {{ what: 'transfer', moves: number[][] } | { what: 'audit' } | { what: 'fingerprint', directory: string }} command
 */
async function send(destinations, command) {
  const nonce = `${settings.name}.${++sent}`;
  const sentUs = nowUs();
  const payload = new TextEncoder().encode(JSON.stringify({ ...command, nonce }));
  const replies = await client.multicast(destinations, payload, { timeoutMs: Infinity });
  const answeredUs = nowUs();
  const texts = [...replies.values()].map((reply) => JSON.parse(new TextDecoder().decode(reply)));
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
  record({ id, groups: destinations, sentUs, answeredUs, ...(isAudit && { total }) });
}

/** @param {Acknowledged} acknowledged */
function record(acknowledged) {
  if (records !== undefined) writeSync(records, `${JSON.stringify(acknowledged)}\n`);
}
