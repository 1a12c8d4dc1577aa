/** Listens for clients: on TCP, on TLS and on a Unix socket. */

import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import {
  type AddressInfo,
  createServer,
  connect as dial,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Connection, type Desk } from './connection.js';
import { Flushes } from './flushes.js';
import type { Gateway } from './gateway.js';
import { Writers } from './writers.js';

export interface Tls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** If given, clients need a certificate that it has signed. */
  readonly ca?: string | Buffer;
}

export interface ListenOptions {
  /** 0: any that is free. Undefined: no TCP. */
  readonly port?: number;
  readonly bind?: readonly string[];
  /** The path of a Unix socket. */
  readonly unixSocket?: string;
  /** Connections over TCP use TLS. */
  readonly tls?: Tls;
}

const CHECK_MS = 1000;
const BACKLOG = 511;
/** How long a TLS handshake may take. */
const HANDSHAKE_MS = 10_000;

export class GatewayServer {
  readonly #servers: Server[] = [];
  /** Connections that are at their TLS handshake, by their other end. */
  readonly #handshakes = new Map<string, Socket>();
  readonly #desk: Desk;
  readonly #timer: NodeJS.Timeout;
  #port = 0;
  #isClosing = false;

  constructor(
    private readonly gateway: Gateway,
    private readonly handshakeMs = HANDSHAKE_MS,
  ) {
    this.#desk = { gateway, writers: new Writers(), flushes: new Flushes() };
    this.#timer = setInterval(() => this.#check(), CHECK_MS);
    this.#timer.unref();
  }

  /** Of TCP. */
  get port(): number {
    return this.#port;
  }

  /** If it fails, nothing listens. */
  async listen(options: ListenOptions): Promise<void> {
    const { port, bind = ['127.0.0.1'], unixSocket, tls } = options;
    try {
      if (port !== undefined) {
        for (const host of bind) await this.#listenTcp(host, this.#port || port, tls);
      }
      if (unixSocket !== undefined) await this.#listenUnix(unixSocket);
    } catch (error) {
      await this.close(0);
      throw error;
    }
  }

  /** Clients get the replies that they wait for, within this time. */
  async close(graceMs: number): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    clearInterval(this.#timer);
    const closed = this.#servers.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const { clients, pause } = this.gateway;
    pause.end();
    for (const socket of this.#handshakes.values()) socket.destroy();
    for (const client of clients.values()) client.endAfterReply();
    const timer = setTimeout(() => {
      for (const client of clients.values()) client.kill();
    }, graceMs);
    await Promise.all(closed);
    clearTimeout(timer);
  }

  async #listenTcp(host: string, port: number, tls: Tls | undefined): Promise<void> {
    const accept = (socket: Socket): void => {
      this.#handshakes.delete(peerOf(socket));
      this.#accept(socket, undefined);
    };
    const server =
      tls === undefined
        ? createServer({ allowHalfOpen: true }, accept)
        : createTlsServer(
            {
              allowHalfOpen: true,
              cert: tls.cert,
              key: tls.key,
              ...(tls.ca !== undefined && { ca: tls.ca, requestCert: true }),
              rejectUnauthorized: tls.ca !== undefined,
              handshakeTimeout: this.handshakeMs,
            },
            accept,
          );
    if (tls !== undefined) this.#watchHandshakes(server);
    await this.#started(server, () => server.listen({ host, port, backlog: BACKLOG }));
    this.#port = (server.address() as AddressInfo).port;
  }

  async #listenUnix(path: string): Promise<void> {
    await removeStaleSocket(path);
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, path));
    await this.#started(server, () => server.listen({ path, backlog: BACKLOG }));
    chmodSync(path, 0o700);
  }

  #started(server: Server, listen: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.once('listening', () => {
        server.off('error', reject);
        // Such as too many open files: who is connected stays connected.
        server.on('error', () => undefined);
        this.#servers.push(server);
        resolve();
      });
      listen();
    });
  }

  #accept(socket: Socket, path: string | undefined): void {
    const { clients, settings, stats } = this.gateway;
    if (this.#isClosing) socket.destroy();
    else if (clients.size < settings.maxClients) new Connection(this.#desk, socket, path);
    else {
      stats.rejected++;
      socket.on('error', () => undefined);
      socket.end('-ERR max number of clients reached\r\n', () => socket.destroy());
    }
  }

  /** A connection is a client once its handshake is over. As many may be at it as there may be clients. */
  #watchHandshakes(server: Server): void {
    const { gateway } = this;
    server.on('connection', (socket: Socket) => {
      if (this.#handshakes.size >= gateway.settings.maxClients) {
        gateway.stats.rejected++;
        socket.destroy();
        return;
      }
      const peer = peerOf(socket);
      this.#handshakes.set(peer, socket);
      socket.on('close', () => this.#handshakes.delete(peer));
    });
    server.on('tlsClientError', (_error: Error, socket: Socket) => {
      gateway.stats.failedHandshakes++;
      socket.destroy();
    });
  }

  #check(): void {
    const nowMs = Date.now();
    this.gateway.stats.sample(performance.now());
    for (const client of this.gateway.clients.values()) client.check(nowMs);
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** A server that was killed leaves its socket behind. One that somebody listens at is left alone: `listen` then fails. */
async function removeStaleSocket(path: string): Promise<void> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return;
  const isStale = await new Promise<boolean>((resolve) => {
    const probe = dial(path, () => {
      probe.destroy();
      resolve(false);
    });
    probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (isStale) unlinkSync(path);
}
