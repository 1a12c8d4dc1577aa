/**
 * Reads requests from the bytes of a connection, which may come in any pieces. A request is an array of bulk strings, or a line
 * of words (an *inline command*, as people type it).
 *
 * Arguments are parts of one string for each piece of input. V8 keeps that string as long as one of its parts is used: whoever
 * keeps an argument for longer than its request takes a copy (`copyOf`).
 */

import { constants } from 'node:buffer';
import { splitWords } from './inline.js';
import type { Bytes } from './reply.js';

/** The client does not speak the protocol. It gets this message, and the connection ends. */
export class ProtocolError extends Error {
  override name = 'ProtocolError';
}

export interface RequestLimits {
  /** The longest argument. */
  readonly bulkBytesMax: number;
  /** All arguments of a request together. */
  readonly requestBytesMax: number;
}

/** The longest line of a request: an inline command, or a length. */
const LINE_BYTES_MAX = 65_536;
const ARGUMENTS_MAX = 2 ** 31 - 1;
/** What a client may send that has not authenticated itself. */
const UNKNOWN_CLIENT_ARGUMENTS_MAX = 10;
const UNKNOWN_CLIENT_BULK_BYTES_MAX = 16_384;
/** Up to this size, a piece of input becomes one string; in larger ones, each argument becomes a string of its own. */
const TEXT_BYTES_MAX = 131_072;

const CR = 13;
const LF = 10;
const DOLLAR = 36;
const STAR = 42;
const ZERO = 48;
const NINE = 57;

const NOTHING = Buffer.alloc(0);

export class RequestParser {
  /** The request that `next` has found: the first word, and what follows it. */
  name: Bytes = '';
  args: Bytes[] = [];
  /** Others may only send small requests. */
  authenticated = false;

  #input: Buffer = NOTHING;
  /** We have not read the bytes from here to the end. */
  #at = 0;
  #end = 0;
  /** The input is a buffer of our own: what comes next can be added to it. */
  #owned = false;
  /** The input from `#textAt` on, once it was needed. */
  #text: string | undefined;
  #textAt = 0;

  /** What we have of the present request: its first word, and those after it. */
  #name: Bytes | undefined;
  #words: Bytes[] = [];
  #wordBytes = 0;
  /** How many arguments of it are to come. */
  #missing = 0;
  /** The length of the argument that comes next; -1: not known. */
  #bulkLength = -1;

  constructor(private readonly limits: RequestLimits) {}

  /** How many bytes it keeps of what it was given. */
  get heldBytes(): number {
    return this.#end - this.#at + this.#wordBytes;
  }

