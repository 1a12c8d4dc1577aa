/**
 * Catching up, for a member that was left behind or has restarted: it fetches the entries that the log no longer has from
 * the leader's backlog or, if that no longer has them either, a snapshot from another member. The replica calls `serve`
 * in every step; followers, candidates and recovering members call `fetch` while the log lacks what they need.
 *
 * It is a pull protocol with one chunk under way: the fetcher names a nonce and a chunk, the server answers with that
 * chunk, and asking again is harmless. The server begins the snapshot (snapshot.ts) at whatever it has delivered, and the
 * group does not stop for it: the server takes each chunk when it is asked for, and keeps only that one. Until the fetcher
 * has restored the snapshot, the server publishes its index (`holdAt`): the leader keeps the entries from there on in its
 * backlog, and the fetcher continues with those.
 *
 * A member that stops in an orderly way can also leave a snapshot for its next incarnation (`leave`, `resumeFrom`).
 *
 * Invariant: all chunks that are put together are of one snapshot or backlog, from one incarnation of one server.
 */

import { HEAD_WORDS } from '../../memory/record.js';
import { InvariantError } from '../assert.js';
import { EMPTY } from '../data-path/backlog.js';
import type { Delivering } from '../data-path/delivery.js';
import type { Application } from '../edges.js';
import { CHUNK, SNAPSHOT_REQUEST } from '../layout.js';
import type { Member } from '../member.js';
import { writeWide } from '../wide.js';
import { NO_BALLOT } from './ballot.js';
import { type Chunks, EntryChunks, SnapshotChunks } from './chunks.js';
import type { JournalSnapshots } from './journal-snapshots.js';
import type { Rows } from './rows.js';
import { SlotReader, SlotWriter } from './slots.js';
import { joined, restoreSnapshot, SnapshotTaking, takeSnapshot } from './snapshot.js';

/** A fetcher's patience doubles at most so often. */
const RETRIES_MAX = 5;
/** Rows that were read before a pause do not tell who has a backlog. So many heartbeats later, all have been read. */
const ROWS_HEARTBEATS = 2;
const NEVER = Number.POSITIVE_INFINITY;

/** What a member is fetching from us: a snapshot or entries. */
interface Served {
  /** The request it answers: the fetcher's nonce and incarnation. */
  nonce: number;
  incarnation: number;
  /** How far the fetcher has delivered once it has it. index ≤ nextToDeliver. */
  index: number;
  /** The ballot of the entries, or NO_BALLOT for a snapshot. */
  ballot: number;
  chunks: Chunks;
  /** The chunk that the fetcher asked for last, whether it has yet to be sent, and when that was. */
  wanted: number;
  isOwed: boolean;
  askedUs: number;
  /** Has the service failed to go on? Then this request is not answered any more. */
  hasFailed: boolean;
}

export class Snapshots {
  private readonly requestSlots: SlotReader[] = [];
  private readonly chunkSlots: SlotReader[] = [];
  private readonly requestWriter = new SlotWriter(SNAPSHOT_REQUEST.words);
  private readonly chunkWriter: SlotWriter;

  /** Per member, what it is fetching from us. */
  private readonly served: (Served | undefined)[] = [];
  private chunksSent = 0;
  /** Is any member fetching from us? */
  isServing = false;

