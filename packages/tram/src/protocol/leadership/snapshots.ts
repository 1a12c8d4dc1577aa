/**
 * Fetching and serving snapshots: for a member that was left behind, or restarted.
 *
 * A pull protocol with one chunk under way: the fetcher names a nonce and a chunk, any other member
 * answers with that chunk, and asking again is harmless. A snapshot holds the application's state,
 * the counters and the kept replies after a prefix of the log. It is taken at whatever the server has
 * delivered; the group does not stop for it.
 */

import { HEAD_WORDS } from '../../memory/record.js';
import { assert } from '../assert.js';
import type { Application } from '../edges.js';
import { CHUNK, SNAPSHOT_REQUEST } from '../layout.js';
import type { Member } from '../member.js';
import { readWide, writeWide } from '../wide.js';
import type { Rows } from './rows.js';
import { SlotReader, SlotWriter } from './slots.js';

interface Served {
  nonce: number;
  incarnation: number;
  index: number;
  words: Int32Array;
  askedUs: number;
}

export class Snapshots {
  private readonly requestSlots: SlotReader[] = [];
  private readonly chunkSlots: SlotReader[] = [];
  private readonly requestWriter = new SlotWriter(SNAPSHOT_REQUEST.words);
  private readonly chunkWriter: SlotWriter;
  private readonly served: (Served | undefined)[] = [];
  private chunksSent = 0;
  private isServing = false;

  private nonce = 0;
  private requests = 0;
  private source = -1;
  private fetching = false;
  private wanted = 0;
  private received: Int32Array | undefined;
  private receivedIndex = 0;
  private sourceIncarnation = 0;
  private askedUs = 0;
  private progressUs = 0;
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