  /** The parser keeps the chunk: it must not change. */
  feed(chunk: Buffer): void {
    this.#text = undefined;
    const left = this.#end - this.#at;
    if (left === 0) {
      this.#input = chunk;
      this.#at = 0;
      this.#end = chunk.length;
      this.#owned = false;
      return;
    }
    if (!this.#owned || this.#end + chunk.length > this.#input.length) this.#makeRoom(chunk.length);
    chunk.copy(this.#input, this.#end);
    this.#end += chunk.length;
  }

  /**
   * @returns whether there is a whole request, in `name` and `args`
   * @throws ProtocolError
   */
  next(): boolean {
    for (;;) {
      if (this.#missing === 0) {
        if (this.#at === this.#end) {
          this.#input = NOTHING;
          this.#at = this.#end = 0;
          this.#text = undefined;
          return false;
        }
        if (this.#input[this.#at] !== STAR) {
          if (!this.#readInline()) return false;
          if (this.#name !== undefined) return this.#finish();
          continue;
        }
        const count = this.#readLength('mbulk');
        if (count === undefined) return false;
        if (Number.isNaN(count) || count > ARGUMENTS_MAX) {
          throw new ProtocolError('invalid multibulk length');
        }
        if (count > UNKNOWN_CLIENT_ARGUMENTS_MAX && !this.authenticated) {
          throw new ProtocolError('unauthenticated multibulk length');
        }
        if (count <= 0) continue;
        this.#missing = count;
      }
      while (this.#missing > 0) {
        if (!this.#readBulk()) return false;
      }
      return this.#finish();
    }
  }

  #finish(): true {
    this.name = this.#name!;
    this.args = this.#words;
    this.#name = undefined;
    this.#words = [];
    this.#wordBytes = 0;
    return true;
  }

  /** @returns false if there is more to come */
  #readBulk(): boolean {
    if (this.#bulkLength < 0) {
      const start = this.#at;
      const length = this.#readLength('bulk');
      if (length === undefined) return false;
      if (this.#input[start] !== DOLLAR) {
        const found = String.fromCharCode(this.#input[start]);
        throw new ProtocolError(`expected '$', got '${found}'`);
      }
      const { bulkBytesMax, requestBytesMax } = this.limits;
      if (!(length >= 0) || length > bulkBytesMax || length > constants.MAX_STRING_LENGTH) {
        throw new ProtocolError('invalid bulk length');
      }
      if (length > UNKNOWN_CLIENT_BULK_BYTES_MAX && !this.authenticated) {
        throw new ProtocolError('unauthenticated bulk length');
      }
      this.#wordBytes += length;
      if (this.#wordBytes > requestBytesMax) throw new ProtocolError('too big request');
      this.#bulkLength = length;
    }
    const end = this.#at + this.#bulkLength;
    // Two more bytes end it. As Redis does, we do not look at them.
    if (end + 2 > this.#end) return false;
    const word = this.#slice(this.#at, end);
    if (this.#name === undefined) this.#name = word;
    else this.#words.push(word);
    this.#at = end + 2;
    this.#bulkLength = -1;
    this.#missing--;
    return true;
  }

  /**
   * Reads a number after one character.
   * @returns undefined if the line has not come as a whole; NaN if it has no number
   */
  #readLength(what: 'mbulk' | 'bulk'): number | undefined {
    const input = this.#input;
    let value = 0;
    let i = this.#at + 1;
    for (; i < this.#end; i++) {
      const digit = input[i];
      if (digit < ZERO || digit > NINE) break;
      value = value * 10 + (digit - ZERO);
    }
    if (i >= this.#end || input[i] !== CR) return this.#readOddLength(what);
    if (i + 1 >= this.#end) return undefined;
    const digits = i - this.#at - 1;
    const plain = digits === 1 || (digits > 1 && input[this.#at + 1] !== ZERO);
    this.#at = i + 2;
    return plain && Number.isSafeInteger(value) ? value : Number.NaN;
  }

  /** A number that is not all digits, or not all there. */
  #readOddLength(what: 'mbulk' | 'bulk'): number | undefined {
    const cr = this.#indexOf(CR);
    if (cr < 0) {
      if (this.#end - this.#at > LINE_BYTES_MAX) {
        throw new ProtocolError(`too big ${what} count string`);
      }
      return undefined;
    }
    if (cr + 1 >= this.#end) return undefined;
    const text = this.#input.toString('latin1', this.#at + 1, cr);
    this.#at = cr + 2;
    return /^-[1-9]\d{0,17}$/.test(text) ? Number(text) : Number.NaN;
  }

  /** @returns false if the line has not come as a whole */
  #readInline(): boolean {
    const lf = this.#indexOf(LF);
    if (lf < 0) {
      if (this.#end - this.#at > LINE_BYTES_MAX) throw new ProtocolError('too big inline request');
      return false;
    }
    const end = lf > this.#at && this.#input[lf - 1] === CR ? lf - 1 : lf;
    const words = splitWords(this.#slice(this.#at, end));
    if (words === undefined) throw new ProtocolError('unbalanced quotes in request');
    this.#at = lf + 1;
    this.#name = words.shift();
    this.#words = words;
    return true;
  }

  #indexOf(byte: number): number {
    const found = this.#input.indexOf(byte, this.#at);
    return found < this.#end ? found : -1;
  }

  #slice(from: number, to: number): Bytes {
    if (this.#text === undefined) {
      if (this.#end - from > TEXT_BYTES_MAX) return this.#input.toString('latin1', from, to);
      this.#text = this.#input.toString('latin1', from, this.#end);
      this.#textAt = from;
    }
    return this.#text.substring(from - this.#textAt, to - this.#textAt);
  }

  /**
   * Moves what we have not read into a buffer that has room for so many bytes more. If we know how much is to come it is twice as
   * large, so that an argument that comes in many pieces is not copied for each one.
   */
  #makeRoom(bytes: number): void {
    const needed = this.#end - this.#at + bytes;
    const expected = this.#bulkLength < 0 ? 0 : this.#bulkLength + 2;
    const input = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(2 * needed, expected)));
    this.#input.copy(input, 0, this.#at, this.#end);
    this.#end -= this.#at;
    this.#at = 0;
    this.#input = input;
    this.#owned = true;
  }
}

/** A string that does not keep the input alive of which it was a part. */
export function copyOf(bytes: Bytes): Bytes {
  return Buffer.from(bytes, 'latin1').toString('latin1');
}
