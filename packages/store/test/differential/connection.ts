/** A plain client: sends commands one after the other without waiting, and returns their replies. */

import { connect, type Socket } from 'node:net';
import type { Target } from './target.js';
import { parseWire, type Wire } from './wire.js';

export type Address = { readonly path: string } | { readonly port: number };

interface Waiting {
  readonly replies: Wire[];
  readonly count: number;
  resolve(replies: Wire[]): void;
  reject(error: Error): void;
}

export class Connection implements Target {
  #received: Buffer = Buffer.alloc(0);
  #waiting: Waiting | undefined;
  #protocol: 2 | 3 = 2;

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#waiting?.reject(error));
    socket.on('close', () => this.#waiting?.reject(new Error('the connection was closed')));
  }

  static open(address: Address): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(address, () => resolve(new Connection(socket)));
      socket.once('error', reject);
    });
  }

  async run(commands: readonly (readonly string[])[], protocol: 2 | 3): Promise<Wire[]> {
    if (protocol !== this.#protocol) await this.#send([['HELLO', String(protocol)]]);
    this.#protocol = protocol;
    return this.#send(commands);
  }

  close(): void {
    this.socket.destroy();
  }

  #send(commands: readonly (readonly string[])[]): Promise<Wire[]> {
    if (commands.length === 0) return Promise.resolve([]);
    const request = commands.map(
      (args) => `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`,
    );
    return new Promise((resolve, reject) => {
      this.#waiting = { replies: [], count: commands.length, resolve, reject };
      this.socket.write(request.join(''), 'latin1');
    });
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    const waiting = this.#waiting;
    let from = 0;
    while (waiting && waiting.replies.length < waiting.count) {
      const reply = parseWire(this.#received, from);
      if (reply === undefined) break;
      waiting.replies.push(reply.wire);
      from = reply.end;
    }
    this.#received = this.#received.subarray(from);
    if (waiting?.replies.length === waiting?.count) {
      this.#waiting = undefined;
      waiting?.resolve(waiting.replies);
    }
  }
}
