/**
 * Values as Redis dumps them: the type, the value as in an RDB file, the version of the format, and a CRC. What is written here, Redis can
 * restore, and what Redis 7 or older has dumped can be restored here, unless fields of a hash have times to live.
 */

import type { Bytes } from '../../resp/reply.js';
import { ByteWriter } from '../bytes.js';
import type { Stream } from '../stream.js';
import { Hash, List, Members, ScoredMembers, type Value } from '../values.js';
import { crc64 } from './crc64.js';
import { INTEGER_HEADS, LZF_HEAD, lengthAt, lengthBytes } from './lengths.js';
import { decompressed } from './lzf.js';
import { intsetElements, listpackElements, ziplistElements, zipmapElements } from './packed.js';
import { type PartReader, readStream, streamParts } from './stream-dump.js';

/** That of Redis 7.0. */
const VERSION = 10;
/** That of Redis 7.4. Later versions may write a type in another form. */
export const VERSION_MAX = 12;
const FOOTER_BYTES = 10;
/** The longest string. */
const TEXT_BYTES_MAX = 512 * 1024 * 1024;

/** The types that are written; more can be read. */
const TYPE = { string: 0, list: 1, set: 2, hash: 4, zset: 5, stream: 19 } as const;

export function dumpOf(value: Value): Bytes {
  const out = new ByteWriter();
  if (typeof value === 'string') writeText(out.uint8(TYPE.string), value);
  else if (Buffer.isBuffer(value)) writeText(out.uint8(TYPE.string), value.toString('latin1'));
  else if (value.type === 'stream') writeStream(out, value);
  else writeCollection(out, value);
  out.uint8(VERSION).uint8(0);
  out.raw(crc64(out.written()));
  return out.written().toString('latin1');
}

/** Before the code of each library. */
const LIBRARY = 245;

/** The codes of all libraries of functions. */
export function dumpOfLibraries(codes: readonly Bytes[]): Bytes {
  const out = new ByteWriter();
  for (const code of codes) writeText(out.uint8(LIBRARY), code);
  out.uint8(VERSION).uint8(0);
  out.raw(crc64(out.written()));
  return out.written().toString('latin1');
}

/** @returns undefined if it is not a dump of libraries */
export function restoredLibraries(dump: Bytes): Bytes[] | undefined {
  const bytes = checkedDump(dump);
  if (bytes === undefined) return undefined;
  const reader = new DumpReader(bytes);
  const codes: Bytes[] = [];
  while (!reader.isAtEnd) {
    if (reader.byte() !== LIBRARY) return undefined;
    codes.push(reader.text());
  }
  return codes;
}

function writeCollection(out: ByteWriter, value: Hash | List | Members | ScoredMembers): void {
  out.uint8(TYPE[value.type]);
  if (value.type === 'list') {
    writeLength(out, value.length);
    for (let i = 0; i < value.length; i++) writeText(out, value.at(i));
    return;
  }
  writeLength(out, value.size);
  if (value.type === 'set') for (const member of value.keys()) writeText(out, member);
  else if (value.type === 'hash') {
    for (let i = 0; i < value.size; i++) {
      writeText(out, value.fieldAt(i));
      writeText(out, value.valueAt(i));
    }
  } else {
    value.visit(0, value.size, (member, score) => {
      writeText(out, member);
      out.float64(score);
    });
  }
}

function writeStream(out: ByteWriter, stream: Stream): void {
  out.uint8(TYPE.stream);
  for (const part of streamParts(stream)) {
    if (typeof part === 'string') writeText(out, part);
    else if (typeof part === 'bigint') writeLength64(out, part);
    else out.raw(part);
  }
}

function writeText(out: ByteWriter, text: Bytes): void {
  writeLength(out, text.length);
  out.raw(Buffer.from(text, 'latin1'));
}

/** The higher bytes first. */
function writeLength(out: ByteWriter, length: number): void {
  if (length < 0x40) out.uint8(length);
  else if (length < 0x4000) out.uint8(0x40 | (length >>> 8)).uint8(length & 0xff);
  else {
    out.uint8(0x80);
    for (const shift of [24, 16, 8, 0]) out.uint8((length >>> shift) & 0xff);
  }
}

