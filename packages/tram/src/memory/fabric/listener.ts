/** The listening endpoint of a fabric. Called by `fabric.ts`. */
import type { TramError } from '../../errors.js';
import { FIELDS, SIZES } from './binary-interface.js';
import type { Block } from './block.js';
import type { Libfabric } from './libfabric.js';
import {
  addressError,
  describe,
  ownAddress,
  putSocketAddress,
  type SocketAddress,
} from './socket-address.js';
import type { Sockets } from './sockets.js';
import { UnauthenticatedPeers } from './unauthenticated-peers.js';

const LENGTH = SIZES.sockaddr_in;

export class Listener {
  readonly port: number;
  private readonly unauthenticated: UnauthenticatedPeers;
  private readonly handle: number;

  /** @param info  of the fabric */
  constructor(
    private readonly library: Libfabric,
    fabric: number,
    info: number,
    eventQueue: number,
    sockets: Sockets,
    wanted: SocketAddress,
  ) {
    this.handle = this.open(fabric, info, wanted);
    try {
      library.bind(this.handle, eventQueue, 0);
      const code = library.operation('listen', this.handle)(this.handle);
      if (code < 0) throw this.error(wanted, code);
      this.port = ownAddress(library, this.handle)!.port;
      this.unauthenticated = new UnauthenticatedPeers(sockets, this.port);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @param request  libfabric's handle of it */
  reject(request: number, data: Block, bytes: number): void {
    // An error means that the peer is gone, and the request with it.
    this.library.operation('reject', this.handle)(this.handle, request, data.address, bytes);
  }

  /** See `Fabric.closeUnauthenticated`. @param accepted  addresses of peers whose requests were accepted */
  closeUnauthenticated(accepted: ReadonlySet<string>): void {
    this.unauthenticated.closeUnaccepted(accepted);
  }

  close(): void {
    this.library.close(this.handle);
  }

  private open(fabric: number, info: number, wanted: SocketAddress): number {
    const { library } = this;
    const own = library.duplicateInfo(info);
    try {
      const source = library.pointer(own + FIELDS.fi_info.src_addr);
      putSocketAddress(new Uint8Array(library.koffi.view(source, LENGTH)), wanted);
      return library.open('openPassiveEndpoint', fabric, own, (code) => this.error(wanted, code));
    } finally {
      library.freeInfo(own);
    }
  }

  private error(wanted: SocketAddress, code: number): TramError {
    return addressError(this.library, `listen at ${describe(wanted)}`, code);
  }
}
