/**
 * The connections of a fabric: who is meant by what libfabric tells, and telling it to the handler. Called by
 * `fabric.ts`.
 *
 * Of each connection the handler hears `connected` or `refused` at first, then completions, and at last `closed`
 * or `failed` unless it closed the connection itself. After the last it hears nothing more of it.
 */
import type { CompletionSink } from './completion-queue.js';
import { Connection, type ConnectionKeeper, type EndpointOperations } from './connection.js';
import type { ConnectionSink } from './event-queue.js';
import type { FabricHandler } from './handler.js';
import type { Libfabric } from './libfabric.js';
import { describe, ownAddress, type SocketAddress } from './socket-address.js';
import type { Sockets } from './sockets.js';

const SERIAL_MAX = 0xffffffff;
const NO_DATA = new Uint8Array(0);

export class Connections implements ConnectionKeeper, CompletionSink, ConnectionSink {
  handler!: FabricHandler;
  /** How many are not yet what they will be. */
  connecting = 0;
  private readonly bySerial = new Map<number, Connection>();
  private readonly byEndpoint = new Map<number, Connection>();
  /** Those whose break is still to be told, and why. */
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

  /** The peers, in words. */
  get peers(): Set<string> {
    return new Set(Array.from(this.bySerial.values(), ({ peer }) => describe(peer)));
  }

  closeAll(): void {
    for (const connection of this.bySerial.values()) connection.close();
  }

  /** Is there something for `tellBreaks`? */
  get hasBreaks(): boolean {
    return this.broken.size > 0;
  }

  /** @returns how many there were */
  tellBreaks(): number {
    const count = this.broken.size;
    if (count === 0) return 0;
    for (const [connection, code] of this.broken) this.tellEnd(connection, NO_DATA, code);
    return count;
  }

  breakOff(connection: Connection, code: number): void {
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
    if (connection?.state === 'open') this.breakOff(connection, code);
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
    if (connection !== undefined) this.tellEnd(connection, data, code);
  }

  private tellEnd(connection: Connection, data: Uint8Array, code: number): void {
    const { handler } = this;
    const reason = this.library.reason(code);
    connection.close();
    if (connection.wasOpen) handler.failed(connection, reason);
    else handler.refused(connection, data, reason);
  }

  /** Completions of connections that have ended may still be about, so no number is used twice soon. */
  private nextSerial(): number {
    do this.lastSerial = this.lastSerial === SERIAL_MAX ? 1 : this.lastSerial + 1;
    while (this.bySerial.has(this.lastSerial));
    return this.lastSerial;
  }
}
