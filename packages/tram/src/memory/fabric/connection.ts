/**
 * A connection to one peer. Operations take effect at the peer in the order of posting. So once a `read` has completed,
 * all writes before it have landed.
 *
 *   connecting → open → broken        broken: the next `poll` reports the failure to the handler
 *        └──────────┴───────┴→ ended
 */
import { constants as systemConstants } from 'node:os';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS } from './binary-interface.js';
import type { Calls } from './calls.js';
import type { Extents } from './extents.js';
import type { SocketAddress } from './socket-address.js';
import type { Socket } from './sockets.js';

/** Flags of an operation. Without any, only its failure is reported. */
export const NO_COMPLETION = 0;
/** Its completion is reported as well. */
export const REPORT_COMPLETION = CONSTANTS.FI_COMPLETION;
/** A write completes when it has landed. Without this flag it completes when it has been handed to the network. */
export const DELIVERY_COMPLETE = CONSTANTS.FI_DELIVERY_COMPLETE;

export type ConnectionState = 'connecting' | 'open' | 'broken' | 'ended';

/** What a connection needs of its fabric. */
export interface ConnectionOwner {
  /** What is counted for all connections together. */
  readonly calls: Calls;
  /** The connection has broken with this error code. */
  markBroken(connection: Connection, code: number): void;
  /** The connection is about to end. */
  forget(connection: Connection): void;
}

/** The functions of libfabric for one endpoint. */
export interface EndpointOperations {
  readonly write: NativeFunction;
  readonly read: NativeFunction;
  readonly close: NativeFunction;
}

const { EAGAIN } = systemConstants.errno;

export class Connection {
  /** Only the owner changes this and the next two fields. */
  state: ConnectionState = 'connecting';
  /** Has the state ever been `open`? */
  wasOpen = false;
  /** Undefined if the provider has no sockets: then `cork` has no effect. */
  socket: Socket | undefined;

  /** Made by `Fabric.connect` and `Request.accept`. @param serial  not 0; not reused while completions with it may arrive */
  constructor(
    private readonly owner: ConnectionOwner,
    private readonly operations: EndpointOperations,
    readonly endpoint: number,
    readonly serial: number,
    readonly peer: SocketAddress,
  ) {}

  /**
   * Write what `extents` lists.
   *
   * @param flags  `NO_COMPLETION`, or `REPORT_COMPLETION`, `DELIVERY_COMPLETE` or both
   * @param context  32 bits, returned with the completion
   * @returns false under back pressure: nothing was posted, try again after a `poll`. (The provider `tcp` never pushes
   *   back but allocates more memory, so the caller must limit how much is in flight.) True also if the connection has
   *   broken: the write is lost, like all others that have not completed
   */
  write(extents: Extents, flags: number, context: number): boolean {
    this.owner.calls.write++;
    return this.post(this.operations.write, extents, flags, context);
  }

  /** Read what `extents` lists; as `write`. */
  read(extents: Extents, flags: number, context: number): boolean {
    this.owner.calls.read++;
    return this.post(this.operations.read, extents, flags, context);
  }

  /** What is posted from now on is held back until `uncork`, and then goes in as few packets as possible. */
  cork(): void {
    if (this.state !== 'open' || this.socket === undefined) return;
    this.owner.calls.cork++;
    this.socket.cork();
  }

  uncork(): void {
    if (this.state !== 'open' || this.socket === undefined) return;
    this.owner.calls.cork++;
    this.socket.uncork();
  }

  /** All operations that have not completed are lost. The handler is not called for this connection any more. */
  close(): void {
    if (this.state === 'ended') return;
    this.owner.forget(this);
    this.state = 'ended';
    // It fails only if it is used wrongly, and nothing could be done about that here.
    this.operations.close(this.endpoint);
  }

  private post(
    operation: NativeFunction,
    extents: Extents,
    flags: number,
    context: number,
  ): boolean {
    if (this.state === 'broken') return true;
    if (this.state !== 'open') throw new Error(`a connection that is ${this.state} can't be used`);
    extents.setContext(context, this.serial);
    const code = operation(this.endpoint, extents.address, flags);
    if (code === 0) return true;
    if (code === -EAGAIN) return false;
    this.owner.markBroken(this, code);
    return true;
  }
}
