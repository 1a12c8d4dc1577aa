/** The CRC with 64 bits that ends a dump of Redis and an RDB file (Jones: polynomial 0xad93d23594c935a9, reflected), in two halves of 32 bits. */

/** The polynomial, from the lowest bit to the highest. */
const REFLECTED = 0x95ac9329ac4bc9b5n;

const LOW = new Uint32Array(256);
const HIGH = new Uint32Array(256);
for (let byte = 0; byte < 256; byte++) {
  let crc = BigInt(byte);
  for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ REFLECTED : crc >> 1n;
  LOW[byte] = Number(crc & 0xffffffffn);
  HIGH[byte] = Number(crc >> 32n);
}

/** Of bytes that come one piece after the other. */
export class Crc64 {
  #low = 0;
  #high = 0;

  add(bytes: Uint8Array): this {
    let low = this.#low;
    let high = this.#high;
    for (let i = 0; i < bytes.length; i++) {
      const at = (low ^ bytes[i]) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ LOW[at];
      high = (high >>> 8) ^ HIGH[at];
    }
    this.#low = low;
    this.#high = high;
    return this;
  }

  /** 8 bytes, the lowest first. */
  bytes(): Buffer {
    const crc = Buffer.alloc(8);
    crc.writeInt32LE(this.#low | 0, 0);
    crc.writeInt32LE(this.#high | 0, 4);
    return crc;
  }
}

/** @returns 8 bytes, the lowest first */
export function crc64(bytes: Uint8Array): Buffer {
  return new Crc64().add(bytes).bytes();
}
