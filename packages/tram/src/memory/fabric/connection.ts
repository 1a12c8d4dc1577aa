/**
 * A connection to one peer. What is posted on it takes effect at the peer in the order of posting, so a `read`
 * that has completed tells that all writes before it have landed.
 *
 *   connecting → open → broken        broken: that it failed will be told by the next `poll`
 *        └──────────┴───────┴→ ended
 */
import { constants as systemConstants } from 'node:os';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS } from './binary-interface.js';
import type { Extents } from './extents.js';
import type { SocketAddress } from './socket-address.js';
import type { Socket } from './sockets.js';

/** Tell of the failure of the operation only … */
export const QUIET = 0;
/** … or when it is done as well. */
export const TELL = CONSTANTS.FI_COMPLETION;
/** A write is done when it has landed. Without it, when it has been handed to the network. */
export const LANDED = CONSTANTS.FI_DELIVERY_COMPLETE;

export type ConnectionState = 'connecting' | 'open' | 'broken' | 'ended';

/** What a connection needs of its fabric. */
export interface ConnectionKeeper {
  /** The connection is of no use any more, for the reason of this error. */
  breakOff(connection: Connection, code: number): void;
  forget(connection: Connection): void;
}

/** Functions of endpoints. */
export interface EndpointOperations {
  readonly write: NativeFunction;
  readonly read: NativeFunction;
  readonly close: NativeFunction;
}

const { EAGAIN } = systemConstants.errno;

export class Connection {
  /** Both are for the keeper to change, and for all to read. */
  state: ConnectionState = 'connecting';
  wasOpen = false;
  /** Where `hold` takes effect. */
  socket: Socket | undefined;

  /** Made by `Fabric.connect` and `Request.accept`. @param serial  never used again, not 0 */
  constructor(
    private readonly keeper: ConnectionKeeper,
    private readonly operations: EndpointOperations,
    readonly endpoint: number,
    readonly serial: number,
    readonly peer: SocketAddress,
  ) {}

  /**
   * Write what `extents` lists.
   *
   * @param flags  `QUIET`, or `TELL`, `LANDED` or both
   * @param context  32 bits, returned with the completion
   * @returns false if there is no room now: nothing was posted, try again after a `poll`. (`tcp` always has room:
   *   it takes more memory. How much is outstanding is for the caller to limit.) True also if the connection has
   *   broken: the write is lost with all others that have not completed
   */
  write(extents: Extents, flags: number, context: number): boolean {
    return this.post(this.operations.write, extents, flags, context);
  }

  /** Read what `extents` lists; as `write`. */
  read(extents: Extents, flags: number, context: number): boolean {
    return this.post(this.operations.read, extents, flags, context);
  }

  /** What is posted from now on waits for `release`, and then goes in as few packets as it fits into. */
  hold(): void {
    if (this.state === 'open') this.socket?.hold();
  }

  release(): void {
    if (this.state === 'open') this.socket?.release();
  }

  /** Nothing is told of it from now on. All that has not completed is lost. */
  close(): void {
    if (this.state === 'ended') return;
    this.keeper.forget(this);
    this.state = 'ended';
    // Its only errors are those of a wrong use, and there is nothing that could be done about one.
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
    this.keeper.breakOff(this, code);
    return true;
  }
}
