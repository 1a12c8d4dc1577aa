/**
 * The checks after a round: the properties of the judge, and the records of clients and replicas. Called by `round.mjs` and
 * `soak-phase.mjs`. Each check returns its failures in words; none if it holds.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { judge, readTrace } from 'tram-multicast/check';
import { orderGroups } from 'tram-multicast/internal/check/group-order.js';
import { openDirectory } from 'tram-multicast/internal/cli/trace-source.js';
import { hostProcesses } from 'tram-multicast/internal/hosting/host-processes.js';
import { ACCOUNTS, START_BALANCE } from './bank.mjs';
import { isAlive } from './processes.mjs';

/**
 * @typedef {import('./load.mjs').Acknowledged} Acknowledged
 * @typedef {import('tram-multicast/check').History} History
 */

const COMPLAINTS_MAX = 5;
const EXCERPT_CHARACTERS = 80;
/** Of a replica that has written none. */
export const NO_FINGERPRINT = 'none';

/** @param {string} directory */
export async function readHistory(directory) {
  return readTrace((await openDirectory(directory)).chunks);
}

/**
 * All properties that the cluster promises hold, and none is unknown.
 * @param {History} history
 * @param {boolean} isComplete  if false, properties may be unknown
 */
export function checkVerdict(history, isComplete) {
  return judge(history).properties.flatMap((verdict) => {
    if (verdict.outcome === 'violated') {
      return [`${verdict.property} is violated: ${verdict.witness}`];
    }
    if (verdict.outcome !== 'unknown' || !isComplete) return [];
    return [`${verdict.property} is unknown: ${verdict.reason}`];
  });
}

/** The judge checked what the cluster was told to promise. @param {History} history @param {string} order @param {string} durability */
export function checkPromise({ promisedOrder, durabilities }, order, durability = 'none') {
  const other = durabilities.find((promised) => promised !== durability);
  return [
    ...(promisedOrder === order ? [] : [`the trace promises ${promisedOrder} order, not ${order}`]),
    ...(other === undefined ? [] : [`an era promises durability ${other}, not ${durability}`]),
  ];
}

/**
 * Reads the records of all clients, killed ones included.
 * @param {string} directory
 * @param {Set<string>} read  files that are left out; those that are read are added
 * @returns {any[]}
 */
export function readRecords(directory, read = new Set()) {
  const names = readdirSync(directory).filter((name) => !read.has(name));
  return names.flatMap((name) => {
    read.add(name);
    const lines = readFileSync(join(directory, name), 'utf8').split('\n');
    // A client that was killed may have left an incomplete line.
    lines.pop();
    return lines.map((line) => JSON.parse(line));
  });
}

/**
 * Every acknowledged message occurs exactly once in the final history of each replica of each destination, across all its
 * incarnations, and in no other history.
 * @param {History} history
 * @param {readonly Acknowledged[]} records
 */
export function checkAcknowledged(history, records) {
  const complaints = new Complaints();
  /** @type {Map<string, Acknowledged>} */
  const byId = new Map();
  for (const record of records) {
    if (byId.has(record.id)) complaints.add(`${record.id} was acknowledged twice`);
    byId.set(record.id, record);
  }
  const acknowledged = history.messageIds.map((id) => byId.get(id));
  const known = acknowledged.filter((record) => record !== undefined).length;
  if (known < byId.size) {
    complaints.add(`${byId.size - known} acknowledged messages are in no trace`);
  }
  for (const { group, order } of orderGroups(history)) {
    for (const replica of history.replicasOf[group]) {
      const times = timesDelivered(history, replica, order);
      const name = history.replicaNames[replica];
      for (const [message, record] of acknowledged.entries()) {
        if (record === undefined) continue;
        const expected = record.groups.includes(history.groupNumbers[group]) ? 1 : 0;
        if (times[message] === expected) continue;
        complaints.add(
          `${record.id} to groups ${record.groups} was acknowledged, and ${name} has delivered it ${times[message]} times`,
        );
      }
    }
  }
  return complaints.list;
}

