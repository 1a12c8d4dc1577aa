/** The part of the Redis protocol, version 2, that a client needs. Called by `redis.ts`. */

/** An error reply is a value: in a transaction it is one of several replies. */
export class RespError {
  constructor(readonly message: string) {}
}

export type Reply = string | number | null | RespError | readonly Reply[];

export function encodeCommand(...words: readonly (string | Uint8Array)[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = typeof word === 'string' ? Buffer.from(word) : word;
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

const CARRIAGE_RETURN = 13;
const MINUS = 45;
const TYPE = { text: 43, error: 45, integer: 58, bulk: 36, array: 42 } as const;

/** Splits a byte stream into replies. Chunks may begin and end anywhere. */
export class ReplyReader {
  private bytes: Buffer = Buffer.alloc(0);
  private at = 0;

  constructor(private readonly onReply: (reply: Reply) => void) {}

  push(chunk: Buffer): void {
    this.bytes =
      this.at < this.bytes.length ? Buffer.concat([this.bytes.subarray(this.at), chunk]) : chunk;
    this.at = 0;
    for (;;) {
      const start = this.at;
      const reply = this.read();
      if (reply === undefined) {
        // The reply is not complete: read it again with the next chunk.
        this.at = start;
        return;
      }
      this.onReply(reply);
    }
  }

  /** @returns undefined if the reply is not complete yet */
  private read(): Reply | undefined {
    const start = this.at;
    const end = this.bytes.indexOf(CARRIAGE_RETURN, start);
    if (end < 0 || end + 1 >= this.bytes.length) return undefined;
    this.at = end + 2;
    const type = this.bytes[start];
    switch (type) {
      case TYPE.text:
        return this.bytes.toString('latin1', start + 1, end);
      case TYPE.error:
        return new RespError(this.bytes.toString('utf8', start + 1, end));
      case TYPE.integer:
        return this.integer(start + 1, end);
      case TYPE.bulk:
        return this.readBulk(this.integer(start + 1, end));
      case TYPE.array:
        return this.readArray(this.integer(start + 1, end));
      default:
        throw new Error(`no reply of Redis begins with byte ${type}`);
    }
  }

  private readBulk(length: number): string | null | undefined {
    if (length < 0) return null;
    const start = this.at;
    if (start + length + 2 > this.bytes.length) return undefined;
    this.at = start + length + 2;
    return this.bytes.toString('utf8', start, start + length);
  }

  private readArray(length: number): Reply | undefined {
    if (length < 0) return null;
    const replies: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const reply = this.read();
      if (reply === undefined) return undefined;
      replies.push(reply);
    }
    return replies;
  }

  private integer(from: number, end: number): number {
    const isNegative = this.bytes[from] === MINUS;
    let value = 0;
    for (let i = isNegative ? from + 1 : from; i < end; i++)
      value = value * 10 + this.bytes[i] - 48;
    return isNegative ? -value : value;
  }
}
