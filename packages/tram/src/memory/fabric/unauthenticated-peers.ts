/**
 * Protects the sockets of the provider `tcp` against unauthenticated peers. Called by `listener.ts`.
 *
 * The provider reads a connection request from a blocking socket, as if it arrived whole and at once. A peer that sends
 * the head of a request and nothing more would block this thread indefinitely, and one that sends nothing would
 * hold a descriptor indefinitely. libfabric gives no access to accepted sockets, but they inherit options of the listening socket:
 *
 * - SO_RCVTIMEO limits the time of a read, to the least there is: a clock tick of the kernel.
 * - TCP_DEFER_ACCEPT delays the accept until the first bytes have arrived, so a silent peer costs no descriptor.
 *
 * Peers that get past this without a proper request are disconnected by `closeUnaccepted`.
 */
import { CONSTANTS } from './binary-interface.js';
import { describe } from './socket-address.js';
import type { Sockets } from './sockets.js';

/** After this time, connections are accepted even if they are silent. */
const SILENCE_SECONDS = 300;
const READ_TIMEOUT_US = 1;

export class UnauthenticatedPeers {
  /** The addresses of those that were connected at the last call of `closeUnaccepted`. */
  private present: ReadonlySet<string> = new Set();

  constructor(
    private readonly sockets: Sockets,
    private readonly port: number,
  ) {
    for (const descriptor of this.descriptors()) {
      if (!sockets.isListening(descriptor)) continue;
      sockets.setReadTimeout(descriptor, READ_TIMEOUT_US);
      sockets.set(descriptor, CONSTANTS.TCP_DEFER_ACCEPT, SILENCE_SECONDS);
    }
  }

  /** Disconnect peers that are not `accepted` and were connected at the last call of this already. */
  closeUnaccepted(accepted: ReadonlySet<string>): void {
    const present = new Set<string>();
    for (const descriptor of this.descriptors()) {
      const peer = this.sockets.peerOf(descriptor);
      if (peer === undefined || accepted.has(describe(peer))) continue;
      present.add(describe(peer));
      // The provider notices the end of the connection and closes the descriptor.
      if (this.present.has(describe(peer))) this.sockets.shutDown(descriptor);
    }
    this.present = present;
  }

  private descriptors(): number[] {
    return this.sockets.find(({ port }) => port === this.port);
  }
}
