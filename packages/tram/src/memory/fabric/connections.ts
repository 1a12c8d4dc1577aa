/**
 * The connections of a fabric. Finds the connection that an event of libfabric is about, and passes the event on to the
 * handler. Called by `fabric.ts`.
 *
 * For each connection the handler first gets `connected` or `refused`. After `connected` it gets completions and at last
 * `closed` or `failed`, unless it has closed the connection itself. After that it gets nothing more.
 */
import { type Calls, noCalls } from './calls.js';
import type { CompletionSink } from './completion-queue.js';
import { Connection, type ConnectionOwner, type EndpointOperations } from './connection.js';
import type { ConnectionSink } from './event-queue.js';
import type { FabricHandler } from './handler.js';
import type { Libfabric } from './libfabric.js';
import { describe, ownAddress, type SocketAddress } from './socket-address.js';
import type { Sockets } from './sockets.js';

const SERIAL_MAX = 0xffffffff;
const NO_DATA = new Uint8Array(0);

export class Connections implements ConnectionOwner, CompletionSink, ConnectionSink {
  handler!: FabricHandler;
  readonly calls: Calls = noCalls();
  /** How many connections are neither open nor refused yet. */
  connecting = 0;
  private readonly bySerial = new Map<number, Connection>();
  private readonly byEndpoint = new Map<number, Connection>();
  /** Broken connections that have not been reported to the handler, with their error codes. */
  private readonly broken = new Map<Connection, number>();
  private lastSerial = 0;

  constructor(
    private readonly library: Libfabric,
    private readonly sockets: Sockets,
  ) {}

  add(endpoint: number, peer: SocketAddress): Connection {
    const { library } = this;
    const operations: EndpointOperations = {
      write: library.operation('write', endpoint),
      read: library.operation('read', endpoint),
      close: library.operation('close', endpoint),
    };
    const connection = new Connection(this, operations, endpoint, this.nextSerial(), peer);
    this.bySerial.set(connection.serial, connection);
    this.byEndpoint.set(endpoint, connection);
    this.connecting++;
    return connection;
  }

  /** The addresses of all peers, as `describe` writes them. */
  get peers(): Set<string> {
    return new Set(Array.from(this.bySerial.values(), ({ peer }) => describe(peer)));
  }

  closeAll(): void {
    for (const connection of this.bySerial.values()) connection.close();
  }

  get hasBroken(): boolean {
    return this.broken.size > 0;
  }

  /** Report broken connections to the handler. @returns how many there were */
  reportBroken(): number {
    const count = this.broken.size;
    if (count === 0) return 0;
    for (const [connection, code] of this.broken) this.reportEnd(connection, NO_DATA, code);
    return count;
  }

  markBroken(connection: Connection, code: number): void {
    if (connection.state === 'connecting') this.connecting--;
    connection.state = 'broken';
    this.broken.set(connection, code);
  }

  forget(connection: Connection): void {
    if (connection.state === 'connecting') this.connecting--;
    this.bySerial.delete(connection.serial);
    this.byEndpoint.delete(connection.endpoint);
    this.broken.delete(connection);
  }

  onCompletion(serial: number, context: number): void {
    const connection = this.bySerial.get(serial);
    if (connection?.state === 'open') this.handler.completed(connection, context);
  }

  onFailure(serial: number, code: number): void {
    const connection = this.bySerial.get(serial);
    if (connection?.state === 'open') this.markBroken(connection, code);
  }

  onConnected(endpoint: number, data: Uint8Array): void {
    const connection = this.byEndpoint.get(endpoint);
    if (connection?.state !== 'connecting') return;
    this.connecting--;
    connection.state = 'open';
    connection.wasOpen = true;
    const own = ownAddress(this.library, endpoint);
    if (own !== undefined) connection.socket = this.sockets.between(own, connection.peer);
    this.handler.connected(connection, data);
  }

  onShutdown(endpoint: number): void {
    const connection = this.byEndpoint.get(endpoint);
    if (connection === undefined) return;
    connection.close();
    this.handler.closed(connection);
  }

  onError(endpoint: number, data: Uint8Array, code: number): void {
    const connection = this.byEndpoint.get(endpoint);
    if (connection !== undefined) this.reportEnd(connection, data, code);
  }

  private reportEnd(connection: Connection, data: Uint8Array, code: number): void {
    const { handler } = this;
    const reason = this.library.reason(code);
    connection.close();
    if (connection.wasOpen) handler.failed(connection, reason);
    else handler.refused(connection, data, reason);
  }

  /** Completions of ended connections may still arrive, so a serial is not reused before all others have been. */
  private nextSerial(): number {
    do this.lastSerial = this.lastSerial === SERIAL_MAX ? 1 : this.lastSerial + 1;
    while (this.bySerial.has(this.lastSerial));
    return this.lastSerial;
  }
}
