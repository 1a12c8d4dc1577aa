/**
 * The sockets at which the provider `tcp` listens and is called, as far as strangers could do harm there. Called
 * by `listener.ts`.
 *
 * The provider reads a request as if it came whole and at once, from sockets that block. A stranger that sends
 * the head of a request and nothing more would stop this thread for ever, and one that sends nothing would hold
 * a descriptor for ever. libfabric gives us no hold on those sockets, but they inherit from the one that listens:
 *
 * - a limit to the time of a read, the smallest there is: a clock tick of the kernel;
 * - that a connection is made known only when its first bytes are there, so silence costs no descriptor.
 *
 * What still gets through and makes no proper request is ended by `endStrangers`.
 */
import { CONSTANTS } from './binary-interface.js';
import { describe } from './socket-address.js';
import type { Sockets } from './sockets.js';

/** Connections that are silent for so long are made known all the same. */
const SILENCE_SECONDS = 300;
const READ_US = 1;

export class FrontDoor {
  private strangers: ReadonlySet<string> = new Set();

  constructor(
    private readonly sockets: Sockets,
    private readonly port: number,
  ) {
    for (const descriptor of this.descriptors()) {
      if (!sockets.isListening(descriptor)) continue;
      sockets.limitReads(descriptor, READ_US);
      sockets.set(descriptor, CONSTANTS.TCP_DEFER_ACCEPT, SILENCE_SECONDS);
    }
  }

  /** End all who called, are none of `guests`, and were here at the last call of this already. */
  endStrangers(guests: ReadonlySet<string>): void {
    const present = new Set<string>();
    for (const descriptor of this.descriptors()) {
      const peer = this.sockets.peerOf(descriptor);
      if (peer === undefined || guests.has(describe(peer))) continue;
      present.add(describe(peer));
      // The provider sees the end of the connection and cleans up.
      if (this.strangers.has(describe(peer))) this.sockets.end(descriptor);
    }
    this.strangers = present;
  }

  private descriptors(): number[] {
    return this.sockets.find(({ port }) => port === this.port);
  }
}
