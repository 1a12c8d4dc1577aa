/**
 * Reads replies of RESP 2 or 3: those of shards that are merged to one. What they hold is whole and well-formed.
 *
 * RESP does not tell everything: `Pairs` come back as an array, and `NullArray` of RESP 3 as null.
 */

import { parseDouble } from './number.js';
import {
  BigNumber,
  BooleanReply,
  Double,
  ErrorReply,
  MapReply,
  NullArray,
  Push,
  type Reply,
  SetReply,
  Simple,
  Verbatim,
} from './reply.js';

export function readReply(bytes: Uint8Array): Reply {
  return new ReplyReader(bytes).read();
}

export class ReplyReader {
  /** Where the next reply begins. */
  position = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): Reply {
    const line = this.#line();
    const rest = line.slice(1);
    switch (line[0]) {
      case '+':
        return new Simple(rest);
      case '-':
        return new ErrorReply(rest);
      case ':':
        return integerOf(rest);
      case '$':
        return rest === '-1' ? null : this.#text(Number(rest));
      case '*':
        return rest === '-1' ? NullArray.instance : this.#items(Number(rest));
      case '_':
        return null;
      case '#':
        return new BooleanReply(rest === 't');
      case '(':
        return new BigNumber(rest);
      case ',':
        return new Double(parseDouble(rest));
      case '%':
        return new MapReply(
          Array.from({ length: Number(rest) }, () => [this.read(), this.read()] as const),
        );
      case '~':
        return new SetReply(this.#items(Number(rest)));
      case '>':
        return new Push(this.#items(Number(rest)));
      case '=':
        return verbatimOf(this.#text(Number(rest)));
      default:
        throw new TypeError(`not a reply of RESP: ${JSON.stringify(line.slice(0, 20))}`);
    }
  }

  #items(length: number): Reply[] {
    return Array.from({ length }, () => this.read());
  }

  #line(): string {
    const end = this.#bytes.indexOf('\r\n', this.position, 'latin1');
    if (end < 0) throw new TypeError('a reply of RESP is not whole');
    const line = this.#bytes.toString('latin1', this.position, end);
    this.position = end + 2;
    return line;
  }

  #text(length: number): string {
    const end = this.position + length;
    if (end + 2 > this.#bytes.length) throw new TypeError('a reply of RESP is not whole');
    const text = this.#bytes.toString('latin1', this.position, end);
    this.position = end + 2;
    return text;
  }
}

function verbatimOf(text: string): Verbatim {
  return new Verbatim(text.slice(4), text.slice(0, 3));
}

function integerOf(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}
