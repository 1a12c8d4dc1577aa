/** A gateway with shards in this thread, and a plain client. */

import { connect, type Socket } from 'node:net';
import type { BackendListener } from '../../src/backend/backend.js';
import { Gateway } from '../../src/gateway/gateway.js';
import { GatewayServer, type ListenOptions } from '../../src/gateway/server.js';
import { Settings } from '../../src/gateway/settings.js';
import { ReplyReader, readReply } from '../../src/resp/reader.js';
import type { Reply } from '../../src/resp/reply.js';
import { LocalBackend } from './local-backend.js';

export interface Started {
  readonly gateway: Gateway;
  readonly server: GatewayServer;
  readonly backend: LocalBackend;
  readonly port: number;
  close(): Promise<void>;
}

/** @param beside  a gateway with the same shards, to be closed after this one */
export async function startGateway(
  settings: Readonly<Record<string, string>> = {},
  listen: ListenOptions = { port: 0 },
  shards = 4,
  beside?: Started,
): Promise<Started> {
  const listener: BackendListener = {
    published: (channel, message, isSharded) => gateway.published(channel, message, isSharded),
    forgotten: (shard) => gateway.forgotten(shard),
  };
  const backend = new LocalBackend(shards, listener, beside?.backend);
  const facts = {
    replicas: 3,
    isDurable: false,
    isKept: false,
    lookAtShards: async () => [],
  };
  const gateway: Gateway = new Gateway(backend, new Settings(settings), facts);
  const server = new GatewayServer(gateway);
  await server.listen(listen);
  const close = async (): Promise<void> => {
    await server.close(1000);
    await backend.close();
  };
  return { gateway, server, backend, port: server.port, close };
}

/** Sends requests and reads replies one by one, also those that nobody has asked for. */
export class PlainClient {
  #received = Buffer.alloc(0);
  #isEnded = false;
  #wake: () => void = () => undefined;

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#isEnded = true;
      this.#wake();
    });
  }

  static connect(port: number): Promise<PlainClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new PlainClient(socket)));
      socket.once('error', reject);
    });
  }

  static of(socket: Socket): PlainClient {
    return new PlainClient(socket);
  }

  /** @param words  separated by spaces */
  async ask(words: string): Promise<Reply> {
    this.send(words.split(' '));
    return this.read();
  }

  send(words: readonly string[]): void {
    const bulks = words.map((word) => `$${Buffer.byteLength(word, 'latin1')}\r\n${word}\r\n`);
    this.sendRaw(`*${words.length}\r\n${bulks.join('')}`);
  }

  sendRaw(text: string): void {
    this.socket.write(text, 'latin1');
  }

  /** @throws if the connection ends before */
  async read(): Promise<Reply> {
    for (;;) {
      const reader = new ReplyReader(this.#received);
      const reply = wholeReply(reader);
      if (reply !== undefined) {
        this.#received = this.#received.subarray(reader.position);
        return reply;
      }
      if (this.#isEnded) throw new Error('the connection has ended');
      await this.#more();
    }
  }

  /** Waits for so many replies that were not read yet. They remain to be read. */
  async untilReplied(count: number): Promise<void> {
    while (!this.#isEnded && !this.#hasReplies(count)) await this.#more();
  }

  #hasReplies(count: number): boolean {
    const reader = new ReplyReader(this.#received);
    for (let i = 0; i < count; i++) if (wholeReply(reader) === undefined) return false;
    return true;
  }

  /** Everything until the connection ends. */
  async readAll(): Promise<string> {
    while (!this.#isEnded) await this.#more();
    return this.#received.toString('latin1');
  }

  close(): void {
    this.socket.destroy();
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function wholeReply(reader: ReplyReader): Reply | undefined {
  try {
    return reader.read();
  } catch {
    return undefined;
  }
}

export { readReply };
