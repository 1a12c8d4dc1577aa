/**
 * What one link moves between its buffers and the arena of the other host, from the time it is gathered until it is no
 * longer in flight. Everything takes effect in the order in which it was added. Called by `link.ts`.
 *
 *   firstIndex ≤ sentIndex ≤ endIndex
 *
 * Transfers before `sentIndex` are in flight, those from `sentIndex` on are gathered for the next batch. Only reads
 * complete. A completed read shows that all writes before it have landed, so these leave the queue together with it, and
 * the buffer space of all of them is free again.
 */
import { type Connection, NO_COMPLETION, REPORT_COMPLETION } from '../fabric/connection.js';
import type { RemoteRegion } from '../fabric/registration.js';
import { copyPart } from '../record.js';
import type { LinkBuffers } from './buffers.js';
import type { Parcels } from './parcels.js';
import { PooledQueue } from './pooled-queue.js';
import { NO_ROOM, RingAllocator } from './ring-allocator.js';

/** A read fetches words for a poster; a confirmation is a read that confirms the writes before it (`posts.ts`). */
export type TransferKind = 'write' | 'read' | 'confirmation';

/** Offsets and counts are in words. */
export class Transfer {
  kind: TransferKind = 'write';
  /** Where in our buffer: `out` for a write, `in` for a read or a confirmation. */
  local = 0;
  /** Where in the arena of the other host. */
  remote = 0;
  count = 0;

  // Reads and confirmations only:

  /** A read: the index of its post. A confirmation: it confirms the posts before this index. */
  postIndex = 0;
  /** What of the buffers is free once this has completed: marks of their allocators. */
  outMark = 0;
  inMark = 0;

  // Reads only:

  /** Where the words go once they are in our buffer. */
  into: Int32Array = NOWHERE;
  intoAt = 0;
}

const NOWHERE = new Int32Array(0);
/** So many words may go without a read behind them. More would keep their space for too long. */
const UNCONFIRMED_WORDS_MAX = 2 ** 14;
/** Writes that need no answer go as a parcel if they take more operations than this. */
const UNANSWERED_OPERATIONS_MAX = 3;
/**
 * A parcel of up to so many words and its header are received by one call: libfabric takes up to 9000 bytes at a time. What is
 * larger goes as a parcel only if it takes many operations, because operations need not wait for each other's answers.
 */
const SMALL_PARCEL_WORDS = 2048;
const LARGE_OPERATIONS_MAX = 8;

export class Transfers {
  private connection!: Connection;
  private remote!: RemoteRegion;
  private buffers!: LinkBuffers;
  private outSpace!: RingAllocator;
  private inSpace!: RingAllocator;

  private readonly queue = new PooledQueue(() => new Transfer());
  private sentIndex = 0;
  /** How many of the transfers in flight are reads or confirmations. */
  private readsInFlight = 0;
  /** How many of them are in the last parcel. */
  private readsPacked = 0;
  /** Words of writes, gathered or in flight, that have no read behind them. */
  private unconfirmedWords = 0;

  /** There is a new connection. Nothing is gathered or in flight. */
  open(connection: Connection, remote: RemoteRegion, buffers: LinkBuffers): void {
    this.connection = connection;
    this.remote = remote;
    this.buffers = buffers;
    const { out, flagWords } = buffers;
    this.outSpace = new RingAllocator(flagWords, out.words.length - flagWords);
    this.inSpace = new RingAllocator(0, buffers.in.words.length);
    this.unconfirmedWords = 0;
  }

  /** The connection has ended: nothing of this will complete. */
  clear(): void {
    this.queue.clear();
    this.sentIndex = this.queue.endIndex;
    this.readsInFlight = 0;
  }

  get hasUnsent(): boolean {
    return this.sentIndex < this.queue.endIndex;
  }

  /** Has something been sent of which it is not known that it has landed? */
  private get hasInFlight(): boolean {
    return this.queue.firstIndex < this.sentIndex;
  }

  get hasReadsInFlight(): boolean {
    return this.readsInFlight > 0;
  }

  /** Have so many words been written that a read must follow, to free their space? */
  get needsRead(): boolean {
    const outWords = this.buffers.out.words.length;
    return this.unconfirmedWords > Math.min(outWords / 4, UNCONFIRMED_WORDS_MAX);
  }

  // --- gathering -------------------------------------------------------------------------------

  /** Copy words and gather a write of them. @returns false if they do not fit into the buffer now */
  addWrite(remote: number, source: Int32Array, from: number, count: number): boolean {
    const local = this.outSpace.allocate(count);
    if (local === NO_ROOM) return false;
    copyPart(source, from, this.buffers.out.words, local, count);
    this.unconfirmedWords += count;
    if (this.continuesLast(local, remote)) this.queue.at(this.queue.endIndex - 1).count += count;
    else this.add('write', local, remote, count);
    return true;
  }

  /** Does a write continue the last gathered one, in the buffer and in the arena? Then both are sent as one. */
  private continuesLast(local: number, remote: number): boolean {
    if (!this.hasUnsent) return false;
    const last = this.queue.at(this.queue.endIndex - 1);
    return (
      last.kind === 'write' &&
      last.local + last.count === local &&
      last.remote + last.count === remote
    );
  }

  /** Gather a write of ready flags: ones, which the buffer always holds. */
  addFlags(remote: number, count: number): void {
    this.add('write', 0, remote, count);
  }

  /**
   * Gather a read or a confirmation. Of a read, the caller sets where its words go.
   *
   * @returns undefined if the words do not fit into the buffer now
   */
  addRead(
    kind: 'read' | 'confirmation',
    remote: number,
    count: number,
    postIndex: number,
  ): Transfer | undefined {
    const local = this.inSpace.allocate(count);
    if (local === NO_ROOM) return undefined;
    const read = this.add(kind, local, remote, count);
    read.postIndex = postIndex;
    read.outMark = this.outSpace.mark;
    read.inMark = this.inSpace.mark;
    this.unconfirmedWords = 0;
    return read;
  }