/**
 * How often each message occurs in a replica's final history, whether delivered or restored from a snapshot.
 * @param {History} history
 * @param {number} replica
 * @param {Int32Array} order  of its group
 */
function timesDelivered(history, replica, order) {
  const times = new Uint8Array(history.messageCount);
  const present = history.stretchesOf[replica].at(-1);
  if (present === undefined) return times;
  for (const message of order.subarray(0, present.restored)) times[message]++;
  for (const message of present.delivered.view()) times[message]++;
  return times;
}

/**
 * Transfers preserve the total.
 * @param {readonly Acknowledged[]} records
 * @param {number} groups
 */
export function checkAudits(records, groups) {
  const complaints = new Complaints();
  const right = groups * ACCOUNTS * START_BALANCE;
  for (const { id, total } of records) {
    if (total !== undefined && total !== right)
      complaints.add(`audit ${id} found ${total}, not ${right}`);
  }
  return complaints.list;
}

/**
 * @param {string} directory  where replicas write their fingerprints
 * @param {number} groups
 * @param {number} replicas
 * @returns {string[][]} by group and member
 */
export function readFingerprints(directory, groups, replicas) {
  return Array.from({ length: groups }, (_, group) =>
    Array.from({ length: replicas }, (_, member) => {
      const file = join(directory, `${group}-${member}`);
      return existsSync(file) ? readFileSync(file, 'utf8') : NO_FINGERPRINT;
    }),
  );
}

/** All replicas of a group have the same state and history. @param {readonly (readonly string[])[]} fingerprints  by group and member */
export function checkFingerprints(fingerprints) {
  const complaints = new Complaints();
  for (const [group, found] of fingerprints.entries()) {
    if (found.some((text) => text === NO_FINGERPRINT || text !== found[0])) {
      const at = differenceOf(found);
      const parts = found.map((text) => text.slice(at, at + EXCERPT_CHARACTERS));
      complaints.add(
        `the replicas of group ${group} differ, from character ${at} on: ${parts.join(' | ')}`,
      );
    }
  }
  return complaints.list;
}

/** Where texts differ first. @param {readonly string[]} texts */
function differenceOf([first, ...others]) {
  let at = 0;
  while (at < first.length && others.every((text) => text[at] === first[at])) at++;
  return at;
}

/**
 * No memory and no process is left.
 * @param {string} arena
 * @param {readonly number[]} clientPids
 */
export function checkRemains(arena, clientPids) {
  const hosts = hostProcesses(arena).map(({ pid }) => `host process ${pid} is left`);
  const clients = clientPids.filter(isAlive).map((pid) => `client process ${pid} is left`);
  return [...hosts, ...clients, ...(existsSync(arena) ? [`${arena} is left`] : [])];
}

/**
 * The longest time under load in which some group answered no message.
 * @param {readonly Acknowledged[]} records
 * @param {number} groups
 * @param {number} untilUs  when clients were told to stop
 */
export function longestSilenceMs(records, groups, untilUs) {
  const last = new Float64Array(groups);
  let longestUs = 0;
  for (const { answeredUs, groups: addressed } of [...records].sort(byAnswer)) {
    if (answeredUs > untilUs) break;
    for (const group of addressed) {
      if (last[group] > 0) longestUs = Math.max(longestUs, answeredUs - last[group]);
      last[group] = answeredUs;
    }
  }
  return Math.round(longestUs / 1000);
}

/** @param {Acknowledged} one @param {Acknowledged} other */
function byAnswer(one, other) {
  return one.answeredUs - other.answeredUs;
}

/** Keeps the first few complaints. */
export class Complaints {
  /** @type {string[]} */
  list = [];
  /** @param {string} text */
  add(text) {
    if (this.list.length < COMPLAINTS_MAX) this.list.push(text);
  }
}
