/** Which libfabric this machine has. */
import { libfabric } from 'tram-multicast/internal/memory/fabric/libfabric.js';

/** `1.17`. @throws TRAM_FABRIC_MISSING */
export function libfabricVersion(): string {
  const { koffi } = libfabric();
  const version = koffi.load('libfabric.so.1').func('fi_version', 'uint32_t', [])();
  return `${version >>> 16}.${version & 0xffff}`;
}
