/**
 * How TCP cuts what it carries. Called by `fabric.ts` and `listener.ts`; other providers have no sockets, and then
 * there is nothing to do.
 *
 * The provider `tcp` receives right into memory, as much as has come. If that ends in the middle of a word, half of the
 * word can be seen, and stays if nothing more comes. Everything that goes over a connection is a multiple of four
 * bytes, so a word is cut only where the network cuts it: at the end of a segment. Those have as many bytes as fit into
 * a packet, which is no multiple of four on the loopback (65,483), on the jumbo frames of some clouds (8949) and in many
 * overlays (1398). So sockets are told a largest segment that is one.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { CONSTANTS } from './binary-interface.js';
import type { Sockets } from './sockets.js';

/** Headers of IPv4 and TCP. The options of TCP come in fours, and are part of the segment. */
const HEADER_BYTES = 40;
/** The largest that a socket can be told. */
const SEGMENT_BYTES_MAX = 32_764;
/** Fits nearly everywhere, through most tunnels too. */
const USUAL_PACKET_BYTES = 1400;

export class Segments {
  private readonly bytes: number;

  constructor(
    private readonly sockets: Sockets,
    private readonly host: string,
  ) {
    this.bytes = segmentBytes(packetBytesAt(host));
  }

  /** Before sockets connect, or listen: those that do already keep what they have. */
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

/** The largest packet of the interface with this address. */
function packetBytesAt(host: string): number {
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    if (!addresses.some(({ address }) => address === host)) continue;
    try {
      return Number(readFileSync(`/sys/class/net/${name}/mtu`, 'utf8'));
    } catch {
      // A name that only Node has for it, or no such file system.
      return USUAL_PACKET_BYTES;
    }
  }
  return USUAL_PACKET_BYTES;
}
