/**
 * Everything that the participants of this host post to those of one other host. It goes over one connection and takes
 * effect there in the order of posting. Participants call it through `machines-memory.ts`; `network.ts` flushes it and
 * passes on what the connection has completed.
 *
 * - Posts are gathered until `flush`. A batch goes as few operations, in one packet if it fits: writes side by side
 *   become one, several writes one operation (`transfers.ts`), and one read behind all of them confirms them (`posts.ts`).
 * - With the provider `tcp`, a batch of several operations goes as one, a parcel (`parcels.ts`).
 * - Urgent posts go with the next flush. Non-urgent writes are batched for as long as the caller of `flush` allows.
 * - What is gathered or in flight lies in two buffers of a fixed size. A peer so slow that one of them fills up is
 *   disconnected.
 * - The outcome of every post is reported once, in the order of posting; if the connection ends, as lost.
 */
import type { Arena, ArenaMap } from '../arena.js';
import { OPEN, type ParticipantId, reportsSuccess } from '../contract.js';
import type { Connection } from '../fabric/connection.js';
import type { RemoteRegion } from '../fabric/registration.js';
import type { LinkBuffers } from './buffers.js';
import { type ParcelRoute, Parcels } from './parcels.js';
import { isFireAndForget, type Poster, Posts } from './posts.js';
import { ReadyFlags } from './ready-flags.js';
import { type Transfer, Transfers } from './transfers.js';

/** What a link needs of its network. */
export interface LinkOwner {
  /** The link has something to send: call its `flush` until that returns false. */
  scheduleFlush(link: Link): void;
  /** The link can't go on: close its connection. */
  abandon(link: Link, why: string): void;
}

const OUT_FULL = 'it is too slow: what is on its way to it has filled the buffer';
const IN_FULL = 'it is too slow: what is read from it has filled the buffer';
const GARBAGE = 'it has sent a parcel, or an answer to one, that makes no sense';
/** After so long without an answer a word is read, only to see whether the peer is there. */
const PROBE_US = 100_000;
/** A time that is always ahead. (A number like all times: a field that can be undefined would allocate them.) */
const NEVER = Number.POSITIVE_INFINITY;

/** The host itself posts to no participant, and its writes are confirmed as if success were to be reported. */
const NO_PEER = -1;
const CONFIRMED_TAG = 1;

export class Link {
  /** May be posted to. */
  isOpen = false;
  private readonly posts: Posts;
  private readonly transfers = new Transfers();
  private readonly parcels: Parcels;
  /** To be set with the next batch, behind everything that is gathered. */
  private readonly flags: ReadyFlags;

  /** Is the owner going to call `flush`? */
  private isScheduled = false;
  /** Is a participant, here or there, waiting for what is gathered? Then it goes with the next flush. */
  private isUrgent = false;
  /** Is a poster waiting for the outcome of what was posted since the last confirmation? */
  private needsConfirmation = false;
  /** The connection has not taken all of the last batch. */
  private hasBackPressure = false;
  /** When `flush` first found what is gathered now, or `NEVER`. */
  private gatheredSinceUs = NEVER;
  /** Since when we wait for the peer's next answer (the completion of a read), and when its last one came. */
  private waitingSinceUs = 0;
  private answeredUs = 0;
  /** Has a read over this connection completed? */
  private hasCompleted = false;

  constructor(
    /** The number of the other host. */
    readonly host: number,
    private readonly map: ArenaMap,
    /** Of our own host. */
    arena: Pick<Arena, 'words'>,
    private readonly owner: LinkOwner,
  ) {
    this.posts = new Posts(map);
    this.parcels = new Parcels(arena.words, map, host);
    this.flags = new ReadyFlags(map);
  }

  /** The other host is about to get a key to our arena, for a new connection. @param keyLow  its lower word */
  prepare(keyLow: number): void {
    this.parcels.prepare(keyLow);
  }

  /**
   * There is a connection, and we know the key to the other host's arena.
   *
   * @param route  if batches go as parcels
   */
  open(
    connection: Connection,
    remote: RemoteRegion,
    buffers: LinkBuffers,
    nowUs: number,
    route?: ParcelRoute,
  ): void {
    this.transfers.open(connection, remote, buffers);
    this.parcels.open(connection, remote, buffers, route);
    this.hasCompleted = false;
    this.waitingSinceUs = nowUs;
    this.answeredUs = nowUs;
    this.isOpen = true;
  }

