/** Writes RDB files by hand: what older versions of Redis wrote, and what none has. */

import { crc64 } from '../../src/engine/rdb/crc64.js';

/** Numbers are bytes; a text is written with its length. */
export type Part = number | string | Buffer | readonly Part[];

export function bytesOf(...parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'number') return Buffer.of(part);
      if (typeof part === 'string') return textOf(part);
      return Buffer.isBuffer(part) ? part : bytesOf(...(part as readonly Part[]));
    }),
  );
}

function textOf(text: string): Buffer {
  return Buffer.concat([lengthOf(text.length), Buffer.from(text, 'latin1')]);
}

export function lengthOf(length: number): Buffer {
  if (length < 0x40) return Buffer.of(length);
  if (length < 0x4000) return Buffer.of(0x40 | (length >> 8), length & 0xff);
  const bytes = Buffer.of(0x80, 0, 0, 0, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

export function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

/** A whole file. */
export function rdbOf(version: number, ...parts: readonly Part[]): Buffer {
  const body = bytesOf(Buffer.from(`REDIS${String(version).padStart(4, '0')}`), ...parts, 255);
  return version < 5 ? body : Buffer.concat([body, crc64(body)]);
}

/** A whole file with another checksum than it has to have: 0 is none. */
export function withSum(file: Buffer, sum: bigint): Buffer {
  return Buffer.concat([file.subarray(0, -8), uint64(sum)]);
}

/** @param entries  texts of up to 63 bytes, and integers from 0 to 12 */
export function ziplistOf(...entries: readonly (string | number)[]): Buffer {
  let before = 0;
  const bodies = entries.map((entry) => {
    const content =
      typeof entry === 'number'
        ? Buffer.of(0xf1 + entry)
        : Buffer.concat([Buffer.of(entry.length), Buffer.from(entry, 'latin1')]);
    const whole = Buffer.concat([Buffer.of(before), content]);
    before = whole.length;
    return whole;
  });
  const body = Buffer.concat(bodies);
  const head = Buffer.alloc(10);
  head.writeUInt32LE(body.length + 11, 0);
  head.writeUInt32LE(10 + body.length - before, 4);
  head.writeUInt16LE(entries.length, 8);
  return Buffer.concat([head, body, Buffer.of(0xff)]);
}

/** @param unused  bytes after each value */
export function zipmapOf(fields: Readonly<Record<string, string>>, unused = 0): Buffer {
  const text = (value: string, more: number[]): Buffer[] => {
    const length =
      value.length < 254
        ? Buffer.of(value.length)
        : Buffer.concat([Buffer.of(254), uint32(value.length)]);
    return [length, Buffer.from(more), Buffer.from(value, 'latin1')];
  };
  return Buffer.concat([
    Buffer.of(Object.keys(fields).length),
    ...Object.entries(fields).flatMap(([field, value]) => [
      ...text(field, []),
      ...text(value, [unused]),
      Buffer.alloc(unused),
    ]),
    Buffer.of(0xff),
  ]);
}

export function intsetOf(...integers: readonly number[]): Buffer {
  return Buffer.concat([uint32(4), uint32(integers.length), ...integers.map(uint32)]);
}

/** A packed form, as the text in which a value has it. */
export function packed(bytes: Buffer): string {
  return bytes.toString('latin1');
}
