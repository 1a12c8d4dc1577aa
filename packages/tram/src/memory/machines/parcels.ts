/**
 * A *parcel* is a batch of writes and reads that goes to the other host as one write of libfabric, whatever the batch
 * consists of. The other host unpacks it in its next poll, in the order of posting, and answers with a *receipt*: the words
 * of all reads, again as one write. Called by `link.ts`.
 *
 *   our arena                                    arena of the other host
 *   ┌──────────────────────────┐                 ┌──────────────────────────┐
 *   │ what it has packed       │                 │ what we have packed      │   number, length, items
 *   │ its receipt              │ ←── answers ─── │ our receipt              │   number, length, words
 *   └──────────────────────────┘                 └──────────────────────────┘
 *
 * The provider `tcp` makes a system call for every operation, and an operation has at most four extents. It lets the host of
 * the target do the work of a write, in its poll. So there a parcel costs less, and is as good: it takes effect at the same
 * time. Where hardware writes into memory, it would wait for that host, so other providers have no parcels.
 *
 * - The number of a parcel or receipt is the second extent, so once it is there, so is all the rest.
 * - Numbers count from the key of the connection, which is random. What an earlier connection has left might have the number
 *   that the first one of this connection has, so its number is overwritten before the peer can send anything.
 * - One parcel is under way at a time, and nothing is sent behind it before its receipt has arrived: what libfabric itself
 *   writes and reads would overtake it.
 *
 * A host on another thread of the same machine has its arena mapped here. Then parcels and receipts are *stored* there,
 * without a system call, unless that host sleeps. Only the host itself writes what is in them to its regions, so nothing else
 * changes: once it has closed the connection, nothing that is stored has an effect.
 */
import { type ArenaMap, HOST } from '../arena.js';
import { type Connection, NO_COMPLETION } from '../fabric/connection.js';
import type { RemoteRegion } from '../fabric/registration.js';
import { copyPart } from '../record.js';
import type { LinkBuffers } from './buffers.js';

/** Layout of a parcel or a receipt: its number, how many words it has (negative if it is awaited), items or words read. */
const NUMBER = 0;
const LENGTH = 1;
const BODY = 2;
/** Layout of an item of a parcel: how many words, where, and for a write the words. The count of a read is negative. */
const COUNT = 0;
const PLACE = 1;
const ITEM = 2;

/** The size of a parcel. */
export const PARCEL_WORDS = 8192;

/** `awaited`: the peer waits for the receipt, and will probably send more. */
export type Arrival = 'none' | 'some' | 'awaited' | 'garbage';

/** Between whom parcels go. */
export interface ParcelRoute {
  /** Our number at the other host. */
  readonly self: number;
  /** The lower word of the key that the other host has to our arena. */
  readonly ownKeyLow: number;
  /** The arena of the other host, if it is mapped here. */
  readonly mapped?: Int32Array | undefined;
}

export class Parcels {
  /** A parcel was sent, and its receipt has not arrived. */
  isUnderWay = false;
  private readonly size: number;
  private readonly parcelFromPeer: number;
  private readonly receiptFromPeer: number;
  private connection!: Connection;
  private remote!: RemoteRegion;
  private buffers!: LinkBuffers;
  private route: ParcelRoute | undefined;
  /** Numbers of our last parcel, and of the next one from the other host. */
  private lastSent = 0;
  private nextArriving = 0;
  /** Of the parcel that is being packed, and of its receipt. */
  private end = BODY;
  private receiptEnd = BODY;
  /** Of the receipt that we owe, if the connection has not taken it yet; otherwise 0. */
  private owedEnd = 0;

  constructor(
    /** Our arena. */
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
    /** The number of the other host. */
    private readonly host: number,
  ) {
    this.size = map.parcelWords;
    this.parcelFromPeer = map.parcel(host);
    this.receiptFromPeer = map.receipt(host);
  }

  /** To be called before the other host knows the key to our arena for a new connection. @param keyLow  its lower word */
  prepare(keyLow: number): void {
    if (this.size > 0) this.words[this.parcelFromPeer + NUMBER] = keyLow;
  }

