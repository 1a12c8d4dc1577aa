import type { Connection } from './connection.js';
import type { Request } from './request.js';

/** `Fabric.poll` calls it. Any method may close connections and make new ones. */
export interface FabricHandler {
  /** An operation posted with `REPORT_COMPLETION` has completed. */
  completed(connection: Connection, context: number): void;
  /** The connection is open. @param data  of the peer's `accept`; empty on the side that accepted */
  connected(connection: Connection, data: Uint8Array): void;
  /** The connection could not be established: the peer rejected it, with `data`, or nobody listens. */
  refused(connection: Connection, data: Uint8Array, reason: string): void;
  /** The peer has closed the connection, or has ended. Operations that have not completed are lost. */
  closed(connection: Connection): void;
  /** The connection broke, or the peer has refused an operation. Operations that have not completed are lost. */
  failed(connection: Connection, reason: string): void;
  /** A peer, not yet authenticated, wants to connect. It is rejected unless it is accepted before this returns. */
  requested(request: Request): void;
}

/** Does nothing: to be extended by handlers that need only some of the events. */
export const NO_OP_HANDLER: FabricHandler = {
  completed: () => undefined,
  connected: () => undefined,
  refused: () => undefined,
  closed: () => undefined,
  failed: () => undefined,
  requested: () => undefined,
};
