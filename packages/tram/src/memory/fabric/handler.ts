import type { Connection } from './connection.js';
import type { Request } from './request.js';

/** Whom `Fabric.poll` tells. Any method may close connections and make new ones. */
export interface FabricHandler {
  /** An operation posted with `TELL` is done. */
  completed(connection: Connection, context: number): void;
  /** The connection can be used. @param data  of the peer's `accept`; empty for the one that accepted */
  connected(connection: Connection, data: Uint8Array): void;
  /** There will be no connection: the peer rejected it, with `data`, or there is nobody. */
  refused(connection: Connection, data: Uint8Array, reason: string): void;
  /** The peer has closed the connection, or has ended. All that has not completed is lost. */
  closed(connection: Connection): void;
  /** The peer did not permit an operation, or the connection broke. All that has not completed is lost. */
  failed(connection: Connection, reason: string): void;
  /** Somebody wants to connect. Unless it is accepted before this returns, it is rejected. */
  requested(request: Request): void;
}

/** Hears nothing. For those to whom only some of it matters. */
export const DEAF: FabricHandler = {
  completed: () => undefined,
  connected: () => undefined,
  refused: () => undefined,
  closed: () => undefined,
  failed: () => undefined,
  requested: () => undefined,
};
