/** The forms in which Redis packs small collections into one string. */

import type { Bytes } from '../../resp/reply.js';

/** Writes a listpack. */
export class Listpack {
  readonly #pieces: Buffer[] = [];

  /** How many elements it has. */
  get size(): number {
    return this.#pieces.length;
  }

  /** @param value  of 64 bits */
  addInteger(value: bigint): void {
    this.#add(value >= 0n && value < 128n ? Buffer.of(Number(value)) : longInteger(value));
  }

  addText(text: Bytes): void {
    const { length } = text;
    const head = length < 64 ? Buffer.of(0x80 | length) : longHead(length);
    this.#add(Buffer.concat([head, Buffer.from(text, 'latin1')]));
  }

  bytes(): Bytes {
    const body = Buffer.concat(this.#pieces);
    const head = Buffer.alloc(6);
    head.writeUInt32LE(head.length + body.length + 1, 0);
    head.writeUInt16LE(Math.min(this.size, 0xffff), 4);
    return Buffer.concat([head, body, Buffer.of(0xff)]).toString('latin1');
  }

  /** The length of an entry follows it, in groups of 7 bits: it is read from the end, and all but the last byte have the highest bit. */
  #add(entry: Buffer): void {
    const size = backLengthSize(entry.length);
    const back = Buffer.alloc(size);
    for (let i = 0, rest = entry.length; i < size; i++, rest = Math.floor(rest / 128)) {
      back[size - 1 - i] = (rest & 127) | (i < size - 1 ? 128 : 0);
    }
    this.#pieces.push(Buffer.concat([entry, back]));
  }
}

function longInteger(value: bigint): Buffer {
  const bytes = Buffer.of(0xf4, 0, 0, 0, 0, 0, 0, 0, 0);
  bytes.writeBigInt64LE(value, 1);
  return bytes;
}

function longHead(length: number): Buffer {
  const bytes = Buffer.of(0xf0, 0, 0, 0, 0);
  bytes.writeUInt32LE(length, 1);
  return bytes;
}

/** Elements from the beginning, in their order. */
export function listpackElements(bytes: Buffer): Bytes[] {
  const elements: Bytes[] = [];
  let at = 6;
  while (bytes.readUInt8(at) !== 0xff) {
    const { element, length } = listpackEntry(bytes, at);
    elements.push(element);
    at += length + backLengthSize(length);
  }
  return elements;
}

interface PackedEntry {
  readonly element: Bytes;
  /** Of the entry, in bytes. */
  readonly length: number;
}

function listpackEntry(bytes: Buffer, at: number): PackedEntry {
  const head = bytes.readUInt8(at);
  if (head < 0x80) return { element: String(head), length: 1 };
  if (head < 0xc0) return textEntry(bytes, at, 1, head & 0x3f);
  if (head < 0xe0) {
    const value = ((head & 0x1f) << 8) | bytes.readUInt8(at + 1);
    return { element: String(value >= 0x1000 ? value - 0x2000 : value), length: 2 };
  }
  if (head < 0xf0) return textEntry(bytes, at, 2, ((head & 0x0f) << 8) | bytes.readUInt8(at + 1));
  if (head === 0xf0) return textEntry(bytes, at, 5, bytes.readUInt32LE(at + 1));
  const size = INTEGER_BYTES[head - 0xf1];
  if (size === undefined) throw new RangeError('not an entry of a listpack');
  return integerEntry(bytes, at, size);
}

const INTEGER_BYTES = [2, 3, 4, 8];

function textEntry(bytes: Buffer, at: number, headLength: number, length: number): PackedEntry {
  const from = at + headLength;
  if (from + length > bytes.length) throw new RangeError('a packed text is not whole');
  return {
    element: bytes.toString('latin1', from, from + length),
    length: headLength + length,
  };
}

function integerEntry(bytes: Buffer, at: number, size: number): PackedEntry {
  return { element: integerText(bytes, at + 1, size), length: 1 + size };
}

function integerText(bytes: Buffer, at: number, size: number): Bytes {
  return String(size === 8 ? bytes.readBigInt64LE(at) : bytes.readIntLE(at, size));
}

/** How many bytes the length of an entry takes, which follows the entry. */
function backLengthSize(length: number): number {
  if (length <= 127) return 1;
  if (length < 16_383) return 2;
  if (length < 2_097_151) return 3;
  return length < 268_435_455 ? 4 : 5;
}

/** As a listpack; versions of Redis before 7 write it. */
export function ziplistElements(bytes: Buffer): Bytes[] {
  const elements: Bytes[] = [];
  let at = 10;
  while (bytes.readUInt8(at) !== 0xff) {
    // The length of the entry before.
    at += bytes.readUInt8(at) === 0xfe ? 5 : 1;
    const { element, length } = ziplistEntry(bytes, at);
    elements.push(element);
    at += length;
  }
  return elements;
}

function ziplistEntry(bytes: Buffer, at: number): PackedEntry {
  const head = bytes.readUInt8(at);
  if (head < 0x40) return textEntry(bytes, at, 1, head);
  if (head < 0x80) return textEntry(bytes, at, 2, ((head & 0x3f) << 8) | bytes.readUInt8(at + 1));
  if (head === 0x80) return textEntry(bytes, at, 5, bytes.readUInt32BE(at + 1));
  if (head === 0xc0) return integerEntry(bytes, at, 2);
  if (head === 0xd0) return integerEntry(bytes, at, 4);
  if (head === 0xe0) return integerEntry(bytes, at, 8);
  if (head === 0xf0) return integerEntry(bytes, at, 3);
  if (head === 0xfe) return integerEntry(bytes, at, 1);
  if (head < 0xf1 || head > 0xfd) throw new RangeError('not an entry of a ziplist');
  return { element: String(head - 0xf1), length: 1 };
}

export function intsetElements(bytes: Buffer): Bytes[] {
  const size = bytes.readUInt32LE(0);
  const count = bytes.readUInt32LE(4);
  if (![2, 4, 8].includes(size) || 8 + count * size !== bytes.length) {
    throw new RangeError('not a set of integers');
  }
  return Array.from({ length: count }, (_, i) => integerText(bytes, 8 + i * size, size));
}

/** Fields and values as versions of Redis before 2.6 pack them. */
export function zipmapElements(bytes: Buffer): Bytes[] {
  const elements: Bytes[] = [];
  let at = 1;
  const text = (isValue: boolean): void => {
    const isLong = bytes.readUInt8(at) === 0xfe;
    const length = isLong ? bytes.readUInt32LE(at + 1) : bytes.readUInt8(at);
    at += isLong ? 5 : 1;
    // Before a value: how many bytes are unused after it.
    const unused = isValue ? bytes.readUInt8(at++) : 0;
    if (at + length + unused > bytes.length) throw new RangeError('a packed text is not whole');
    elements.push(bytes.toString('latin1', at, at + length));
    at += length + unused;
  };
  while (bytes.readUInt8(at) !== 0xff) {
    text(false);
    text(true);
  }
  return elements;
}