  private add(kind: TransferKind, local: number, remote: number, count: number): Transfer {
    const transfer = this.queue.add();
    transfer.kind = kind;
    transfer.local = local;
    transfer.remote = remote;
    transfer.count = count;
    return transfer;
  }

  // --- sending ---------------------------------------------------------------------------------

  /** Send all that is gathered as a parcel. @returns false if it does not fit, or under back pressure */
  pack(parcels: Parcels, isAwaited: boolean): boolean {
    const { queue, buffers } = this;
    parcels.begin();
    let reads = 0;
    for (let index = this.sentIndex; index < queue.endIndex; index++) {
      const { kind, local, remote, count } = queue.at(index);
      const isWrite = kind === 'write';
      const fits = isWrite
        ? parcels.addWrite(remote, buffers.out.words, local, count)
        : parcels.addRead(remote, count);
      if (!fits) return false;
      if (!isWrite) reads++;
    }
    if (!parcels.send(isAwaited, this.hasInFlight)) return false;
    this.readsPacked = reads;
    this.readsInFlight += reads;
    this.sentIndex = queue.endIndex;
    return true;
  }

  /** Hand to the connection what is gathered. Under back pressure it takes only some of it: `hasUnsent` tells. */
  send(): void {
    if (!this.hasUnsent) return;
    const { connection } = this;
    // Several operations go in one packet if they fit.
    const isCorked = this.operations > 1;
    if (isCorked) connection.cork();
    let isTaken = true;
    while (isTaken && this.hasUnsent) isTaken = this.sendOperation();
    if (isCorked) connection.uncork();
  }

  /** How many operations does what is gathered take, unless it goes as a parcel? */
  private get operations(): number {
    const { queue, buffers } = this;
    const { countMax } = buffers.extents;
    let operations = 0;
    let filled = countMax;
    let wasWrite = false;
    for (let index = this.sentIndex; index < queue.endIndex; index++) {
      const isWrite = queue.at(index).kind === 'write';
      if (filled === countMax || isWrite !== wasWrite) {
        operations++;
        filled = 0;
      }
      wasWrite = isWrite;
      filled++;
    }
    return operations;
  }

  /** Send as many transfers of one direction as fit into one operation. @returns false under back pressure */
  private sendOperation(): boolean {
    const { queue, connection, remote } = this;
    const { extents, out, in: input } = this.buffers;
    const isWrite = queue.at(this.sentIndex).kind === 'write';
    const { registration } = isWrite ? out : input;
    extents.clear();
    let index = this.sentIndex;
    while (index < queue.endIndex && extents.count < extents.countMax) {
      const transfer = queue.at(index);
      if ((transfer.kind === 'write') !== isWrite) break;
      const { local, remote: remoteAt, count } = transfer;
      extents.add(registration, local * 4, remote, remoteAt * 4, count * 4);
      index++;
    }
    const isTaken = isWrite
      ? connection.write(extents, NO_COMPLETION, 0)
      : connection.read(extents, REPORT_COMPLETION, extents.count);
    if (!isTaken) return false;
    if (!isWrite) this.readsInFlight += extents.count;
    this.sentIndex = index;
    return true;
  }

  /** Should what is gathered go as a parcel, whose receipt costs the peer an operation? */
  get isWorthParcel(): boolean {
    const { operations } = this;
    if (operations > LARGE_OPERATIONS_MAX) return true;
    if (this.unsentWords > SMALL_PARCEL_WORDS) return false;
    return operations > (this.hasUnsentReads ? 1 : UNANSWERED_OPERATIONS_MAX);
  }

  private get unsentWords(): number {
    const { queue } = this;
    let words = 0;
    for (let index = this.sentIndex; index < queue.endIndex; index++) {
      if (queue.at(index).kind === 'write') words += queue.at(index).count;
    }
    return words;
  }

  /** Is something gathered that the peer answers? */
  get hasUnsentReads(): boolean {
    const { queue } = this;
    for (let index = this.sentIndex; index < queue.endIndex; index++) {
      if (queue.at(index).kind !== 'write') return true;
    }
    return false;
  }

  // --- completions -----------------------------------------------------------------------------

  /** Have all reads completed that were sent before the parcel under way? */
  get areOthersCompleted(): boolean {
    return this.readsInFlight === this.readsPacked;
  }

  /** The receipt of our parcel has arrived. @returns how many reads have completed */
  takeReceipt(parcels: Parcels): number {
    const { queue, readsPacked, buffers } = this;
    let from = parcels.takeReceipt();
    for (let index = queue.firstIndex; index < this.sentIndex; index++) {
      const { kind, local, count } = queue.at(index);
      if (kind === 'write') continue;
      copyPart(parcels.arrived, from, buffers.in.words, local, count);
      from += count;
    }
    return readsPacked;
  }

  /** The oldest read in flight has completed. @returns it, valid until something is added */
  completeRead(): Transfer {
    const { queue } = this;
    let index = queue.firstIndex;
    while (queue.at(index).kind === 'write') index++;
    const read = queue.at(index);
    queue.dropBefore(index + 1);
    this.readsInFlight--;
    return read;
  }

  /** What a completed read has brought: words of this array from `read.local` on, until `free`. */
  get arrived(): Int32Array {
    return this.buffers.in.words;
  }

  /** What a completed read brought has been taken: its space and that of the writes before it is free. */
  free({ outMark, inMark }: Transfer): void {
    this.outSpace.freeTo(outMark);
    this.inSpace.freeTo(inMark);
  }
}
