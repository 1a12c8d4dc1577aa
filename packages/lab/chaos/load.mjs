/**
 * The load of one client of a chaos or soak run: transfers, audits and messages whose replies are deferred, until it is told
 * to stop. It gives up some of those that wait, and waits until all others are answered. Called by `client.mjs`, in a process of
 * its own, and by `power-starter.mjs`.
 *
 * The process may be killed at any time, so each acknowledged message is in the records at once, and each one that was given up.
 */
import { setMaxListeners } from 'node:events';
import { openSync, writeSync } from 'node:fs';
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
 * @property {boolean} [auditsFirst]  make an audit before anything else
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
 * What an audit found: the sum of all groups, and for each group the place of the audit in its deliveries.
 * @typedef {{ total: number, places: [group: number, place: number][] }} Audit
 */

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
const RETRY_MS = 200;

export class Load {
  totals = { sent: 0, answered: 0, givenUp: 0, audits: 0, wrongAudits: 0 };
  isStopping = false;
  tokens = 0;
  /** @type {(() => void)[]} */
  waiting = [];
  /** Gives up all messages that are to be given up. */
  giveUp = new AbortController();

  /** @param {import('tram-multicast').Client} client @param {ClientSettings} settings */
  constructor(client, settings) {
    this.client = client;
    this.settings = settings;
    const { groups, records, givenUp } = settings;
    this.allGroups = [...Array(groups).keys()];
    this.rightTotal = groups * ACCOUNTS * START_BALANCE;
    this.random = new Random(settings.seed);
    this.records = records === undefined ? undefined : openSync(records, 'wx');
    this.givenUpRecords = givenUp === undefined ? undefined : openSync(givenUp, 'wx');
    setMaxListeners(0, this.giveUp.signal);
  }

  /** Returns after `stop`, when everything is answered. */
  async run() {
    if (this.settings.rate > 0) this.refill();
    await Promise.all(Array.from({ length: this.settings.window }, () => this.work()));
  }

  stop() {
    this.isStopping = true;
    this.giveUp.abort();
    this.release(this.waiting.length);
  }

  /** Waits until no message waits any more, and asks every replica to write a fingerprint of its state. @param {string} directory */
  async takeFingerprints(directory) {
    await this.untilNothingWaits();
    await this.send(this.allGroups, { what: 'fingerprint', directory });
  }

  async work() {
    const { random, settings } = this;
    for (;;) {
      await this.turn();
      if (this.isStopping) return;
      if (random.percent(AUDIT_PERCENT)) await this.audit();
      else if (settings.waits && random.percent(settings.waits.percent))
        await this.wait(settings.waits);
      else await this.transfer();
    }
  }

  /** Resolves when the rate limit permits another message. */
  async turn() {
    if (this.settings.rate === 0 || this.isStopping) return;
    if (this.tokens > 0) this.tokens--;
    else await new Promise((resolve) => this.waiting.push(() => resolve(undefined)));
  }

  /** Grants tokens in bursts, so that rings are sometimes full and replicas sometimes idle. */
  refill() {
    const burstMs = this.random.between(BURST_MS.least, BURST_MS.most);
    setTimeout(() => {
      if (this.isStopping) return;
      this.release(Math.max(1, Math.round((this.settings.rate * burstMs) / 1000)));
      this.refill();
    }, burstMs);
  }

  /** @param {number} count */
  release(count) {
    const released = this.waiting.splice(0, count);
    // Unused tokens expire: a client that was delayed does not catch up.
    this.tokens = count - released.length;
    for (const go of released) go();
  }

  /** Moves amounts that sum to zero between accounts, of several groups or of one. */
  async transfer() {
    const { random } = this;
    const destinations = this.drawGroups();
    const places = destinations.length > 1 ? destinations : [destinations[0], destinations[0]];
    const amounts = places.slice(1).map(() => random.between(-50, 50));
    amounts.push(-amounts.reduce((sum, amount) => sum + amount, 0));
    const moves = places.map((group, place) => [group, random.below(ACCOUNTS), amounts[place]]);
    await this.send(destinations, { what: 'transfer', moves });
  }