  /** The connection has ended: every post whose outcome has not been reported is lost. */
  lose(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.posts.reportLost();
    this.transfers.clear();
    this.parcels.close();
    this.flags.clear();
    this.isUrgent = false;
    this.needsConfirmation = false;
    this.hasBackPressure = false;
    this.gatheredSinceUs = NEVER;
  }

  // --- posting ---------------------------------------------------------------------------------

  /** @param poster  undefined: the host itself  @param at  in the arena of the other host */
  write(
    poster: Poster | undefined,
    peer: ParticipantId,
    at: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    const { transfers } = this;
    const isGathered = transfers.addWrite(at, source, from, count);
    if (!isFireAndForget(guard, tag)) this.posts.add(poster, peer, guard, tag);
    if (reportsSuccess(tag)) this.needsConfirmation = true;
    if (!isGathered) {
      this.owner.abandon(this, OUT_FULL);
      return;
    }
    this.schedule();
    if (transfers.needsRead) this.addConfirmation();
  }

  /** @param at  in the arena of the other host */
  read(
    poster: Poster | undefined,
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    const { posts } = this;
    const read = this.transfers.addRead('read', at, count, posts.endIndex);
    const hadUnconfirmed = posts.hasUnconfirmed;
    posts.add(poster, peer, OPEN, tag);
    // A read needs no confirmation, but its outcome is reported after those of the posts before it, which may.
    if (hadUnconfirmed) this.needsConfirmation = true;
    else posts.markConfirmed();
    if (read === undefined) {
      this.owner.abandon(this, IN_FULL);
      return;
    }
    read.into = into;
    read.intoAt = intoAt;
    this.markUrgent();
  }

  /** Write for the host itself. The words have landed once the link `isSettled`. @param at  in the other host's arena */
  writeWords(at: number, source: Int32Array): void {
    if (!this.isOpen) return;
    this.write(undefined, NO_PEER, at, source, 0, source.length, OPEN, CONFIRMED_TAG);
    this.markUrgent();
  }

  /** Read for the host itself. The words are in `into` once the link `isSettled`. */
  readWords(at: number, into: Int32Array, intoAt: number, count: number): void {
    if (!this.isOpen) return;
    this.read(undefined, NO_PEER, at, count, into, intoAt, CONFIRMED_TAG);
  }

  /** What was posted goes with the next flush. */
  markUrgent(): void {
    if (!this.isOpen) return;
    this.schedule();
    this.isUrgent = true;
  }

  /** Set a ready flag of `peer`, behind everything that was posted. */
  wake(peer: ParticipantId, urgent: boolean): void {
    if (!this.isOpen) return;
    this.schedule();
    this.flags.add(peer, urgent);
    if (urgent) this.isUrgent = true;
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.owner.scheduleFlush(this);
  }

  // --- flushing --------------------------------------------------------------------------------

  /** Is a poster waiting for the outcome of what is gathered, urgently? */
  get isAwaited(): boolean {
    return this.isUrgent && this.needsConfirmation;
  }

  /** Has every post been sent, confirmed and reported? */
  get isSettled(): boolean {
    const { posts, transfers } = this;
    return posts.isEmpty && !transfers.hasReadsInFlight && !transfers.hasUnsent;
  }

  /**
   * Send what is gathered, if it is urgent or has been batched for long enough.
   *
   * @param batchUs  for how long non-urgent writes are batched
   * @returns whether something is left for the next flush
   */
  flush(nowUs: number, batchUs: number): boolean {
    if (this.isOpen) {
      if (this.hasGathered && this.gatheredSinceUs === NEVER) this.gatheredSinceUs = nowUs;
      if (this.isDue(nowUs, batchUs)) this.send(nowUs);
    }
    this.isScheduled = this.isOpen && this.hasGathered;
    return this.isScheduled;
  }

  private get hasGathered(): boolean {
    return this.transfers.hasUnsent || !this.flags.isEmpty;
  }

  private isDue(nowUs: number, batchUs: number): boolean {
    return this.isUrgent || nowUs - this.gatheredSinceUs >= batchUs;
  }

