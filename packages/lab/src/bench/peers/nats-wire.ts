/** The part of the NATS text protocol that a JetStream client needs. Called by `nats.ts`. */

export interface Message {
  readonly subject: string;
  /** A view, valid during the call. */
  readonly payload: Buffer;
  /** The first line of the headers, if there are any: `NATS/1.0 503` means that the subject has no listener. */
  readonly status?: string;
}

export interface NatsListener {
  message(message: Message): void;
  ping(): void;
  pong(): void;
  error(text: string): void;
}

const CONNECT_OPTIONS = {
  verbose: false,
  pedantic: false,
  headers: true,
  no_responders: true,
  lang: 'tram',
  version: '0',
} as const;

export const CONNECT: string = `CONNECT ${JSON.stringify(CONNECT_OPTIONS)}\r\n`;
export const PING = 'PING\r\n';
export const PONG = 'PONG\r\n';

export function encodePublish(subject: string, replyTo: string, payload: Uint8Array): Buffer {
  const head = Buffer.from(`PUB ${subject} ${replyTo} ${payload.length}\r\n`);
  return Buffer.concat([head, payload, Buffer.from('\r\n')]);
}

export function encodeSubscribe(subject: string, id: number): string {
  return `SUB ${subject} ${id}\r\n`;
}

const LINE_FEED = 10;

/** Splits a byte stream into operations of the server. Chunks may begin and end anywhere. */
export class NatsReader {
  private bytes: Buffer = Buffer.alloc(0);
  private at = 0;

  constructor(private readonly listener: NatsListener) {}

  push(chunk: Buffer): void {
    this.bytes =
      this.at < this.bytes.length ? Buffer.concat([this.bytes.subarray(this.at), chunk]) : chunk;
    this.at = 0;
    while (this.read());
  }

  /** @returns false if the operation is not complete yet */
  private read(): boolean {
    const end = this.bytes.indexOf(LINE_FEED, this.at);
    if (end < 0) return false;
    const line = this.bytes.toString('latin1', this.at, end - 1);
    const [operation, ...words] = line.split(' ');
    switch (operation) {
      case 'MSG':
        return this.readMessage(words, end + 1, 0);
      case 'HMSG':
        return this.readMessage(words, end + 1, Number(words.at(-2)));
      case 'PING':
        this.listener.ping();
        break;
      case 'PONG':
        this.listener.pong();
        break;
      case '-ERR':
        this.listener.error(line.slice(operation.length + 1));
        break;
      case 'INFO':
      case '+OK':
        break;
      default:
        throw new Error(`unknown operation of NATS: ${line}`);
    }
    this.at = end + 1;
    return true;
  }

  private readMessage(words: readonly string[], start: number, headerBytes: number): boolean {
    const end = start + Number(words.at(-1));
    if (end + 2 > this.bytes.length) return false;
    const payload = this.bytes.subarray(start + headerBytes, end);
    this.at = end + 2;
    const subject = words[0];
    if (headerBytes === 0) {
      this.listener.message({ subject, payload });
    } else {
      const status = this.bytes.toString('latin1', start, this.bytes.indexOf(LINE_FEED, start) - 1);
      this.listener.message({ subject, payload, status });
    }
    return true;
  }
}
