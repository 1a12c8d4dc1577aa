/**
 * The checks of replies after a round: none is lost or doubled, deferred ones are right, ordered time never goes back, and
 * messages are abandoned only with a cause. Called by `round.mjs`. Each check returns its failures in words.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { orderGroups } from 'tram-multicast/internal/check/group-order.js';
import { Complaints } from './verify.mjs';

/**
 * @typedef {import('./load.mjs').Acknowledged} Acknowledged
 * @typedef {import('./load.mjs').GivenUp} GivenUp
 * @typedef {import('./load.mjs').GroupReply} GroupReply
 * @typedef {import('./turnstile.mjs').Moment} Moment
 * @typedef {import('tram-multicast/check').History} History
 */

/** All hosts of a run read the same clock; it may be adjusted a little. */
const AHEAD_MS_MAX = 1000;
/** Ordered time stands still while a group has no leader, and catches up slowly. An awaited event takes a minute at most. */
const BEHIND_MS_MAX = 60_000;

/**
 * No client took two replies of a group to one message. Every message of a client that has finished was answered by all
 * its destinations, except those that it gave up.
 * @param {string} trace  a directory
 * @param {ReadonlyMap<string, number>} finished  by trace name, how many messages each client that finished gave up
 */
export function checkAnswers(trace, finished) {
  const complaints = new Complaints();
  for (const [client, givenUp] of finished) {
    const answers = readAnswers(join(trace, fileOf(trace, client)));
    let unanswered = 0;
    for (const [id, { destinations, groups }] of answers) {
      const distinct = new Set(groups);
      if (distinct.size < groups.length) {
        complaints.add(`${id} was answered by the groups ${groups}: by one of them twice`);
      }
      if (distinct.size < destinations) unanswered++;
    }
    if (unanswered > givenUp) {
      complaints.add(`${client} has ${unanswered} unanswered messages, and gave up ${givenUp}`);
    }
  }
  return complaints.list;
}

/** The file of a client in a trace. @param {string} trace @param {string} client */
function fileOf(trace, client) {
  const start = `client-${client.slice(1)}`;
  const file = readdirSync(trace).find((name) => name.split('.')[0] === start);
  if (file === undefined) throw new Error(`${trace} has no file of ${client}`);
  return file;
}

/** By message, how many destinations it has, and which groups answered it. @param {string} file */
function readAnswers(file) {
  /** @type {Map<string, { destinations: number, groups: number[] }>} */
  const answers = new Map();
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const event = JSON.parse(line);
    if (event.event === 'multicast') {
      answers.set(event.id, { destinations: event.destinations.length, groups: [] });
    } else if (event.event === 'answered') answers.get(event.id)?.groups.push(event.group);
  }
  return answers;
}

/**
 * Every reply tells the place of its message in the order of its group. A group defers the replies that it was asked to
 * defer, and no others. It gives them when the right message was delivered, or, before that, when the time has come.
 * @param {History} history
 * @param {readonly Acknowledged[]} records
 */
export function checkReplies(history, records) {
  const complaints = new Complaints();
  const orders = new Map(
    orderGroups(history).map(({ group, order }) => [history.groupNumbers[group], order]),
  );
  const idAt = (/** @type {number} */ group, /** @type {number} */ place) =>
    history.messageIds[orders.get(group)?.[place - 1] ?? -1];
  for (const { id, replies, waits = [] } of records) {
    for (const reply of replies) {
      const { group, place, nowMs, released } = reply;
      const wait = waits.find(([at]) => at === group);
      const isRight =
        idAt(group, place) === id &&
        (wait === undefined ? released === undefined : isDue(wait, place, nowMs, released)) &&
        (!released?.by || idAt(group, released.place) === released.by);
      if (!isRight) {
        complaints.add(
          `${id} at group ${group}, at place ${orderPlace(id, group)}, was to wait for ${wait}; the reply is ${JSON.stringify(reply)}`,
        );
      }
    }
  }
  return complaints.list;

  /** @param {string} id @param {number} group */
  function orderPlace(id, group) {
    return 1 + (orders.get(group)?.indexOf(history.messageIds.indexOf(id)) ?? -1);
  }
}

/**
 * @param {import('./turnstile.mjs').Wait} wait
 * @param {number} place
 * @param {number} nowMs
 * @param {import('./turnstile.mjs').Release | undefined} released
 */
function isDue([, messages, ms], place, nowMs, released) {
  if (released === undefined) return false;
  if (released.by !== null) return messages !== null && released.place === place + messages;
  const isBefore = messages === null || released.place < place + messages;
  return isBefore && ms !== null && released.nowMs >= nowMs + ms;
}

/**
 * The ordered time of a group, as replies tell it, never goes back, is the same for all replies of one place, and follows
 * the clock.
 * @param {readonly Acknowledged[]} records
 * @param {number} groups
 */
