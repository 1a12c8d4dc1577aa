/**
 * A replicated counter. Every replica loads this module for itself: `count` is the state of one replica.
 *
 * Replicas stay equal because they are given the same messages in the same order and `deliver` depends on
 * nothing else: no clock, no random numbers, nothing that is kept outside of this module.
 */
let count = 0;

/**
 * @param {import('tram-multicast').Message} message  one byte: what to add
 * @returns {Uint8Array} the new value
 */
export function deliver({ payload }) {
  count += payload[0];
  return encode(count);
}

/** Asked of one replica for another that was down and has missed too much. */
export function snapshot() {
  return encode(count);
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  count = decode(snapshot);
}

/** @param {number} value */
function encode(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return bytes;
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0);
}