  /** @returns {Promise<Audit>} */
  async audit() {
    const replies = /** @type {any[]} */ (await this.send(this.allGroups, { what: 'audit' }));
    return { total: totalOf(replies), places: replies.map(({ group, place }) => [group, place]) };
  }

  /** Sends a message for which some groups, or all, defer their replies. @param {WaitSettings} settings */
  async wait({ patienceMs }) {
    const { random } = this;
    const destinations = this.drawGroups().slice(0, WAIT_GROUPS_MOST);
    const isGivenUp = random.percent(GIVE_UP_PERCENT);
    const isEndless = isGivenUp && random.percent(ENDLESS_PERCENT);
    const waits = destinations.slice(0, random.between(1, destinations.length)).map((group) => {
      const messages = random.between(WAIT_MESSAGES.least, WAIT_MESSAGES.most);
      const ms = random.between(WAIT_MS.least, WAIT_MS.most);
      return isEndless ? [group, null, patienceMs] : [group, messages, ms];
    });
    const limit = isEndless ? GIVE_UP_ENDLESS_MS : GIVE_UP_MS;
    const options = isGivenUp ? this.drawLimit(limit) : PATIENT;
    await this.send(destinations, { what: 'wait', waits }, options);
  }

  /** @param {{ least: number, most: number }} range @returns {import('tram-multicast').MulticastOptions} */
  drawLimit({ least, most }) {
    const { signal } = this.giveUp;
    const ms = this.random.between(least, most);
    return this.random.percent(50)
      ? { timeoutMs: ms, signal }
      : { timeoutMs: Infinity, signal: AbortSignal.any([signal, AbortSignal.timeout(ms)]) };
  }

  /** Groups abandon the messages of clients that have ended, or answer them in time. */
  async untilNothingWaits() {
    for (;;) {
      const replies = await this.send(this.allGroups, { what: 'waiting' });
      if (replies?.every(({ waiting }) => waiting === 0)) return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  drawGroups() {
    const { random } = this;
    const { groups, fewGroups } = this.settings;
    const most = fewGroups && random.percent(FEW_PERCENT) ? 2 : groups;
    const count = random.between(1, Math.min(most, groups));
    const left = [...this.allGroups];
    return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]);
  }

  /**
   * @param {number[]} destinations
   * @param {{ what: string, [more: string]: unknown }} command  see `bank.mjs`
   * @param {import('tram-multicast').MulticastOptions} [options]
   * @returns {Promise<any[] | undefined>} nothing if it was given up
   */
  async send(destinations, command, options = PATIENT) {
    const { totals } = this;
    const nonce = `${this.settings.name}.${++totals.sent}`;
    const sentUs = nowUs();
    const payload = new TextEncoder().encode(JSON.stringify({ ...command, nonce }));
    let replies;
    try {
      replies = await this.client.multicast(destinations, payload, options);
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (options === PATIENT || !GIVEN_UP.has(code)) throw error;
      totals.givenUp++;
      record(this.givenUpRecords, { nonce, code });
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
    totals.answered++;
    const total = command.what === 'audit' ? totalOf(texts) : undefined;
    if (total !== undefined) totals.audits++;
    if (total !== undefined && total !== this.rightTotal) totals.wrongAudits++;
    record(this.records, {
      id,
      nonce,
      groups: destinations,
      sentUs,
      answeredUs,
      answeredMs,
      replies: texts.map(({ group, place, nowMs, released }) => ({
        group,
        place,
        nowMs,
        released,
      })),
      waits: command.waits,
      total,
    });
    return texts;
  }
}

/** @param {{ total: number }[]} replies  to an audit */
function totalOf(replies) {
  return replies.reduce((sum, { total }) => sum + total, 0);
}

/** @param {number | undefined} file @param {unknown} line */
function record(file, line) {
  if (file !== undefined) writeSync(file, `${JSON.stringify(line)}\n`);
}
