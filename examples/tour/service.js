/** Keeps the texts that it is given, and replies how many they are by now. `fail` makes it throw. */

/** @type {string[]} */
let texts = [];

/**
 * @param {import('tram-multicast').Message} message
 * @param {import('tram-multicast').ServiceContext} context
 */
export function deliver({ payload, destinations, id }, { group }) {
  const text = new TextDecoder().decode(payload);
  if (text === 'fail') throw new Error(`group ${group} was told to fail with ${id}`);
  texts.push(`${text} to ${destinations.join()}`);
  return new TextEncoder().encode(`${texts.length}`);
}

export function snapshot() {
  return new TextEncoder().encode(JSON.stringify(texts));
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  texts = JSON.parse(new TextDecoder().decode(snapshot));
}
