/**
 * The service of chaos and soak runs: every group keeps accounts, and transfers between accounts preserve the total.
 * A reply names the message that it answers, so clients know which message was acknowledged. The state is large enough to
 * fill several chunks of a snapshot.
 *
 * Payloads are JSON. `{ what: 'transfer', nonce, moves: [[group, account, amount], …] }`: each group applies its own moves.
 * `{ what: 'audit', nonce }`: each group replies its total. `{ what: 'fingerprint', nonce, directory }`: every replica, not
 * only the leader, writes a fingerprint of its state to a file.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

export const ACCOUNTS = 8192;
export const START_BALANCE = 1000;

const HASH_START = 0x811c9dc5;
const HASH_PRIME = 0x01000193;

let balances = new Int32Array(ACCOUNTS).fill(START_BALANCE);
let delivered = 0;
/** Over all delivered messages, in their order. */
let hash = HASH_START;

/**
 * @param {import('tram-multicast').Message} message
 * @param {import('tram-multicast').ServiceContext} context
 */
export function deliver({ id, payload }, { group, member }) {
  delivered++;
  hash = hashOf(hashOf(hash, new TextEncoder().encode(id)), payload);
  const command = JSON.parse(new TextDecoder().decode(payload));
  const { nonce } = command;
  switch (command.what) {
    case 'transfer':
      for (const [at, account, amount] of command.moves) {
        if (at === group) balances[account] += amount;
      }
      return encode({ id, nonce });
    case 'audit':
      return encode({ id, nonce, total: total() });
    case 'fingerprint':
      appendFileSync(join(command.directory, `${group}-${member}`), `${nonce} ${fingerprint()}\n`);
      return encode({ id, nonce });
    default:
      throw new Error(`unknown command ${command.what}`);
  }
}

function total() {
  let sum = 0;
  for (let account = 0; account < ACCOUNTS; account++) sum += balances[account];
  return sum;
}

function fingerprint() {
  const state = hashOf(HASH_START, new Uint8Array(balances.buffer));
  return `delivered=${delivered} history=${hash >>> 0} balances=${state >>> 0}`;
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
  return new Uint8Array(words.buffer);
}

/** @param {Uint8Array} bytes */
export function restore(bytes) {
  const words = new Int32Array(bytes.slice().buffer);
  balances = words.slice(0, ACCOUNTS);
  delivered = words[ACCOUNTS];
  hash = words[ACCOUNTS + 1];
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}
