/** A connection: bytes in, bytes out, and its end. */

import type { Socket } from 'node:net';
import type { Push } from '../resp/reply.js';
import type { ReplyWriter } from '../resp/writer.js';
import type { Client } from './client.js';
import { Conversation } from './conversation.js';
import type { Flushed, Flushes } from './flushes.js';
import type { Gateway } from './gateway.js';
import type { Line } from './line.js';
import type { Session } from './session.js';
import type { Writers } from './writers.js';

/** Above this, no more requests of a client are carried out until it has read replies. */
const UNREAD_BYTES_MAX = 1024 * 1024;
/** As long as a client has not authenticated itself: what it may leave unread, and how long it may take. */
const STRANGER_UNREAD_BYTES_MAX = 16 * 1024;
const STRANGER_MS = 60_000;
/** How long a client may take to read the last replies. */
const LAST_WORDS_MS = 10_000;

/** What the connections of one gateway share for their input and output. */
export interface Desk {
  readonly gateway: Gateway;
  readonly writers: Writers;
  readonly flushes: Flushes;
}

export class Connection implements Client, Line, Flushed {
  readonly id: number;
  readonly gateway: Gateway;
  readonly conversation: Conversation;
  readonly address: string;
  readonly localAddress: string;
  readonly beganMs = Date.now();
  lastActiveMs = this.beganMs;
  isClosed = false;
  /** What was written in this turn. */
  #writer: ReplyWriter | undefined;
  #isFlushing = false;
  #isEnding = false;
  #endingSinceMs = 0;
  #isPaused = false;
  /** The conversation was told that the client does not read, and waits. */
  #isHeldBack = false;
  /** Since when the client has not authenticated itself. */
  #strangerSinceMs = 0;
  /** Since when the client has read too little. */
  #slowSinceMs = 0;

  /** @param path  of the Unix socket, if it is one */
  constructor(
    private readonly desk: Desk,
    private readonly socket: Socket,
    private readonly path: string | undefined,
  ) {
    this.gateway = desk.gateway;
    this.id = this.gateway.nextId();
    this.address =
      path === undefined ? addressOf(socket.remoteAddress, socket.remotePort) : `${path}:0`;
    this.localAddress =
      path === undefined ? addressOf(socket.localAddress, socket.localPort) : `${path}:0`;
    this.conversation = new Conversation(this.gateway, this);
    this.gateway.clients.set(this.id, this);
    this.gateway.stats.connections++;
    const { keepAliveMs } = this.gateway.settings;
    if (path === undefined) socket.setNoDelay(true);
    if (path === undefined && keepAliveMs > 0) socket.setKeepAlive(true, keepAliveMs);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('end', () => this.#guard(() => this.conversation.receiveEnd()));
    socket.on('drain', () => this.#drained());
    // A client that disappears is nothing unusual. `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#close());
  }

  get client(): Client {
    return this;
  }

  get session(): Session {
    return this.conversation.session;
  }

  get isLocal(): boolean {
    return this.path !== undefined;
  }

  get outputBytes(): number {
    return this.socket.writableLength + (this.#writer?.length ?? 0);
  }

  output(): ReplyWriter {
    this.#writer ??= this.desk.writers.take();
    return this.#writer;
  }

  flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.desk.flushes.add(this);
  }

  flush(): void {
    this.#isFlushing = false;
    const writer = this.#writer;
    this.#writer = undefined;
    if (writer !== undefined) this.#send(writer);
    if (this.#isEnding) this.socket.end();
  }

  #send(writer: ReplyWriter): void {
    const { writers } = this.desk;
    if (this.isClosed || writer.length === 0) {
      writers.giveBack(writer);
      return;
    }
    this.gateway.stats.outputBytes += writer.length;
    this.socket.write(writer.written());
    // Otherwise the system has not taken all of it, and the buffer belongs to the socket.
    if (this.socket.writableLength > 0) return;
    writers.giveBack(writer);
    this.#drained();
  }

  isFull(): boolean {
    const max = this.session.isAuthenticated ? UNREAD_BYTES_MAX : STRANGER_UNREAD_BYTES_MAX;
    const isFull = this.outputBytes > max;
    if (isFull) this.#isHeldBack = true;
    return isFull;
  }

  pauseReading(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.socket.pause();
  }

  resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.socket.resume();
  }

  push(message: Push): void {
    if (this.isClosed) return;
    this.output().write(message, this.session.resp);
    this.flushSoon();
    this.#checkOutput(Date.now());
  }

  endAfterReply(): void {
    this.conversation.over();
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#endingSinceMs = Date.now();
    // What the client still sends is not read any more, but it has to be taken for the connection to close.
    this.resumeReading();
    this.flushSoon();
  }

  kill(): void {
    this.socket.destroy();
  }

  /** Called once a second. */
  check(nowMs: number): void {
    const { timeoutMs } = this.gateway.settings;
    const isWaiting = this.conversation.isBlocked || this.session.subscriptions > 0;
    if (timeoutMs > 0 && !isWaiting && nowMs - this.lastActiveMs > timeoutMs) this.kill();
    this.#checkStranger(nowMs);
    if (this.#isEnding && nowMs - this.#endingSinceMs > LAST_WORDS_MS) this.kill();
    this.#checkOutput(nowMs);
  }

  #checkStranger(nowMs: number): void {
    if (this.session.isAuthenticated) this.#strangerSinceMs = 0;
    else if (this.#strangerSinceMs === 0) this.#strangerSinceMs = nowMs;
    else if (nowMs - this.#strangerSinceMs > STRANGER_MS) this.kill();
  }

  #receive(chunk: Buffer): void {
    this.lastActiveMs = Date.now();
    this.gateway.stats.inputBytes += chunk.length;
    this.#guard(() => this.conversation.receive(chunk));
  }

  /** A mistake of ours with one client, or one that asks for more than fits into memory, does not end the others. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      process.emitWarning(`connection ${this.id} was closed: ${String(error)}`, 'StoreWarning');
      this.kill();
    }
  }

  #drained(): void {
    if (!this.#isHeldBack || this.isFull()) return;
    this.#isHeldBack = false;
    this.#guard(() => this.conversation.drained());
  }

  /** Ends the connection of a client that reads too slowly, as `client-output-buffer-limit` says. */
  #checkOutput(nowMs: number): void {
    const type = this.session.subscriptions > 0 ? 'pubsub' : 'normal';
    const { hardBytes, softBytes, softSeconds } = this.gateway.settings.outputLimit(type);
    const { outputBytes } = this;
    if (hardBytes > 0 && outputBytes > hardBytes) this.kill();
    else if (softBytes === 0 || outputBytes <= softBytes) this.#slowSinceMs = 0;
    else if (this.#slowSinceMs === 0) this.#slowSinceMs = nowMs;
    else if (nowMs - this.#slowSinceMs > softSeconds * 1000) this.kill();
  }

  #close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.gateway.clients.delete(this.id);
    this.conversation.closed();
  }
}

function addressOf(host = '?', port = 0): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
