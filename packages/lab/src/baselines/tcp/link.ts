/**
 * One TCP connection to another process. `add` encodes messages into a buffer; `flush` writes the buffer to the socket. There
 * are two buffers, which are reused: one is filled while the socket has the other.
 *
 * Caller: `TcpNetwork`, which flushes once per turn of the event loop.
 */
import type { Socket } from 'node:net';
import { FrameReader } from '../passing/frame-reader.js';
import { encode, frameWords } from '../passing/frames.js';
import type { Message } from '../passing/message.js';

const FIRST_BYTES = 1 << 16;

export class Link {
  /** The first address of the process at the other end; -1 until its hello arrives. */
  peer = -1;
  readonly reader: FrameReader;
  private filling = spaceOf(FIRST_BYTES);
  private spare = spaceOf(FIRST_BYTES);
  /** Words of `filling` that are used. */
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

  /** @returns true if the buffer was empty before */
  add(message: Message): boolean {
    if (!this.isOpen) return false;
    const end = this.used + frameWords(message);
    if (end > this.filling.words.length) this.grow(end);
    encode(message, this.filling.words, this.used);
    const isFirst = this.used === 0;
    this.used = end;
    return isFirst;
  }

  /** Has no effect during a write; its completion flushes again, with more messages in one write. */
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