function writeLength64(out: ByteWriter, length: bigint): void {
  if (length < 2n ** 32n) writeLength(out, Number(length));
  else {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(length);
    out.uint8(0x81).raw(bytes);
  }
}

/** The dump of a value that has this type and these bytes in an RDB file. */
export function dumpOfForm(type: number, value: Buffer): Buffer {
  const dump = Buffer.allocUnsafe(1 + value.length + FOOTER_BYTES);
  dump[0] = type;
  value.copy(dump, 1);
  const versionAt = dump.length - FOOTER_BYTES;
  dump.writeUInt16LE(VERSION, versionAt);
  crc64(dump.subarray(0, versionAt + 2)).copy(dump, versionAt + 2);
  return dump;
}

/** A dump that a later version may have made, in the form of this one. RESTORE refuses it if the type of the value is unknown. */
export function readableDump(dump: Bytes): Bytes | Buffer {
  const bytes = Buffer.from(dump, 'latin1');
  const end = bytes.length - FOOTER_BYTES;
  if (end < 1 || bytes.readUInt16LE(end) <= VERSION_MAX) return dump;
  return dumpOfForm(bytes[0], bytes.subarray(1, end));
}

/** A text as an RDB file has it. @throws RangeError if it is damaged */
export function textOfForm(bytes: Buffer): Bytes {
  return new DumpReader(bytes).text();
}

/** @returns undefined if the version is unknown, or if the CRC is wrong */
export function checkedDump(dump: Bytes): Buffer | undefined {
  const bytes = Buffer.from(dump, 'latin1');
  const end = bytes.length - FOOTER_BYTES;
  if (end < 0 || bytes.readUInt16LE(end) > VERSION_MAX) return undefined;
  const isWhole = crc64(bytes.subarray(0, -8)).equals(bytes.subarray(-8));
  return isWhole ? bytes.subarray(0, end) : undefined;
}

/** @param bytes  of a dump, without version and CRC. @throws RangeError if they make no value */
export function restoredValue(bytes: Buffer): Value {
  const reader = new DumpReader(bytes);
  const type = reader.byte();
  const read = READERS[type];
  if (read === undefined) throw new RangeError(`no value has the type ${type}`);
  return read(reader);
}

const READERS: Readonly<Record<number, ((reader: DumpReader) => Value) | undefined>> = {
  0: (reader) => reader.text(),
  1: (reader) => listOf(reader.texts(1)),
  2: (reader) => setOf(reader.texts(1)),
  3: (reader) => sortedSetOf(reader.scored(() => reader.oldScore())),
  4: (reader) => hashOf(reader.texts(2)),
  5: (reader) => sortedSetOf(reader.scored(() => reader.score())),
  9: (reader) => hashOf(zipmapElements(reader.buffer())),
  10: (reader) => listOf(ziplistElements(reader.buffer())),
  11: (reader) => setOf(intsetElements(reader.buffer())),
  12: (reader) => sortedSetOf(ziplistElements(reader.buffer())),
  13: (reader) => hashOf(ziplistElements(reader.buffer())),
  14: (reader) => listOf(reader.pieces(() => ziplistElements(reader.buffer()))),
  15: (reader) => readStream(reader, 1),
  16: (reader) => hashOf(listpackElements(reader.buffer())),
  17: (reader) => sortedSetOf(listpackElements(reader.buffer())),
  18: (reader) => listOf(reader.pieces(() => reader.quicklistNode())),
  19: (reader) => readStream(reader, 2),
  20: (reader) => setOf(listpackElements(reader.buffer())),
  21: (reader) => readStream(reader, 3),
};

function listOf(elements: readonly Bytes[]): Value {
  const list = new List();
  for (const element of elements) list.pushRight(element);
  return requireSize(list, list.length, elements.length);
}

