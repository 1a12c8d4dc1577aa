/**
 * Registered memory: operations use it as their local side, and peers that know its key may read and write it. Called by
 * `fabric.ts`.
 *
 * The caller owns the memory. It must stay valid until all operations that use it have completed or their connections
 * are closed.
 */
import { randomBytes } from 'node:crypto';
import { CONSTANTS, FIELDS } from './binary-interface.js';
import type { Libfabric } from './libfabric.js';

/** What a peer needs to know in order to read and write registered memory. */
export interface RemoteRegion {
  /** The remote address of its first byte: 0, or its virtual address if the provider requires that. */
  readonly base: number;
  readonly keyLow: number;
  readonly keyHigh: number;
}

/** `local`: peers have no access. */
export type Access = 'local' | 'remote';

export interface Registration extends RemoteRegion {
  readonly address: number;
  readonly bytes: number;
  /** What the provider requires beside local addresses; 0 if nothing. */
  readonly descriptor: number;
  /**
   * Invalidates the key. Operations of peers that are in flight may still land until their connections are closed as
   * well.
   */
  close(): void;
}

const { FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE } = CONSTANTS;
const LOCAL_ACCESS = FI_READ | FI_WRITE;
const REMOTE_ACCESS = LOCAL_ACCESS | FI_REMOTE_READ | FI_REMOTE_WRITE;

const { mem_desc, key } = FIELDS.fid_mr;

/** @param onClose  called by `close` */
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
      (BigInt(keyHigh) << 32n) | BigInt(keyLow),
      0,
      library.result.address,
      0,
    ),
    `Can't register ${bytes} bytes of memory`,
  );
  const region = library.result.getWide(0);
  const hasProviderKey = (memoryMode & CONSTANTS.FI_MR_PROV_KEY) !== 0;
  let isOpen = true;
  return {
    address,
    bytes,
    base: (memoryMode & CONSTANTS.FI_MR_VIRT_ADDR) !== 0 ? address : 0,
    keyLow: hasProviderKey ? library.word(region + key) : keyLow,
    keyHigh: hasProviderKey ? library.word(region + key + 4) : keyHigh,
    descriptor: library.pointer(region + mem_desc),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      onClose();
      library.check(library.operation('close', region)(region), "Can't end a registration");
    },
  };
}
