/**
 * The service of chaos and soak runs: every group keeps accounts, and transfers between accounts preserve the total.
 * Replies to some messages are deferred. A reply names the message that it answers, so clients know which message was acknowledged, its place in the
 * deliveries of the group, and ordered time. The state is large enough to fill several chunks of a snapshot.
 *
 * Payloads are JSON. `{ what: 'transfer', nonce, moves: [[group, account, amount], …] }`: each group applies its own moves.
 * `{ what: 'audit', nonce }`: each group replies its total. `{ what: 'wait', nonce, waits }`: the groups that `waits` names
 * defer their replies. `{ what: 'waiting', nonce }`: each group replies how many messages wait. `{ what: 'fingerprint', nonce,
 * directory }`: every replica, not only the leader, writes a fingerprint of its state to a file.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { Turnstile } from './turnstile.mjs';

export const ACCOUNTS = 8192;
export const START_BALANCE = 1000;

export const ticks = { everyMs: 20 };

const HASH_START = 0x811c9dc5;
const HASH_PRIME = 0x01000193;

let balances = new Int32Array(ACCOUNTS).fill(START_BALANCE);
let delivered = 0;
/** Over all delivered messages, in their order. */
let hash = HASH_START;
let turnstile = new Turnstile();

/**
 * @param {import('tram-multicast').Message} message
 * @param {import('tram-multicast').ServiceContext} context
 */
export function deliver({ id, payload }, context) {
  const { group, member, nowMs } = context;
  delivered++;
  turnstile.delivered(id, delivered, context);
  hash = hashOf(hashOf(hash, new TextEncoder().encode(id)), payload);
  const command = JSON.parse(new TextDecoder().decode(payload));
  const { nonce } = command;
  const place = delivered;
  switch (command.what) {
    case 'transfer':
      for (const [at, account, amount] of command.moves) {
        if (at === group) balances[account] += amount;
      }
      return encode({ id, nonce, place, nowMs });
    case 'audit':
      return encode({ id, nonce, place, nowMs, total: total() });
    case 'wait': {
      const wait = command.waits.find(([at]) => at === group);
      if (wait === undefined) return encode({ id, nonce, place, nowMs });
      turnstile.enter(id, nonce, wait, { place, nowMs });
      return context.defer();
    }
    case 'waiting':
      return encode({ id, nonce, place, nowMs, waiting: turnstile.waiting.length });
    case 'fingerprint':
      appendFileSync(join(command.directory, `${group}-${member}`), `${fingerprint(context)}\n`);
      return encode({ id, nonce, place, nowMs });
    default:
      throw new Error(`unknown command ${command.what}`);
  }
}

/** @param {string} id */
export function abandoned(id) {
  turnstile.abandon(id, delivered);
}

/** @param {import('tram-multicast').ServiceContext} context */
export function tick(context) {
  turnstile.ticked(delivered, context);
}

function total() {
  let sum = 0;
  for (let account = 0; account < ACCOUNTS; account++) sum += balances[account];
  return sum;
}

/** `verify-replies.mjs` reads what is in it of deferred replies. @param {import('tram-multicast').ServiceContext} context */
function fingerprint({ group, nowMs }) {
  const state = hashOf(HASH_START, new Uint8Array(balances.buffer));
  return JSON.stringify({
    group,
    delivered,
    history: hash >>> 0,
    balances: state >>> 0,
    nowMs,
    turnstile,
  });
}

/**
 * @param {number} start
 * @param {Uint8Array} bytes
 */
function hashOf(start, bytes) {
  let value = start;
  for (const byte of bytes) value = Math.imul(value ^ byte, HASH_PRIME);
  return value;
}

export function snapshot() {
  const words = new Int32Array(ACCOUNTS + 2);
  words.set(balances);
  words[ACCOUNTS] = delivered;
  words[ACCOUNTS + 1] = hash;
  return Buffer.concat([new Uint8Array(words.buffer), encode(turnstile)]);
}

/** @param {Uint8Array} bytes */
export function restore(bytes) {
  const words = new Int32Array(ACCOUNTS + 2);
  const end = words.byteLength;
  new Uint8Array(words.buffer).set(bytes.subarray(0, end));
  balances = words.slice(0, ACCOUNTS);
  delivered = words[ACCOUNTS];
  hash = words[ACCOUNTS + 1];
  const waits = JSON.parse(new TextDecoder().decode(bytes.subarray(end)));
  turnstile = Object.assign(new Turnstile(), waits);
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}