function setOf(elements: readonly Bytes[]): Value {
  const set = new Members();
  for (const element of elements) set.add(element);
  return requireSize(set, set.size, elements.length);
}

function hashOf(elements: readonly Bytes[]): Value {
  const hash = new Hash();
  for (let i = 0; i + 1 < elements.length; i += 2) hash.set(elements[i], elements[i + 1]);
  return requireSize(hash, hash.size, elements.length / 2);
}

/** @param elements  members and scores */
function sortedSetOf(elements: readonly (Bytes | number)[]): Value {
  const set = new ScoredMembers();
  for (let i = 0; i + 1 < elements.length; i += 2) {
    const score = scoreOf(elements[i + 1]);
    if (Number.isNaN(score)) throw new RangeError('a score is not a number');
    set.set(elements[i] as Bytes, score);
  }
  return requireSize(set, set.size, elements.length / 2);
}

function scoreOf(text: Bytes | number): number {
  return text === 'inf' ? Infinity : text === '-inf' ? -Infinity : Number(text);
}

/** An element that is there twice, or none at all: Redis has no such values. */
function requireSize<V extends Value>(value: V, size: number, expected: number): V {
  if (size === 0 || size !== expected) throw new RangeError('elements are missing');
  return value;
}

class DumpReader implements PartReader {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  get isAtEnd(): boolean {
    return this.#at >= this.bytes.length;
  }

  byte(): number {
    return this.bytes.readUInt8(this.#at++);
  }

  /** As a string is kept: a buffer is only for those that were changed in place. */
  text(): Bytes {
    return this.buffer().toString('latin1');
  }

  buffer(): Buffer {
    const head = this.bytes.readUInt8(this.#at);
    const integer = INTEGER_HEADS.indexOf(head);
    if (integer < 0 && head !== LZF_HEAD) return this.take(this.#length());
    this.#at++;
    if (head === LZF_HEAD) {
      const compressed = this.#length();
      const length = this.#length();
      if (length > TEXT_BYTES_MAX) throw new RangeError('a text is too long');
      return decompressed(this.take(compressed), length);
    }
    const size = 1 << integer;
    return Buffer.from(String(this.take(size).readIntLE(0, size)));
  }

  /** As many texts as the length says, times `factor`. */
  texts(factor: number): Bytes[] {
    const texts: Bytes[] = [];
    for (let left = this.#length() * factor; left > 0; left--) texts.push(this.text());
    return texts;
  }

  scored(score: () => number): (Bytes | number)[] {
    const elements: (Bytes | number)[] = [];
    for (let left = this.#length(); left > 0; left--) {
      elements.push(this.text(), score());
    }
    return elements;
  }

  pieces(piece: () => Bytes[]): Bytes[] {
    const elements: Bytes[] = [];
    for (let left = this.#length(); left > 0; left--) {
      for (const element of piece()) elements.push(element);
    }
    return elements;
  }

  /** One long element, or several that are packed. */
  quicklistNode(): Bytes[] {
    const container = this.#length();
    return container === 1 ? [this.text()] : listpackElements(this.buffer());
  }

  score(): number {
    return this.take(8).readDoubleLE(0);
  }

  /** As versions before 4 write it. */
  oldScore(): number {
    const length = this.byte();
    if (length >= 253) return [Number.NaN, Infinity, -Infinity][length - 253];
    return Number(this.take(length).toString('latin1'));
  }

  #length(): number {
    const length = lengthBytes(this.bytes.readUInt8(this.#at));
    if (length === 0) throw new RangeError('not a length');
    const from = this.#at;
    this.take(length);
    return lengthAt(this.bytes, from);
  }

  length64(): bigint {
    if (this.bytes.readUInt8(this.#at) !== 0x81) return BigInt(this.#length());
    return this.take(9).readBigUInt64BE(1);
  }

  take(length: number): Buffer {
    const from = this.#at;
    if (from + length > this.bytes.length) throw new RangeError('the dump is not whole');
    this.#at += length;
    return this.bytes.subarray(from, this.#at);
  }
}
