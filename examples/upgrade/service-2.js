/**
 * Version 2 of the service: points count twice. It behaves exactly as version 1 until the message `{ rules: 2 }`, which
 * every replica delivers at the same place of the order. Its snapshots are those of version 1 until then, too.
 */

let points = 0;
/** Which version's rules apply. Part of the state. */
let rules = 1;

/** @param {import('tram-multicast').Message} message */
export function deliver({ payload }) {
  const { add = 0, rules: next = rules } = decode(payload);
  rules = next;
  points += rules === 2 ? 2 * add : add;
  return encode(state());
}

function state() {
  return rules === 1 ? { points } : { points, rules };
}

export function snapshot() {
  return encode(state());
}

/** @param {Uint8Array} snapshot  of this version, or of version 1 */
export function restore(snapshot) {
  ({ points, rules = 1 } = decode(snapshot));
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}
