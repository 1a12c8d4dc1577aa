/**
 * Memory that libfabric may use: what we post from or read into, and what others may read and write who know
 * the key. The memory stays the caller's, who keeps it until all that was posted from it has completed or its
 * connection is closed.
 */
import { randomBytes } from 'node:crypto';
import { CONSTANTS, FIELDS } from './binary-interface.js';
import type { Libfabric } from './libfabric.js';

/** What a peer must be told of a registration in order to write to it. */
export interface RemoteRegion {
  /** The address that the first byte has for others: 0, or where it lies if the provider wants it so. */
  readonly base: number;
  readonly keyLow: number;
  readonly keyHigh: number;
}

/** `local`: nobody else may touch it. */
export type Access = 'local' | 'remote';

export interface Registration extends RemoteRegion {
  readonly address: number;
  readonly bytes: number;
  /** What the provider wants to see beside local addresses; 0 if nothing. */
  readonly descriptor: number;
  /**
   * From now on the key opens nothing. What is in flight may still land until the connections that carry it
   * are closed as well.
   */
  close(): void;
}

const { FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE } = CONSTANTS;
const LOCAL_ACCESS = FI_READ | FI_WRITE;
const REMOTE_ACCESS = LOCAL_ACCESS | FI_REMOTE_READ | FI_REMOTE_WRITE;

const { mem_desc, key } = FIELDS.fid_mr;

/** @param onClose  is told when it is closed */
export function register(
  library: Libfabric,
  domain: number,
  memoryMode: number,
  address: number,
  bytes: number,
  access: Access,
  onClose: () => void,
): Registration {
  const [keyLow, keyHigh] = new Uint32Array(new Uint8Array(randomBytes(8)).buffer);
  library.check(
    library.operation('register', domain)(
      domain,
      address,
      bytes,
      access === 'remote' ? REMOTE_ACCESS : LOCAL_ACCESS,
      0,
      (BigInt(keyHigh!) << 32n) | BigInt(keyLow!),
      0,
      library.result.address,
      0,
    ),
    `Can't register ${bytes} bytes of memory`,
  );
  const region = library.result.getWide(0);
  const ownsKeys = (memoryMode & CONSTANTS.FI_MR_PROV_KEY) !== 0;
  let isOpen = true;
  return {
    address,
    bytes,
    base: (memoryMode & CONSTANTS.FI_MR_VIRT_ADDR) !== 0 ? address : 0,
    keyLow: ownsKeys ? library.word(region + key) : keyLow!,
    keyHigh: ownsKeys ? library.word(region + key + 4) : keyHigh!,
    descriptor: library.pointer(region + mem_desc),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      onClose();
      library.check(library.operation('close', region)(region), "Can't end a registration");
    },
  };
}