  /** @param route  undefined: no parcels go over this connection */
  open(
    connection: Connection,
    remote: RemoteRegion,
    buffers: LinkBuffers,
    route: ParcelRoute | undefined,
  ): void {
    this.connection = connection;
    this.remote = remote;
    this.buffers = buffers;
    this.route = route;
    this.isUnderWay = false;
    this.owedEnd = 0;
    if (route === undefined) return;
    this.lastSent = remote.keyLow | 0;
    this.words[this.receiptFromPeer + NUMBER] = this.lastSent;
    this.nextArriving = (route.ownKeyLow + 1) | 0;
  }

  close(): void {
    this.route = undefined;
    this.isUnderWay = false;
  }

  get isOpen(): boolean {
    return this.route !== undefined;
  }

  /** Can they be stored? Then they cost next to nothing. */
  get canStore(): boolean {
    return this.route?.mapped !== undefined;
  }

  /** Is this the arena to which the connection leads? To be asked before `open`. @param self  our number at the other host */
  static isArenaOf(
    mapped: Int32Array,
    { keyLow }: RemoteRegion,
    map: ArenaMap,
    self: number,
  ): boolean {
    // The other host has stored the key there before it told it (`prepare`).
    return mapped[map.parcel(self) + NUMBER] === (keyLow | 0);
  }

  // --- packing ---------------------------------------------------------------------------------

  begin(): void {
    this.end = BODY;
    this.receiptEnd = BODY;
  }

  /** @returns false if it does not fit */
  addWrite(remote: number, source: Int32Array, from: number, count: number): boolean {
    const { words } = this.buffers.parcels;
    const { end } = this;
    if (end + ITEM + count > this.size) return false;
    words[end + COUNT] = count;
    words[end + PLACE] = remote;
    copyPart(source, from, words, end + ITEM, count);
    this.end = end + ITEM + count;
    return true;
  }

  /** @returns false if it, or what it reads, does not fit */
  addRead(remote: number, count: number): boolean {
    const { words } = this.buffers.parcels;
    const { end } = this;
    if (end + ITEM > this.size || this.receiptEnd + count > this.size) return false;
    words[end + COUNT] = -count;
    words[end + PLACE] = remote;
    this.end = end + ITEM;
    this.receiptEnd += count;
    return true;
  }

  /**
   * Send what was packed.
   *
   * @param overtakes  is something on its way that a stored parcel would overtake?
   * @returns false under back pressure
   */
  send(isAwaited: boolean, overtakes: boolean): boolean {
    const { end } = this;
    const number = (this.lastSent + 1) | 0;
    this.buffers.parcels.words[LENGTH] = isAwaited ? -end : end;
    if (!this.post(0, end, number, this.map.parcel(this.route!.self), !overtakes)) return false;
    this.lastSent = number;
    this.isUnderWay = true;
    return true;
  }

  /** Has the receipt of our parcel arrived? */
  get hasReceipt(): boolean {
    return this.isUnderWay && this.numberAt(this.receiptFromPeer) === this.lastSent;
  }

  /** Has a parcel arrived that is to be unpacked? */
  get hasParcel(): boolean {
    const { route, owedEnd, nextArriving } = this;
    return (
      route !== undefined && owedEnd === 0 && this.numberAt(this.parcelFromPeer) === nextArriving
    );
  }

  /** What is loaded after this is at least as new: another thread may have stored it. */
  private numberAt(start: number): number {
    return Atomics.load(this.words, start + NUMBER);
  }

  /** Does the receipt have the words of all reads, and no more? */
  get isReceiptWhole(): boolean {
    return this.words[this.receiptFromPeer + LENGTH] === this.receiptEnd;
  }

  /** Where receipts arrive: our arena. */
  get arrived(): Int32Array {
    return this.words;
  }

  /** @returns where in our arena the words of all reads lie, one after the other, until the next parcel is sent */
  takeReceipt(): number {
    this.isUnderWay = false;
    return this.receiptFromPeer + BODY;
  }

