/** Writes replies as RESP 2 or 3, into a buffer that grows and is used again. */

import { formatDouble } from './number.js';
import {
  BigNumber,
  BooleanReply,
  type Bytes,
  Double,
  ErrorReply,
  MapOrPairs,
  MapReply,
  NullArray,
  Pairs,
  Push,
  type Reply,
  SetReply,
  Simple,
  Verbatim,
} from './reply.js';

export type Protocol = 2 | 3;

/** Up to this length a loop is faster than a call of native code. */
const SHORT = 32;
/** The room for a type, a length and the end of the line. */
const HEADER_BYTES = 24;

const CR = 13;
const LF = 10;
const SPACE = 32;
const OPEN = 40;
const PLUS = 43;
const MINUS = 45;

export class ReplyWriter {
  length = 0;
  #buffer: Buffer;

  constructor(capacity = 1024) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
  }

  get capacity(): number {
    return this.#buffer.length;
  }

  /** It begins with what was written. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  /** What was written. It is valid until something else is written. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }

  /** What was written, as bytes of its own. */
  copy(): Buffer {
    return Buffer.from(this.written());
  }

  /** @returns the message of the error that was written at this position; undefined if it is none */
  errorAt(position: number): Bytes | undefined {
    if (position >= this.length || this.#buffer[position] !== MINUS) return undefined;
    const end = this.#buffer.indexOf(CR, position);
    return this.#buffer.toString('latin1', position + 1, end);
  }

  clear(): void {
    this.length = 0;
  }

  /** Gives away what was written, and begins with another buffer. */
  take(): Buffer {
    const written = this.written();
    this.#buffer = Buffer.allocUnsafeSlow(1024);
    this.length = 0;
    return written;
  }

  write(reply: Reply, protocol: Protocol): void {
    if (typeof reply === 'string') this.writeBulk(reply);
    else if (typeof reply === 'number') this.writeInteger(reply);
    else if (reply === null) this.writeText(protocol === 3 ? '_\r\n' : '$-1\r\n');
    else if (reply instanceof Simple) this.#writeLine(PLUS, reply.text);
    else if (Array.isArray(reply)) this.#writeItems('*', reply, protocol);
    else this.#writeOther(reply as Exclude<Reply, readonly Reply[]>, protocol);
  }

  writeInteger(value: number): void {
    if (value >= 0 && value <= 0x7fffffff) this.#writeHeader(58, value);
    else this.writeText(`:${value}\r\n`);
  }

  writeArrayHeader(length: number): void {
    this.#writeHeader(42, length);
  }

  writeBulk(bytes: Bytes): void {
    this.#writeHeader(36, bytes.length);
    this.#reserve(bytes.length + 2);
    this.#put(bytes);
    this.#buffer[this.length++] = CR;
    this.#buffer[this.length++] = LF;
  }

  /** Text that is RESP already. */
  writeText(text: Bytes): void {
    this.#reserve(text.length);
    this.#put(text);
  }

  /** Bytes that are RESP already. */
  writeRaw(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#reserve(length);
    if (length <= SHORT) {
      const buffer = this.#buffer;
      let at = this.length;
      for (let i = 0; i < length; i++) buffer[at++] = bytes[i];
    } else this.#buffer.set(bytes, this.length);
    this.length += length;
  }

  #writeOther(reply: Exclude<Reply, readonly Reply[]>, protocol: Protocol): void {
    if (typeof reply === 'bigint') this.writeText(`:${reply}\r\n`);
    else if (reply instanceof ErrorReply) this.#writeLine(MINUS, reply.message);
    else if (reply instanceof NullArray) this.writeText(protocol === 3 ? '_\r\n' : '*-1\r\n');
    else if (reply instanceof Double) this.#writeDouble(reply, protocol);
    else if (reply instanceof BooleanReply) this.#writeBoolean(reply.value, protocol);
    else if (reply instanceof BigNumber) this.#writeBigNumber(reply.digits, protocol);
    else if (reply instanceof Pairs) this.#writePairs(reply, protocol);
    else if (reply instanceof MapReply) this.#writeMap(reply, protocol);
    else if (reply instanceof MapOrPairs) {
      if (protocol === 3) this.#writeMap(reply, protocol);
      else this.#writeItems('*', reply.entries, protocol);
    } else if (reply instanceof SetReply) {
      this.#writeItems(protocol === 3 ? '~' : '*', reply.members, protocol);
    } else if (reply instanceof Push) {
      this.#writeItems(protocol === 3 ? '>' : '*', reply.items, protocol);
    } else if (reply instanceof Verbatim) this.#writeVerbatim(reply, protocol);
  }

  /** A simple string, an error or a big number has no line ends: as Redis does, they become spaces. */
  #writeLine(type: number, text: string): void {
    this.#reserve(text.length + 3);
    const buffer = this.#buffer;
    let at = this.length;
    buffer[at++] = type;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      buffer[at++] = code === CR || code === LF ? SPACE : code;
    }
    buffer[at++] = CR;
    buffer[at++] = LF;
    this.length = at;
  }

  #writeItems(type: string, items: readonly Reply[], protocol: Protocol): void {
    this.#writeHeader(type.charCodeAt(0), items.length);
    for (const item of items) this.write(item, protocol);
  }

  #writeDouble({ value, text = formatDouble(value) }: Double, protocol: Protocol): void {
    if (protocol === 3) this.writeText(`,${text}\r\n`);
    else this.writeBulk(text);
  }

  #writeBoolean(value: boolean, protocol: Protocol): void {
    if (protocol === 3) this.writeText(value ? '#t\r\n' : '#f\r\n');
    else this.writeInteger(value ? 1 : 0);
  }

  #writeBigNumber(digits: Bytes, protocol: Protocol): void {
    if (protocol === 3) this.#writeLine(OPEN, digits);
    else this.writeBulk(digits);
  }

  #writePairs({ pairs }: Pairs, protocol: Protocol): void {
    this.writeArrayHeader(protocol === 3 ? pairs.length : 2 * pairs.length);
    for (const [first, second] of pairs) {
      if (protocol === 3) this.writeArrayHeader(2);
      this.write(first, protocol);
      this.write(second, protocol);
    }
  }

  #writeMap({ entries }: MapReply | MapOrPairs, protocol: Protocol): void {
    if (protocol === 3) this.#writeHeader(37, entries.length);
    else this.writeArrayHeader(2 * entries.length);
    for (const [key, value] of entries) {
      this.write(key, protocol);
      this.write(value, protocol);
    }
  }

  #writeVerbatim({ text, format }: Verbatim, protocol: Protocol): void {
    if (protocol === 2) this.writeBulk(text);
    else {
      this.writeText(`=${text.length + 4}\r\n${format}:`);
      this.writeText(text);
      this.writeText('\r\n');
    }
  }

  /** A type with a number that is not negative. */
  #writeHeader(type: number, value: number): void {
    this.#reserve(HEADER_BYTES);
    const buffer = this.#buffer;
    buffer[this.length++] = type;
    if (value < 10) buffer[this.length++] = 48 + value;
    else {
      let digits = 1;
      for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
      let at = this.length + digits;
      this.length = at;
      for (let rest = value; digits > 0; digits--) {
        buffer[--at] = 48 + (rest % 10);
        rest = Math.floor(rest / 10);
      }
    }
    buffer[this.length++] = CR;
    buffer[this.length++] = LF;
  }

  /** There must be room. */
  #put(bytes: Bytes): void {
    const { length } = bytes;
    if (length <= SHORT) {
      const buffer = this.#buffer;
      let at = this.length;
      for (let i = 0; i < length; i++) buffer[at++] = bytes.charCodeAt(i);
    } else this.#buffer.write(bytes, this.length, 'latin1');
    this.length += length;
  }

  #reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#buffer.length) return;
    const buffer = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(buffer, 0, 0, this.length);
    this.#buffer = buffer;
  }
}