export function checkOrderedTime(records, groups) {
  const complaints = new Complaints();
  for (let group = 0; group < groups; group++) {
    let last = { place: 0, nowMs: 0, isTick: false };
    for (const moment of momentsOf(records, group)) {
      const { place, nowMs, isTick } = moment;
      const isSamePlace = place === last.place && !isTick && !last.isTick;
      if (nowMs < last.nowMs || (isSamePlace && nowMs !== last.nowMs)) {
        complaints.add(
          `ordered time of group ${group} is ${last.nowMs} at place ${last.place} and ${nowMs} at place ${place}`,
        );
      }
      last = moment;
    }
  }
  for (const record of records) {
    const behindMs = behindMsOf(record);
    if (behindMs.least < -AHEAD_MS_MAX || behindMs.most > BEHIND_MS_MAX) {
      complaints.add(
        `${record.id}: ordered time was ${behindMs.least} to ${behindMs.most} ms behind the clock`,
      );
    }
  }
  return complaints.list;
}

/**
 * The places and times that the replies of a group tell, in the order of the group. A message that a tick released has the
 * place of the last delivery before the tick. @param {readonly Acknowledged[]} records @param {number} group
 */
function momentsOf(records, group) {
  return records
    .flatMap(({ replies }) => replies.filter((reply) => reply.group === group))
    .flatMap(({ place, nowMs, released }) => [
      { place, nowMs, isTick: false },
      ...(released ? [{ ...released, isTick: released.by === null }] : []),
    ])
    .sort(
      (one, other) =>
        one.place - other.place ||
        Number(one.isTick) - Number(other.isTick) ||
        one.nowMs - other.nowMs,
    );
}

/**
 * By how much the ordered times in the replies to a message were behind the clock: at least, when it was answered, and at
 * most, when it was sent.
 * @param {Acknowledged} record
 */
function behindMsOf({ replies, sentUs, answeredUs, answeredMs }) {
  const times = replies.map(({ nowMs, released }) => released?.nowMs ?? nowMs);
  const sentMs = answeredMs - (answeredUs - sentUs) / 1000;
  return { least: answeredMs - Math.max(...times), most: Math.round(sentMs - Math.min(...times)) };
}

/** The most by which ordered time was behind the clock. @param {readonly Acknowledged[]} records */
export function mostBehindMs(records) {
  return records.reduce((most, record) => Math.max(most, behindMsOf(record).most), 0);
}

/**
 * At the end nothing waits, TRAM has refused no reply to a message that waited, and each group has abandoned a message at
 * most once, and only if its client had sent it and gave it up, or was killed.
 * @param {readonly string[]} fingerprints  one of each group
 * @param {readonly Acknowledged[]} records
 * @param {readonly GivenUp[]} givenUp
 * @param {readonly string[]} killed  names of clients
 */
export function checkAbandoned(fingerprints, records, givenUp, killed) {
  const complaints = new Complaints();
  const acknowledged = new Set(records.map(({ nonce }) => nonce));
  // With any other error, nothing was sent.
  const sent = givenUp.filter(({ code }) => code === 'TRAM_OUTCOME_UNKNOWN');
  const isGivenUp = new Set(sent.map(({ nonce }) => nonce));
  const isKilled = new Set(killed);
  for (const text of fingerprints) {
    const { group, turnstile } = JSON.parse(text);
    const { waiting, abandoned, refused } = turnstile;
    if (waiting.length > 0) complaints.add(`${waiting.length} messages wait at group ${group}`);
    if (refused > 0) complaints.add(`${refused} replies of group ${group} were refused`);
    const seen = new Set();
    for (const [nonce] of abandoned) {
      const hasCause = isGivenUp.has(nonce) || isKilled.has(clientOf(nonce));
      if (seen.has(nonce)) complaints.add(`${nonce} was abandoned twice by group ${group}`);
      if (acknowledged.has(nonce)) complaints.add(`${nonce} was acknowledged and abandoned`);
      else if (!hasCause) complaints.add(`group ${group} abandoned ${nonce} without a cause`);
      seen.add(nonce);
    }
  }
  return complaints.list;
}

/**
 * How many replies were deferred and given, and how many messages were abandoned.
 * @param {readonly string[]} fingerprints  one of each group
 * @param {readonly Acknowledged[]} records
 * @param {readonly string[]} killed  names of clients
 */
export function countDeferred(fingerprints, records, killed) {
  const releases = records.flatMap(({ replies }) =>
    replies.flatMap(({ released }) => released ?? []),
  );
  /** @type {string[]} */
  const abandoned = fingerprints.flatMap((text) =>
    JSON.parse(text).turnstile.abandoned.map((/** @type {[string, number]} */ [nonce]) => nonce),
  );
  return {
    deferred: releases.length,
    byTicks: releases.filter(({ by }) => by === null).length,
    abandoned: abandoned.length,
    abandonedOfKilled: abandoned.filter((nonce) => killed.includes(clientOf(nonce))).length,
  };
}

/** @param {string} nonce */
function clientOf(nonce) {
  return nonce.split('.')[0];
}