  // --- unpacking -------------------------------------------------------------------------------

  /** Unpack the parcel that has arrived, if there is one. */
  unpack(): Arrival {
    const { words, parcelFromPeer: start } = this;
    // The parcel that is there has been unpacked.
    if (this.route !== undefined && this.owedEnd > 0) this.sendReceipt();
    else if (this.hasParcel) return this.unpackWhole(start, words[start + LENGTH]);
    return 'none';
  }

  private unpackWhole(start: number, length: number): Arrival {
    if (!this.unpackItems(start + BODY, start + Math.abs(length))) return 'garbage';
    this.sendReceipt();
    return length < 0 ? 'awaited' : 'some';
  }

  /** @returns false if they make no sense */
  private unpackItems(start: number, end: number): boolean {
    const { words, size } = this;
    if (end <= start || end > this.parcelFromPeer + size) return false;
    let owedEnd = BODY;
    for (let at = start; at < end; ) {
      if (at + ITEM > end) return false;
      const isRead = words[at + COUNT] < 0;
      const count = Math.abs(words[at + COUNT]);
      const place = words[at + PLACE];
      at += ITEM;
      if (count === 0 || place < 0 || place + count > words.length) return false;
      if (isRead) {
        if (owedEnd + count > size) return false;
        copyPart(words, place, this.buffers.parcels.words, size + owedEnd, count);
        owedEnd += count;
      } else {
        if (at + count > end) return false;
        this.write(at, place, count);
        at += count;
      }
    }
    this.owedEnd = owedEnd;
    return true;
  }

  /** Other threads see this before what follows, and what follows does not read before this is seen (contract.ts). */
  private write(at: number, place: number, count: number): void {
    const { words } = this;
    copyPart(words, at + 1, words, place + 1, count - 1);
    Atomics.store(words, place, words[at]);
    Atomics.load(words, place);
  }

  private sendReceipt(): void {
    const { size, owedEnd, nextArriving: number } = this;
    this.buffers.parcels.words[size + LENGTH] = owedEnd;
    // What it answers is in order with nothing else that we send.
    if (!this.post(size, owedEnd, number, this.map.receipt(this.route!.self), true)) return;
    this.owedEnd = 0;
    this.nextArriving = (number + 1) | 0;
  }

  /** Write or store a parcel or a receipt, `count` words of our buffer from `from` on. @returns false under back pressure */
  private post(
    from: number,
    count: number,
    number: number,
    to: number,
    mayStore: boolean,
  ): boolean {
    const { connection, remote } = this;
    const { mapped } = this.route!;
    const { parcels, extents } = this.buffers;
    const { words, registration } = parcels;
    const rest = count - LENGTH;
    if (mapped !== undefined && mayStore) {
      copyPart(words, from + LENGTH, mapped, to + LENGTH, rest);
      Atomics.store(mapped, to + NUMBER, number);
      this.wake(mapped, from);
      return true;
    }
    words[from + NUMBER] = number;
    extents.clear();
    extents.add(registration, (from + LENGTH) * 4, remote, (to + LENGTH) * 4, rest * 4);
    extents.add(registration, (from + NUMBER) * 4, remote, (to + NUMBER) * 4, 4);
    return connection.write(extents, NO_COMPLETION, 0);
  }

  /**
   * The other host says that it sleeps, and looks for what was stored after that. So it finds it, or we find that it sleeps.
   * Whatever arrives over the network ends its sleep. (If there is back pressure, something is on its way already.)
   *
   * @param from  of a word of our buffer that is free
   */
  private wake(mapped: Int32Array, from: number): void {
    const at = this.map.host(this.host) + HOST.sleeps;
    if (Atomics.load(mapped, at) === 0) return;
    if (Atomics.exchange(mapped, at, 0) === 0) return;
    const { parcels, extents } = this.buffers;
    parcels.words[from + NUMBER] = 0;
    extents.clear();
    extents.add(parcels.registration, (from + NUMBER) * 4, this.remote, at * 4, 4);
    this.connection.write(extents, NO_COMPLETION, 0);
  }
}
