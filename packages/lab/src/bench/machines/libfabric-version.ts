/** The version of libfabric on this machine. */
import { libfabric } from 'tram-multicast/internal/memory/fabric/libfabric.js';

/** For example `1.17`. @throws TRAM_FABRIC_MISSING */
export function libfabricVersion(): string {
  const { koffi } = libfabric();
  const version = koffi.load('libfabric.so.1').func('fi_version', 'uint32_t', [])();
  return `${version >>> 16}.${version & 0xffff}`;
}
