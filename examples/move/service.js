/**
 * A map whose state can move to another cluster through messages: `{ after: 'k' }` replies with the next entries, and
 * `{ load: [['k', 'v'], …] }` puts them in.
 */

/** @type {Map<string, string>} */
let entries = new Map();

/** A page must fit into a reply, and into the message that loads it. */
const PAGE = 5;

/** @param {import('tram-multicast').Message} message */
export function deliver({ payload }) {
  const { set, load = [], after } = decode(payload);
  for (const [key, value] of set === undefined ? load : [set]) entries.set(key, value);
  return after === undefined ? undefined : encode(pageAfter(after));
}

/** @param {string} key */
function pageAfter(key) {
  const keys = [...entries.keys()].filter((other) => other > key).sort();
  return keys.slice(0, PAGE).map((next) => [next, entries.get(next)]);
}

export function snapshot() {
  return encode([...entries]);
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  entries = new Map(decode(snapshot));
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}
