/**
 * Fetching and serving snapshots, for a member that was left behind or has restarted. The replica calls `serve` in every
 * step; followers, candidates and recovering members call `fetch` while they need a snapshot.
 *
 * It is a pull protocol with one chunk under way: the fetcher names a nonce and a chunk, the server answers with that
 * chunk, and asking again is harmless. The server, any other live member, takes the snapshot (snapshot.ts) at whatever
 * it has delivered, and the group does not stop for it. Until the fetcher has restored it, the server publishes where it
 * needs the log held (`holdAt`).
 *
 * Invariant: all chunks that are put together are of one snapshot, from one incarnation of one server.
 */

import { HEAD_WORDS } from '../../memory/record.js';
import { InvariantError } from '../assert.js';
import type { Application } from '../edges.js';
import { CHUNK, SNAPSHOT_REQUEST } from '../layout.js';
import type { Member } from '../member.js';
import { writeWide } from '../wide.js';
import type { Rows } from './rows.js';
import { SlotReader, SlotWriter } from './slots.js';
import { restoreSnapshot, takeSnapshot } from './snapshot.js';

/** A fetcher's patience doubles at most so often. */
const RETRIES_MAX = 5;

/** A snapshot that a member is fetching from us. */
interface Served {
  /** The request it answers: the fetcher's nonce and incarnation. */
  nonce: number;
  incarnation: number;
  /** What we had delivered when we took it. index ≤ nextToDeliver. */
  index: number;
  words: Int32Array;
  /** When the fetcher asked last. */
  askedUs: number;
}

export class Snapshots {
  private readonly requestSlots: SlotReader[] = [];
  private readonly chunkSlots: SlotReader[] = [];
  private readonly requestWriter = new SlotWriter(SNAPSHOT_REQUEST.words);
  private readonly chunkWriter: SlotWriter;

  /** Per member, what it is fetching from us. */
  private readonly served: (Served | undefined)[] = [];
  private chunksSent = 0;
  private isServing = false;

  private fetching = false;
  /** The member that we fetch from, or fetched from last; -1 if there is none to fetch from. */
  private source = -1;
  /** Names the fetch under way. */
  private nonce = 0;
  private requests = 0;
  /** The next chunk: those before it are in `received`. */
  private wanted = 0;
  private received: Int32Array | undefined;
  private receivedIndex = 0;
  private sourceIncarnation = 0;
  private askedUs = 0;
  private progressUs = 0;
  /** How often we have changed the source since the last snapshot. At most RETRIES_MAX. */
  private retries = 0;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly application: Application,
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

  /** Answer the members that ask, and have the log held for them. Returns how many asked. */
  serve(nowUs: number, isNotified: boolean): number {
    const work = isNotified ? this.answerRequests(nowUs) : 0;
    if (work > 0 || this.isServing) {
      this.releaseServed(nowUs);
      this.member.holdAt = this.oldestServed();
    }
    return work;
  }

  private answerRequests(nowUs: number): number {
    let work = 0;
    for (let other = 0; other < this.requestSlots.length; other++) {
      const slot = this.requestSlots[other];
      if (other === this.member.index || !slot.poll()) continue;
      const nonce = slot.body(SNAPSHOT_REQUEST.nonce);
      let served = this.served[other];
      if (served?.nonce !== nonce || served.incarnation !== slot.epoch) {
        served = this.take(nonce, slot.epoch, nowUs);
        this.served[other] = served;
      }
      work++;
      if (served === undefined) continue;
      served.askedUs = nowUs;
      this.sendChunk(other, served, slot.body(SNAPSHOT_REQUEST.chunk));
    }
    return work;
  }

  /** If the service fails, the request is not answered: the fetcher asks the next member, and this one goes on. */
  private take(nonce: number, incarnation: number, nowUs: number): Served | undefined {
    const { member, application } = this;
    const { observer } = member.edges;
    try {
      const words = takeSnapshot(member, application);
      observer.transition('snapshot served');
      return { nonce, incarnation, index: member.nextToDeliver, words, askedUs: nowUs };
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      observer.snapshotFailed(error);
      return undefined;
    }
  }

  private sendChunk(other: number, served: Served, chunk: number): void {
    const { member, chunkWriter } = this;
    const { memory, layout } = member.edges;
    const { words, nonce, index, incarnation } = served;
    const start = chunk * layout.chunkWords;
    const count = Math.min(layout.chunkWords, words.length - start);
    if (count <= 0) return;
    chunkWriter.body[CHUNK.fetcherIncarnation] = incarnation;
    chunkWriter.body[CHUNK.nonce] = nonce;
    chunkWriter.body[CHUNK.chunk] = chunk;
    chunkWriter.body[CHUNK.totalWords] = words.length;
    writeWide(chunkWriter.body, CHUNK.index, index);
    chunkWriter.body.set(words.subarray(start, start + count), CHUNK.data);
    const to = layout.snapshotChunk(member.index);
    const peer = member.participantOf(other);
    const bodyWords = CHUNK.data + count;
    chunkWriter.post(memory, peer, to, bodyWords, member.incarnation, ++this.chunksSent);
    member.notify(other);
  }

