/**
 * Keeps TCP from splitting words. Called by `fabric.ts`; other providers have no sockets, so it has no effect there.
 *
 * The provider `tcp` receives straight into registered memory, as many bytes as have arrived. If these end in the middle
 * of a word, readers see half of the word, for as long as nothing more arrives. Everything that goes over a connection is a
 * multiple of four bytes, so a word is split only at the end of a segment. The maximum segment size follows from the packet
 * size, and is no multiple of four on the loopback (65,483), on the jumbo frames of some clouds (8949) and in many overlays
 * (1398). So sockets get a maximum segment size (TCP_MAXSEG) that is a multiple of four.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { CONSTANTS } from './binary-interface.js';
import type { Sockets } from './sockets.js';

/** Headers of IPv4 and TCP. TCP options have a multiple of four bytes, and count as part of the segment. */
const HEADER_BYTES = 40;
/** The largest value that TCP_MAXSEG can have. */
const SEGMENT_BYTES_MAX = 32_764;
/** Fits into nearly every network, most tunnels included. */
const USUAL_PACKET_BYTES = 1400;

export class Segments {
  private readonly bytes: number;

  constructor(
    private readonly sockets: Sockets,
    private readonly host: string,
  ) {
    this.bytes = segmentBytes(packetBytesAt(host));
  }

  /** To be called before sockets connect: those that are connected keep their segment size. */
  align(): void {
    for (const descriptor of this.sockets.find(({ host }) => host === this.host)) {
      if (this.sockets.peerOf(descriptor) !== undefined) continue;
      this.sockets.set(descriptor, CONSTANTS.TCP_MAXSEG, this.bytes);
    }
  }
}

export function segmentBytes(packetBytes: number): number {
  const bytes = Math.min(packetBytes - HEADER_BYTES, SEGMENT_BYTES_MAX);
  return bytes - (bytes % Int32Array.BYTES_PER_ELEMENT);
}

/** The MTU of the interface with this address. */
function packetBytesAt(host: string): number {
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    if (!addresses.some(({ address }) => address === host)) continue;
    try {
      return Number(readFileSync(`/sys/class/net/${name}/mtu`, 'utf8'));
    } catch {
      // Only Node calls the interface by this name, or there is no sysfs.
      return USUAL_PACKET_BYTES;
    }
  }
  return USUAL_PACKET_BYTES;
}
