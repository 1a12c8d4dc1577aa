/** What the journal needs of `node:zlib`, in a browser. */

const REVERSED_POLYNOMIAL = 0xedb88320;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? (value >>> 1) ^ REVERSED_POLYNOMIAL : value >>> 1;
  }
  return value;
});

/** The CRC-32 of some bytes, or of bytes that follow those with the checksum `before`. */
export function crc32(bytes: Uint8Array, before = 0): number {
  let value = ~before;
  for (let i = 0; i < bytes.length; i++) {
    value = TABLE[(value ^ bytes[i]) & 0xff] ^ (value >>> 8);
  }
  return ~value >>> 0;
}