  /** Since when the log lacks what this member needs, or NEVER. */
  private neededSinceUs = NEVER;
  private fetching = false;
  /** The member that we fetch from, or fetched from last; -1 if there is none to fetch from. */
  private source = -1;
  /** Names the fetch under way. */
  private nonce = 0;
  private requests = 0;
  /** The next chunk: those before it are in `received`. */
  private wanted = 0;
  private received: Int32Array[] = [];
  private receivedIndex = 0;
  private receivedBallot = NO_BALLOT;
  /** What we had not delivered when the fetch began. */
  private nextIndex = 0;
  private sourceIncarnation = 0;
  private askedUs = 0;
  private progressUs = 0;
  /** How often we have changed the source since the last snapshot. At most RETRIES_MAX. */
  private retries = 0;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly delivering: Delivering,
    private readonly application: Application,
    private readonly journalSnapshots: JournalSnapshots | undefined,
  ) {
    const { memory, layout } = member.edges;
    const chunkBody = CHUNK.data + layout.chunkWords;
    this.chunkWriter = new SlotWriter(chunkBody);
    for (let other = 0; other < member.replicas; other++) {
      this.requestSlots.push(
        new SlotReader(memory.own, layout.snapshotRequest(other), SNAPSHOT_REQUEST.words),
      );
      this.chunkSlots.push(new SlotReader(memory.own, layout.snapshotChunk(other), chunkBody));
      this.served.push(undefined);
    }
  }

  /** Answer the members that ask, and have the entries kept that they need next. Returns how much was done. */
  serve(nowUs: number, isNotified: boolean): number {
    let work = isNotified ? this.readRequests(nowUs) : 0;
    if (work > 0 || this.isServing) {
      work += this.sendOwed();
      this.releaseServed(nowUs);
      this.member.holdAt = this.oldestServed();
    }
    return work;
  }

  private readRequests(nowUs: number): number {
    let work = 0;
    for (let other = 0; other < this.requestSlots.length; other++) {
      const slot = this.requestSlots[other];
      if (other === this.member.index || !slot.poll()) continue;
      const nonce = slot.body(SNAPSHOT_REQUEST.nonce);
      let served = this.served[other];
      if (served?.nonce !== nonce || served.incarnation !== slot.epoch) {
        this.release(other);
        served = this.prepare(nonce, slot.epoch, slot.wide(SNAPSHOT_REQUEST.next), nowUs);
        this.served[other] = served;
      }
      work++;
      if (served === undefined) continue;
      served.askedUs = nowUs;
      served.wanted = slot.body(SNAPSHOT_REQUEST.chunk);
      served.isOwed = true;
    }
    return work;
  }

  /** Send the chunks that were asked for, as far as they are there. Returns for how many the service has done something. */
  private sendOwed(): number {
    let work = 0;
    for (let other = 0; other < this.served.length; other++) {
      const served = this.served[other];
      if (!served?.isOwed || served.hasFailed) continue;
      work++;
      const chunk = this.chunkOf(served);
      if (chunk === undefined) continue;
      served.isOwed = false;
      if (chunk.length > 0) this.sendChunk(other, served, chunk);
    }
    return work;
  }

  /** If the service fails, the request is not answered: the fetcher asks the next member, and this one goes on. */
  private chunkOf(served: Served): Int32Array | undefined {
    try {
      return served.chunks.at(served.wanted);
    } catch (error) {
      served.hasFailed = true;
      this.tellFailure(error);
      return undefined;
    }
  }

  private tellFailure(error: unknown): void {
    if (error instanceof InvariantError) throw error;
    this.member.edges.observer.snapshotFailed(error);
  }

  /** Entries from `next` on, if our backlog has them, else a snapshot; undefined if there is none. */
  private prepare(
    nonce: number,
    incarnation: number,
    next: number,
    nowUs: number,
  ): Served | undefined {
    const { member } = this;
    const asked = {
      nonce,
      incarnation,
      wanted: 0,
      isOwed: false,
      askedUs: nowUs,
      hasFailed: false,
    };
    const entries = member.backlog.from(next);
    if (entries !== undefined) {
      const { ballot, words, endIndex } = entries;
      member.edges.observer.transition('backlog fetched');
      const chunks = new EntryChunks(words, member.layout.chunkWords);
      return { ...asked, index: endIndex, ballot, chunks };
    }
    const taking = this.beginSnapshot();
    if (taking === undefined) return undefined;
    const chunks = new SnapshotChunks(taking);
    return { ...asked, index: taking.index, ballot: NO_BALLOT, chunks };
  }

  private beginSnapshot(): SnapshotTaking | undefined {
    const { member, application } = this;
    if (!member.hasState) return undefined;
    try {
      const taking = new SnapshotTaking(member, application, member.layout.chunkWords);
      member.edges.observer.transition('snapshot served');
      return taking;
    } catch (error) {
      this.tellFailure(error);
      return undefined;
    }
  }

  private sendChunk(other: number, served: Served, words: Int32Array): void {
    const { member, chunkWriter } = this;
    const { memory, layout } = member.edges;
    const { wanted, chunks, nonce, index, ballot, incarnation } = served;
    const isLast = wanted * layout.chunkWords + words.length === chunks.totalWords;
    chunkWriter.body[CHUNK.fetcherIncarnation] = incarnation;
    chunkWriter.body[CHUNK.nonce] = nonce;
    chunkWriter.body[CHUNK.chunk] = wanted;
    chunkWriter.body[CHUNK.totalWords] = isLast ? chunks.totalWords : 0;
    writeWide(chunkWriter.body, CHUNK.index, index);
    chunkWriter.body[CHUNK.ballot] = ballot;
    chunkWriter.body.set(words, CHUNK.data);
    const to = layout.snapshotChunk(member.index);
    const peer = member.participantOf(other);
    const bodyWords = CHUNK.data + words.length;
    chunkWriter.post(memory, peer, to, bodyWords, member.incarnation, ++this.chunksSent);
    member.notify(other);
  }

  /** Release what has arrived, and what its fetcher no longer asks for. */
  private releaseServed(nowUs: number): void {
    // Longer than any fetcher waits before it asks again.
    const patienceUs = this.member.edges.timing.suspectAfterUs * (2 << RETRIES_MAX);
    this.isServing = false;
    for (let other = 0; other < this.served.length; other++) {
      const served = this.served[other];
      if (served === undefined) continue;
      this.isServing = true;
      const { incarnation, delivered } = this.rows.peer(other);
      const hasRestarted = incarnation > served.incarnation;
      const isDone = incarnation === served.incarnation && delivered >= served.index;
      if (isDone || hasRestarted || nowUs - served.askedUs > patienceUs) this.release(other);
    }
  }

  private release(other: number): void {
    const served = this.served[other];
    this.served[other] = undefined;
    try {
      served?.chunks.close();
    } catch (error) {
      this.tellFailure(error);
    }
  }

  /** The lowest index at which a member will continue with what it is fetching, or 0. The leader keeps entries from there. */
  private oldestServed(): number {
    let oldest = 0;
    for (const served of this.served) {
      if (served === undefined || served.hasFailed) continue;
      oldest = oldest === 0 ? served.index : Math.min(oldest, served.index);
    }
    return oldest;
  }

  /**
   * Start fetching, or go on. Call it in every step in which the log lacks what this member needs. True if something has
   * arrived completely: then look again whether that is enough.
   */
  fetch(nowUs: number): boolean {
    const { timing } = this.member.edges;
    // Entries that could not be delivered now would have to be fetched again.
    if (this.delivering.journaling?.isStillFull()) return false;
    if (this.neededSinceUs === NEVER) this.neededSinceUs = nowUs;
    if (nowUs - this.neededSinceUs < ROWS_HEARTBEATS * timing.heartbeatUs) return false;
    // The patience doubles: a chunk that is asked for too often is overwritten before it has arrived.
    const patienceUs = timing.suspectAfterUs * (1 << this.retries);
    if (!this.fetching) {
      this.choose(nowUs);
    } else if (nowUs - this.progressUs > 2 * patienceUs) {
      this.retries = Math.min(this.retries + 1, RETRIES_MAX);
      this.choose(nowUs);
    } else if (nowUs - this.askedUs > patienceUs) {
      this.ask(nowUs);
    }
    if (this.source === -1) return false;
    const slot = this.chunkSlots[this.source];
    if (!slot.poll() || !this.isWanted(slot)) return false;
    this.progressUs = nowUs;
    this.accept(slot);
    if (this.fetching) this.ask(nowUs);
    return !this.fetching;
  }

  /** The log has what this member needs. */
  abandon(): void {
    this.neededSinceUs = NEVER;
    this.retries = 0;
    this.stop();
  }

  private stop(): void {
    this.fetching = false;
    this.received = [];
  }

  /** Start again with another source. */
  private choose(nowUs: number): void {
    this.stop();
    this.source = this.bestSource();
    if (this.source === -1) return;
    this.fetching = true;
    this.nonce++;
    this.wanted = 0;
    this.nextIndex = this.member.nextToDeliver;
    this.progressUs = nowUs;
    this.ask(nowUs);
  }

  /**
   * The live member to fetch from, or -1 if none is ahead of us: one whose backlog has what we need, else one that does not
   * lead, because taking a snapshot stops the member that takes it. After a fruitless attempt, whichever is next.
   */
  private bestSource(): number {
    const { member, rows } = this;
    let best = -1;
    let highest = -1;
    for (let turn = 1; turn <= member.replicas; turn++) {
      const other = (Math.max(this.source, 0) + turn) % member.replicas;
      const { normal, delivered, ledBallot, backlog } = rows.peer(other);
      if (other === member.index || !normal || !rows.suspicion.isLive(other)) continue;
      // The leader in whose log we are left behind is ahead of us, whatever its row said when it was read last.
      const isOurLeader = ledBallot !== NO_BALLOT && ledBallot === member.promised;
      if (delivered <= member.nextToDeliver && !isOurLeader) continue;
      const hasEntries = backlog !== EMPTY && backlog <= member.nextToDeliver;
      const rank = this.retries > 0 ? 0 : hasEntries ? 2 : ledBallot === NO_BALLOT ? 1 : 0;
      if (rank <= highest) continue;
      best = other;
      highest = rank;
    }
    return best;
  }

  private ask(nowUs: number): void {
    const { member, requestWriter } = this;
    const { memory, layout } = member.edges;
    const { words } = SNAPSHOT_REQUEST;
    this.askedUs = nowUs;
    requestWriter.body[SNAPSHOT_REQUEST.nonce] = this.nonce;
    requestWriter.body[SNAPSHOT_REQUEST.chunk] = this.wanted;
    writeWide(requestWriter.body, SNAPSHOT_REQUEST.next, this.nextIndex);
    const to = layout.snapshotRequest(member.index);
    const peer = member.participantOf(this.source);
    requestWriter.post(memory, peer, to, words, member.incarnation, ++this.requests);
    member.notify(this.source);
  }

  private isWanted(slot: SlotReader): boolean {
    return (
      slot.body(CHUNK.fetcherIncarnation) === this.member.incarnation &&
      slot.body(CHUNK.nonce) === this.nonce &&
      slot.body(CHUNK.chunk) === this.wanted &&
      (this.received.length === 0 || this.isOfSame(slot))
    );
  }

  /** All chunks must be of one piece: a server that restarts, or has released ours, prepares another. */
  private isOfSame(slot: SlotReader): boolean {
    return (
      slot.epoch === this.sourceIncarnation &&
      slot.wide(CHUNK.index) === this.receivedIndex &&
      slot.body(CHUNK.ballot) === this.receivedBallot
    );
  }

  private accept(slot: SlotReader): void {
    const { chunkWords } = this.member.layout;
    const { received } = this;
    const total = slot.body(CHUNK.totalWords);
    if (received.length === 0) {
      this.receivedIndex = slot.wide(CHUNK.index);
      this.receivedBallot = slot.body(CHUNK.ballot);
      this.sourceIncarnation = slot.epoch;
    }
    const isLast = total > 0;
    const count = isLast ? total - this.wanted * chunkWords : chunkWords;
    const data = HEAD_WORDS + CHUNK.data;
    received.push(slot.copy.slice(data, data + count));
    this.wanted++;
    if (!isLast) return;
    const words = joined(received);
    this.stop();
    this.retries = 0;
    const { nextToDeliver } = this.member;
    if (this.receivedBallot === NO_BALLOT) {
      if (this.receivedIndex > nextToDeliver) this.restore(words);
    } else if (this.nextIndex === nextToDeliver) {
      this.delivering.deliverFetched(words, this.receivedBallot);
    }
  }

  private restore(words: Int32Array): void {
    const { member } = this;
    const { observer } = member.edges;
    this.dropTakings();
    restoreSnapshot(words, member, this.application);
    observer.restored(this.source, member.deliveries);
    observer.transition('snapshot restored');
    this.journalSnapshots?.restored();
  }

  /** Before the service restores another state: it can't go on with its views of this one. */
  private dropTakings(): void {
    for (let other = 0; other < this.served.length; other++) this.release(other);
    this.journalSnapshots?.drop();
  }

  /** Our state for a later incarnation of this member; undefined if there is none worth keeping. */
  leave(): Int32Array | undefined {
    const { member } = this;
    const hasState = member.normal && member.nextToDeliver > member.layout.sizes.firstIndex;
    return hasState ? takeSnapshot(member, this.application) : undefined;
  }

  /**
   * Go on with what an earlier incarnation has left. It may be older than the last thing that this member delivered: it
   * is the state after a prefix of the decided entries, and those never change. The member then catches up as usual.
   */
  resumeFrom(left: Int32Array): void {
    const { member } = this;
    const { observer } = member.edges;
    restoreSnapshot(left, member, this.application);
    observer.restored(member.index, member.deliveries);
    observer.transition('resumed from a left snapshot');
  }
}
