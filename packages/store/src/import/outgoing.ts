/** Gathers what is to be sent to a server, so that many commands go in one write. */

import type { Socket } from 'node:net';
import type { Bytes } from '../resp/reply.js';

/** The words of a command. */
export type Words = readonly (Bytes | Buffer)[];

const PIECE_BYTES = 65_536;

export class Outgoing {
  #piece = Buffer.allocUnsafe(PIECE_BYTES);
  #length = 0;
  #willFlush = false;

  constructor(private readonly socket: Socket) {}

  /** It is written at the end of this turn of the event loop at the latest. @returns how many bytes it has */
  add(words: Words): number {
    let bytes = this.#add(`*${words.length}\r\n`);
    for (const word of words)
      bytes += this.#add(`$${word.length}\r\n`) + this.#add(word) + this.#add('\r\n');
    if (!this.#willFlush) {
      this.#willFlush = true;
      setImmediate(() => {
        this.#willFlush = false;
        this.#flush();
      });
    }
    return bytes;
  }

  #add(part: Bytes | Buffer): number {
    const { length } = part;
    if (this.#length + length > PIECE_BYTES) this.#flush();
    if (length > PIECE_BYTES) {
      this.socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
    } else if (typeof part === 'string') {
      this.#length += this.#piece.write(part, this.#length, 'latin1');
    } else {
      this.#length += part.copy(this.#piece, this.#length);
    }
    return length;
  }

  #flush(): void {
    if (this.#length === 0) return;
    this.socket.write(this.#piece.subarray(0, this.#length));
    this.#piece = Buffer.allocUnsafe(PIECE_BYTES);
    this.#length = 0;
  }
}
