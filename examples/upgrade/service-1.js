/** Version 1 of a service: it counts points. */

let points = 0;

/** @param {import('tram-multicast').Message} message */
export function deliver({ payload }) {
  const { add = 0 } = decode(payload);
  points += add;
  return encode({ points });
}

export function snapshot() {
  return encode({ points });
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  ({ points } = decode(snapshot));
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}