  /** Release the snapshots that are restored, or that their fetchers no longer ask for. */
  private releaseServed(nowUs: number): void {
    // Longer than any fetcher waits before it asks again.
    const patienceUs = this.member.edges.timing.suspectAfterUs * (2 << RETRIES_MAX);
    this.isServing = false;
    for (let other = 0; other < this.served.length; other++) {
      const served = this.served[other];
      if (served === undefined) continue;
      this.isServing = true;
      const { incarnation, delivered } = this.rows.peer(other);
      const isDone = incarnation === served.incarnation && delivered >= served.index;
      if (isDone || nowUs - served.askedUs > patienceUs) this.served[other] = undefined;
    }
  }

  /**
   * The index of the oldest snapshot that a live member is fetching, or 0. The leader keeps the log from there. Unless it
   * suspects us, it has not dropped that yet, because we had delivered no more when we took the snapshot.
   */
  private oldestServed(): number {
    let oldest = 0;
    for (let other = 0; other < this.served.length; other++) {
      const served = this.served[other];
      // The group does not stop for a fetcher that has crashed.
      if (served === undefined || !this.rows.suspicion.isLive(other)) continue;
      oldest = oldest === 0 ? served.index : Math.min(oldest, served.index);
    }
    return oldest;
  }

  /** Start fetching, or go on. Call it in every step in which a snapshot is needed. */
  fetch(nowUs: number): void {
    // The patience doubles: a chunk that is asked for too often is overwritten before it has arrived.
    const patienceUs = this.member.edges.timing.suspectAfterUs * (1 << this.retries);
    if (!this.fetching) {
      this.choose(nowUs);
    } else if (nowUs - this.progressUs > 2 * patienceUs) {
      this.retries = Math.min(this.retries + 1, RETRIES_MAX);
      this.choose(nowUs);
    } else if (nowUs - this.askedUs > patienceUs) {
      this.ask(nowUs);
    }
    if (this.source === -1) return;
    const slot = this.chunkSlots[this.source];
    if (!slot.poll() || !this.isWanted(slot)) return;
    this.progressUs = nowUs;
    this.accept(slot);
    if (this.fetching) this.ask(nowUs);
  }

  /** A snapshot is no longer needed. */
  abandon(): void {
    this.fetching = false;
    this.received = undefined;
  }

  /** Start again with the next live member as the source. */
  private choose(nowUs: number): void {
    this.abandon();
    const { member, rows } = this;
    for (let turn = 1; turn <= member.replicas; turn++) {
      const other = (Math.max(this.source, 0) + turn) % member.replicas;
      if (other === member.index) continue;
      if (!rows.suspicion.isLive(other) || !rows.peer(other).normal) continue;
      this.source = other;
      this.fetching = true;
      this.nonce++;
      this.wanted = 0;
      this.progressUs = nowUs;
      this.ask(nowUs);
      return;
    }
    this.source = -1;
  }

  private ask(nowUs: number): void {
    const { member, requestWriter } = this;
    const { memory, layout } = member.edges;
    const { words } = SNAPSHOT_REQUEST;
    this.askedUs = nowUs;
    requestWriter.body[SNAPSHOT_REQUEST.nonce] = this.nonce;
    requestWriter.body[SNAPSHOT_REQUEST.chunk] = this.wanted;
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
      (this.received === undefined || this.isOfSame(slot))
    );
  }

  /** All chunks must be of one snapshot: a server that restarts, or has released ours, takes another. */
  private isOfSame(slot: SlotReader): boolean {
    return slot.epoch === this.sourceIncarnation && slot.wide(CHUNK.index) === this.receivedIndex;
  }

  private accept(slot: SlotReader): void {
    const { chunkWords } = this.member.layout;
    const total = slot.body(CHUNK.totalWords);
    if (this.received === undefined) {
      this.received = new Int32Array(total);
      this.receivedIndex = slot.wide(CHUNK.index);
      this.sourceIncarnation = slot.epoch;
    }
    const start = this.wanted * chunkWords;
    const count = Math.min(chunkWords, total - start);
    const data = HEAD_WORDS + CHUNK.data;
    this.received.set(slot.copy.subarray(data, data + count), start);
    this.wanted++;
    if (start + count < total) return;
    const words = this.received;
    this.abandon();
    this.retries = 0;
    if (this.receivedIndex > this.member.nextToDeliver) this.restore(words);
  }

  private restore(words: Int32Array): void {
    const { member } = this;
    const { observer } = member.edges;
    restoreSnapshot(words, member, this.application);
    observer.restored(this.source, member.deliveries);
    observer.transition('snapshot restored');
  }
}
