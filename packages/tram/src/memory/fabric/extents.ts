/**
 * What one `Connection.write` or `read` moves: pairs of a local and a remote extent of memory. This is the structure
 * that libfabric itself reads, outside of the heap. libfabric copies it when it is posted, so it can be reused at once.
 */
import { FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';
import type { Registration, RemoteRegion } from './registration.js';

const { fi_msg_rma: MESSAGE, iovec: LOCAL, fi_rma_iov: REMOTE } = FIELDS;
const DESCRIPTOR_BYTES = 8;

export class Extents {
  /** Of the `fi_msg_rma`. */
  readonly address: number;
  private readonly block: Block;
  /** Offsets in the block: the arrays of local extents, their descriptors, and remote extents. */
  private readonly locals: number;
  private readonly descriptors: number;
  private readonly remotes: number;
  private filled = 0;

  /** @param countMax  `Fabric.extentsMax` */
  constructor(
    library: Libfabric,
    readonly countMax: number,
  ) {
    this.locals = SIZES.fi_msg_rma;
    this.descriptors = this.locals + countMax * SIZES.iovec;
    this.remotes = this.descriptors + countMax * DESCRIPTOR_BYTES;
    this.block = new Block(library.koffi, this.remotes + countMax * SIZES.fi_rma_iov);
    this.address = this.block.address;
    this.block.setWide(MESSAGE.msg_iov, this.address + this.locals);
    this.block.setWide(MESSAGE.desc, this.address + this.descriptors);
    this.block.setWide(MESSAGE.rma_iov, this.address + this.remotes);
  }

  get count(): number {
    return this.filled;
  }

  clear(): void {
    this.setCount(0);
  }

  /** Add a pair. @param localAt  offset in `local`, in bytes  @param remoteAt  offset in `remote`, in bytes */
  add(
    local: Registration,
    localAt: number,
    remote: RemoteRegion,
    remoteAt: number,
    bytes: number,
  ): void {
    const { block, filled } = this;
    if (filled === this.countMax) throw new RangeError(`at most ${this.countMax} extents`);
    const localEntry = this.locals + filled * SIZES.iovec;
    block.setWide(localEntry + LOCAL.iov_base, local.address + localAt);
    block.setWide(localEntry + LOCAL.iov_len, bytes);
    block.setWide(this.descriptors + filled * DESCRIPTOR_BYTES, local.descriptor);
    const remoteEntry = this.remotes + filled * SIZES.fi_rma_iov;
    block.setWide(remoteEntry + REMOTE.addr, remote.base + remoteAt);
    block.setWide(remoteEntry + REMOTE.len, bytes);
    block.setWord(remoteEntry + REMOTE.key, remote.keyLow);
    block.setWord(remoteEntry + REMOTE.key + 4, remote.keyHigh);
    this.setCount(filled + 1);
  }

  /** The completion returns it. */
  setContext(low: number, high: number): void {
    this.block.setWord(MESSAGE.context, low);
    this.block.setWord(MESSAGE.context + 4, high);
  }

  private setCount(count: number): void {
    this.filled = count;
    this.block.setWord(MESSAGE.iov_count, count);
    this.block.setWord(MESSAGE.rma_iov_count, count);
  }
}