  private send(nowUs: number): void {
    const { transfers, parcels, isAwaited } = this;
    // What libfabric itself writes and reads would overtake the parcel.
    if (parcels.isUnderWay) return;
    if (!this.awaitsPeer) this.waitingSinceUs = nowUs;
    this.flags.moveTo(transfers);
    if (this.needsConfirmation) this.addConfirmation();
    // The first batch goes without a parcel: it may be the greeting, before which the peer unpacks nothing.
    const isWorth = parcels.canStore || transfers.isWorthParcel;
    const packs = parcels.isOpen && this.hasCompleted && isWorth;
    if (packs && !transfers.hasUnsentReads) this.addConfirmation();
    // There was no room for a confirmation.
    if (!this.isOpen) return;
    if (!packs || !transfers.pack(parcels, isAwaited)) transfers.send();
    this.hasBackPressure = transfers.hasUnsent;
    this.isUrgent = this.hasBackPressure;
    this.gatheredSinceUs = NEVER;
  }

  /** Read the permissions of all peers with unconfirmed guarded writes, behind everything that is gathered. */
  private addConfirmation(): void {
    const { posts } = this;
    const permissions = posts.unconfirmedPermissions();
    // Without guarded writes any word will do: what counts is that it comes back.
    const at = permissions.count > 0 ? permissions.at : this.map.host(this.host);
    const count = Math.max(permissions.count, 1);
    if (this.transfers.addRead('confirmation', at, count, posts.endIndex) === undefined) {
      this.owner.abandon(this, IN_FULL);
      return;
    }
    posts.markConfirmed();
    this.needsConfirmation = false;
    this.markUrgent();
  }

  /**
   * To be called every few milliseconds. Confirms posts of which only failures are reported, so that these are reported
   * in time. And reads a word if the peer has not answered anything for a while: nothing else shows that it is gone.
   */
  probe(nowUs: number): void {
    if (!this.isOpen) return;
    const isQuiet = !this.awaitsPeer && nowUs - this.answeredUs > PROBE_US;
    if (isQuiet || this.posts.hasUnconfirmed) this.addConfirmation();
  }

  // --- completions -----------------------------------------------------------------------------

  /**
   * Take what parcels have brought: posts of the peer, and the outcome of ours.
   *
   * @returns whether there was a parcel that the peer waits for
   */
  exchange(nowUs: number): boolean {
    const { parcels } = this;
    if (!parcels.isOpen) return false;
    const arrival = parcels.unpack();
    if (arrival === 'garbage') this.owner.abandon(this, GARBAGE);
    if (parcels.hasReceipt && this.transfers.areOthersCompleted) {
      if (parcels.isReceiptWhole) this.onCompleted(this.transfers.takeReceipt(parcels), nowUs);
      else this.owner.abandon(this, GARBAGE);
    }
    return arrival === 'awaited';
  }

  /** Has another thread stored what `exchange` would take? */
  get hasArrived(): boolean {
    const { parcels } = this;
    return parcels.hasParcel || (parcels.hasReceipt && this.transfers.areOthersCompleted);
  }

  /** The oldest reads in flight, so many, have completed. */
  onCompleted(reads: number, nowUs: number): void {
    this.waitingSinceUs = nowUs;
    this.answeredUs = nowUs;
    this.hasCompleted = true;
    for (let count = reads; count > 0; count--) this.onRead(this.transfers.completeRead());
    this.posts.reportCompleted();
  }

  private onRead(read: Transfer): void {
    const { posts, transfers } = this;
    const { arrived } = transfers;
    const { local, count } = read;
    if (read.kind === 'confirmation') {
      posts.confirm(read.postIndex, arrived, local, read.remote);
    } else {
      read.into.set(arrived.subarray(local, local + count), read.intoAt);
      posts.completeRead(read.postIndex);
    }
    transfers.free(read);
  }

  /** For how long the peer has not answered although it should have. */
  silentUs(nowUs: number): number {
    return this.isOpen && this.awaitsPeer ? nowUs - this.waitingSinceUs : 0;
  }

  /** Is it for the peer to act? Not if we only batch. */
  private get awaitsPeer(): boolean {
    return this.hasBackPressure || this.transfers.hasReadsInFlight;
  }
}
