/** A connection to a server: sends commands without waiting for the replies, but not endlessly many of them. */

import type { Socket } from 'node:net';
import { StoreError } from '../options.js';
import { ErrorReply, type Reply } from '../resp/reply.js';
import { Input } from './input.js';
import { Outgoing, type Words } from './outgoing.js';
import { nextReply } from './replies.js';
import { nameOf, openSocket, received, type Server } from './server.js';

/** How much may be unanswered before `room` waits. */
const COMMANDS_MAX = 4096;
const BYTES_MAX = 4 * 1024 ** 2;

/** No further reply is read until it has returned. What it throws, those get who use the connection. */
export type Answered = (reply: Reply) => void | Promise<void>;

interface Sent {
  readonly bytes: number;
  readonly answered: Answered;
}

export class Connection {
  readonly #outgoing: Outgoing;
  /** What was sent and is not answered, from `#first` on. */
  readonly #sent: Sent[] = [];
  #first = 0;
  #bytes = 0;
  #failure: Error | undefined;
  /** Those that wait for a reply. */
  #waiting: (() => void)[] = [];

  private constructor(
    private readonly socket: Socket,
    private readonly name: string,
  ) {
    this.#outgoing = new Outgoing(socket);
    void this.#read();
  }

  /** Authenticates as well. @throws StoreError */
  static async open(server: Server): Promise<Connection> {
    const connection = new Connection(await openSocket(server), nameOf(server.place));
    try {
      await logIn(server, (words) => connection.ask(words));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** @throws StoreError */
  send(words: Words, answered: Answered): void {
    if (this.#failure !== undefined) throw this.#failure;
    const bytes = this.#outgoing.add(words);
    this.#bytes += bytes;
    this.#sent.push({ bytes, answered });
  }

  /** @returns once more can be sent. @throws StoreError */
  async room(): Promise<void> {
    while (this.#unanswered >= COMMANDS_MAX || this.#bytes >= BYTES_MAX) await this.#progress();
  }

  /** @returns once everything is answered. @throws StoreError */
  async settled(): Promise<void> {
    while (this.#unanswered > 0) await this.#progress();
  }

  /** @throws StoreError */
  async ask(words: Words): Promise<Reply> {
    let reply: Reply | undefined;
    this.send(words, (answer) => {
      reply = answer;
    });
    while (reply === undefined) await this.#progress();
    return reply;
  }

  /** It is not known whether what was not answered is carried out. */
  close(): void {
    this.socket.destroy();
  }

  get #unanswered(): number {
    return this.#sent.length - this.#first;
  }

  async #progress(): Promise<void> {
    if (this.#failure === undefined) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #read(): Promise<void> {
    const hint = 'See what has become of this server.';
    const input = new Input(received(this.socket, this.name, hint));
    try {
      while (this.#failure === undefined) await this.#answer(await nextReply(input));
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #fail(error: Error): void {
    this.#failure = error;
    this.socket.destroy();
    this.#wake();
  }

  async #answer(reply: Reply): Promise<void> {
    const sent = this.#sent[this.#first];
    // Redis says why before it closes the connection.
    if (sent === undefined) {
      const message = reply instanceof ErrorReply ? reply.message : 'a reply to nothing';
      throw new StoreError(
        `${this.name} has sent ${message}`,
        'See what has become of this server.',
      );
    }
    this.#first++;
    if (this.#first > COMMANDS_MAX) {
      this.#sent.splice(0, this.#first);
      this.#first = 0;
    }
    this.#bytes -= sent.bytes;
    try {
      await sent.answered(reply);
      this.#wake();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

/** @param ask  sends a command, and returns its reply. @throws StoreError if the server does not accept us */
export async function logIn(server: Server, ask: (words: Words) => Promise<Reply>): Promise<void> {
  const { username, password, place } = server;
  if (password !== undefined) {
    const names = username === undefined ? [] : [username];
    requireAccess(await ask(['AUTH', ...names, password]), place);
  }
  requireAccess(await ask(['PING']), place);
}

function requireAccess(reply: Reply, place: Server['place']): void {
  if (!(reply instanceof ErrorReply)) return;
  const hint = reply.message.startsWith('NOAUTH')
    ? 'Give its password: see tram-store import --help.'
    : 'Check the password and the address.';
  throw new StoreError(`${nameOf(place)} refuses us: ${reply.message}`, hint);
}
