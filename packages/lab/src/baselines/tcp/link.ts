/**
 * One TCP connection with another process. Messages are encoded into a buffer as they are sent; `flush`
 * writes all of it to the socket at once. There are two buffers: one is filled while the socket has the
 * other, and neither is ever given up.
 *
 * Caller: `TcpNetwork`, which flushes once per turn of the event loop.
 */
import type { Socket } from 'node:net';
import { FrameReader } from '../passing/frame-reader.js';
import { encode, frameWords } from '../passing/frames.js';
import type { Message } from '../passing/message.js';

const FIRST_BYTES = 1 << 16;

export class Link {
  /** The address of the process at the other end, or the first of its addresses; -1 until it has told. */
  peer = -1;
  readonly reader: FrameReader;
  private filling = spaceOf(FIRST_BYTES);
  private spare = spaceOf(FIRST_BYTES);
  /** Words of `filling` that are to be written. */
  private used = 0;
  private isWriting = false;
  private isOpen = true;

  constructor(
    private readonly socket: Socket,
    receive: (link: Link, message: Message) => void,
  ) {
    this.reader = new FrameReader((message) => receive(this, message));
    socket.once('close', () => {
      this.isOpen = false;
    });
  }

  /** @returns true if there is something to write now, and was not before */
  add(message: Message): boolean {
    if (!this.isOpen) return false;
    const end = this.used + frameWords(message);
    if (end > this.filling.words.length) this.grow(end);
    encode(message, this.filling.words, this.used);
    const isFirst = this.used === 0;
    this.used = end;
    return isFirst;
  }

  /** While the last write is not done yet, this waits for it: then more goes out at once. */
  flush(): void {
    if (this.used === 0 || this.isWriting || !this.isOpen) return;
    const filled = this.filling;
    const filledBytes = this.used * 4;
    this.filling = this.spare;
    this.spare = filled;
    this.used = 0;
    this.isWriting = true;
    this.socket.write(filled.bytes.subarray(0, filledBytes), this.written);
  }

  close(): void {
    this.socket.destroy();
  }

  private readonly written = (): void => {
    this.isWriting = false;
    this.flush();
  };

  private grow(wordsNeeded: number): void {
    let size = this.filling.bytes.length;
    while (size < wordsNeeded * 4) size *= 2;
    const larger = spaceOf(size);
    larger.words.set(this.filling.words);
    this.filling = larger;
  }
}

/** The same memory as words and as bytes. */
interface Space {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

function spaceOf(size: number): Space {
  const words = new Int32Array(size / 4);
  return { words, bytes: new Uint8Array(words.buffer) };
}