  /** Answer those who ask, and hold the log for them. */
  serve(nowUs: number, hasMail: boolean): number {
    const work = hasMail ? this.answerRequests(nowUs) : 0;
    if (work > 0 || this.isServing) this.member.holdAt = this.oldestServed(nowUs);
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
        served = {
          nonce,
          incarnation: slot.epoch,
          index: this.member.nextToDeliver,
          words: this.take(),
          askedUs: nowUs,
        };
        this.served[other] = served;
        this.member.edges.observer.transition('snapshot served');
      }
      served.askedUs = nowUs;
      this.sendChunk(other, served, slot.body(SNAPSHOT_REQUEST.chunk));
      work++;
    }
    return work;
  }

  /**
   * The oldest snapshot that somebody is still fetching, or 0; others are let go. The leader keeps the
   * log from there; it has not dropped it yet, unless it thinks us dead, because we had delivered no
   * more when we took it.
   */
  private oldestServed(nowUs: number): number {
    // Longer than any fetcher waits before it asks again.
    const patienceUs = this.member.edges.timing.suspectAfterUs * (2 << RETRIES_MAX);
    let oldest = 0;
    this.isServing = false;
    for (let other = 0; other < this.served.length; other++) {
      const served = this.served[other];
      if (served === undefined) continue;
      this.isServing = true;
      const { incarnation, delivered } = this.rows.peer(other);
      const isDone = incarnation === served.incarnation && delivered >= served.index;
      if (isDone || nowUs - served.askedUs > patienceUs) {
        this.served[other] = undefined;
        continue;
      }
      // The group does not stand still for one that has crashed.
      if (!this.rows.suspicion.isLive(other)) continue;
      oldest = oldest === 0 ? served.index : Math.min(oldest, served.index);
    }
    return oldest;
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
    const peer = member.processOf(other);
    const bodyWords = CHUNK.data + count;
    chunkWriter.post(memory, peer, to, bodyWords, member.incarnation, ++this.chunksSent);
    member.notify(other);
  }

  /** Start fetching, or go on: call while a snapshot is needed. */
  fetch(nowUs: number): void {
    // Ever more patient: a chunk that is asked for too often is overwritten before it has arrived.
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

  /** No longer needed. */
  abandon(): void {
    this.fetching = false;
    this.received = undefined;
  }

  /** Pick the next live member to fetch from. */
  private choose(nowUs: number): void {
    this.abandon();
    const { member, rows } = this;
    for (let turn = 1; turn <= member.replicas; turn++) {
      const other = (Math.max(this.source, 0) + turn) % member.replicas;
      if (other === member.index || !rows.suspicion.isLive(other) || !rows.peer(other).normal)
        continue;
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

  private isWanted(slot: SlotReader): boolean {
    return (
      slot.body(CHUNK.fetcherIncarnation) === this.member.incarnation &&
      slot.body(CHUNK.nonce) === this.nonce &&
      slot.body(CHUNK.chunk) === this.wanted &&
      (this.received === undefined || this.isOfSame(slot))
    );
  }

  /** All chunks must be of one snapshot: a server that restarts, or has given us up, takes another. */
  private isOfSame(slot: SlotReader): boolean {
    return slot.epoch === this.sourceIncarnation && slot.wide(CHUNK.index) === this.receivedIndex;
  }

  private ask(nowUs: number): void {
    const { member, requestWriter } = this;
    const { memory, layout } = member.edges;
    this.askedUs = nowUs;
    requestWriter.body[SNAPSHOT_REQUEST.nonce] = this.nonce;
    requestWriter.body[SNAPSHOT_REQUEST.chunk] = this.wanted;
    const to = layout.snapshotRequest(member.index);
    const peer = member.processOf(this.source);
    requestWriter.post(
      memory,
      peer,
      to,
      SNAPSHOT_REQUEST.words,
      member.incarnation,
      ++this.requests,
    );
    member.notify(this.source);
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
    if (this.receivedIndex > this.member.nextToDeliver) this.restore(words, this.source);
  }

  private take(): Int32Array {
    const { member } = this;
    const { delivered, replies } = member;
    const state = this.application.snapshot();
    const clients = delivered.session.length;
    const appWords = (state.length + 3) >> 2;
    const fixed = FIXED.words + clients * CLIENT.words;
    const words = new Int32Array(fixed + replies.words.length + appWords);
    writeWide(words, FIXED.nextToDeliver, member.nextToDeliver);
    words[FIXED.nextPosition] = member.nextPosition;
    writeWide(words, FIXED.deliveries, member.deliveries);
    writeWide(words, FIXED.nextFromParent, delivered.nextFromParent);
    words[FIXED.stateBytes] = state.length;
    let at: number = FIXED.words;
    for (let client = 0; client < clients; client++, at += CLIENT.words) {
      words[at + CLIENT.session] = delivered.session[client];
      words[at + CLIENT.nextPosition] = delivered.nextPosition[client];
      writeWide(words, at + CLIENT.nextNumber, delivered.nextNumber[client]);
    }
    words.set(replies.words, at);
    at += replies.words.length;
    new Uint8Array(words.buffer, at * 4, state.length).set(state);
    return words;
  }

  private restore(words: Int32Array, from: number): void {
    const { member } = this;
    const { delivered, replies } = member;
    const nextToDeliver = readWide(words, FIXED.nextToDeliver);
    assert(nextToDeliver > member.nextToDeliver, 'delivery never goes back');
    member.nextToDeliver = nextToDeliver;
    member.nextPosition = words[FIXED.nextPosition];
    member.deliveries = readWide(words, FIXED.deliveries);
    delivered.nextFromParent = readWide(words, FIXED.nextFromParent);
    let at: number = FIXED.words;
    for (let client = 0; client < delivered.session.length; client++, at += CLIENT.words) {
      delivered.session[client] = words[at + CLIENT.session];
      delivered.nextPosition[client] = words[at + CLIENT.nextPosition];
      delivered.nextNumber[client] = readWide(words, at + CLIENT.nextNumber);
    }
    replies.load(words.subarray(at, at + replies.words.length));
    at += replies.words.length;
    this.application.restore(new Uint8Array(words.buffer, at * 4, words[FIXED.stateBytes]));
    member.edges.observer.restored(from, member.deliveries);
    member.edges.observer.transition('snapshot restored');
  }
}

/** A snapshot's words: these, the clients' counters, the kept replies, the application's bytes. */
const FIXED = {
  nextToDeliver: 0,
  nextPosition: 2,
  deliveries: 3,
  nextFromParent: 5,
  stateBytes: 7,
  words: 8,
} as const;

const RETRIES_MAX = 5;

const CLIENT = { session: 0, nextPosition: 1, nextNumber: 2, words: 4 } as const;
