/**
 * The throughput of a bare ring from one core to another, with one producer and one consumer: no groups, no replication, no
 * recovery. It is the upper bound that `tram-lab bench order` prints beside TRAM's throughput.
 *
 *   ┌───────────┬──────────┬───────┬──────────┬──────────┬─────┐
 *   │ published │ consumed │ ended │ record 0 │ record 1 │  …  │
 *   └───────────┴──────────┴───────┴──────────┴──────────┴─────┘
 *
 * Each field starts a cache line of its own, and records are copied in whole lines. Positions count records modulo 2³². The
 * producer copies a record in and then stores `published`; the consumer copies it out into its own memory and from time to
 * time stores `consumed`. Each side caches the other's position and reads it again only when it needs more.
 *
 * The consumer measures the time: it warms up, counts, and then stores `STOP` as its position. The producer answers with
 * `ended`. The consumer then takes the remaining records, so that every record is checked.
 */
import { awaitChange, LINE_PAIR_WORDS, LINE_WORDS, type RawMemory, runPair } from './pair.js';

export interface RawRingOptions {
  readonly memory: RawMemory;
  readonly recordBytes: number;
  /** Duration of each of the two measurements. */
  readonly seconds: number;
  /** Check every word of every record; much slower, for tests. By default only record numbers are checked. */
  readonly checksContents?: boolean;
}

export interface RawRing {
  /** Each record published as soon as it is written. */
  readonly messagesPerSecond: number;
  /** Published 32 records at a time. */
  readonly batchedMessagesPerSecond: number;
}

export type RingJob = ProduceJob | ConsumeJob;

interface ProduceJob {
  readonly role: 'produce';
  readonly recordWords: number;
  readonly batch: number;
  readonly checksContents: boolean;
}

interface ConsumeJob {
  readonly role: 'consume';
  readonly recordWords: number;
  readonly seconds: number;
  readonly checksContents: boolean;
}

const PUBLISHED = 0;
const CONSUMED = LINE_PAIR_WORDS;
const ENDED = 2 * LINE_PAIR_WORDS;
const RECORDS = 3 * LINE_PAIR_WORDS;

/** A power of two, so small that 64 B records fit into the first-level cache. */
const SLOTS = 256;
const BATCH = 32;
/** Records between two reads of the clock. */
const BLOCK = 4096;
const WARM_UP_MS = 100;
/** A consumer's position that ends the producer. All regular positions are multiples of `BATCH`. */
const STOP = -1;
/** For records of at least this size `TypedArray.set` is faster than copying word by word. */
const SET_WORDS = 64;

export async function measureRawRing(options: RawRingOptions): Promise<RawRing> {
  return {
    messagesPerSecond: await measure(options, 1),
    batchedMessagesPerSecond: await measure(options, BATCH),
  };
}

async function measure(options: RawRingOptions, batch: number): Promise<number> {
  const { memory, recordBytes, seconds, checksContents = false } = options;
  // An empty record still has a number.
  const recordWords = Math.max(1, Math.ceil(recordBytes / 4));
  const result = await runPair(memory, ringWords(recordWords), [
    { role: 'consume', recordWords, seconds, checksContents },
    { role: 'produce', recordWords, batch, checksContents },
  ]);
  return result as number;
}

/** The size of the whole ring. */
export function ringWords(recordWords: number): number {
  return RECORDS + SLOTS * strideOf(recordWords);
}

function strideOf(recordWords: number): number {
  return Math.ceil(recordWords / LINE_WORDS) * LINE_WORDS;
}

/** Publishes records until the consumer stores `STOP`. */
export function produce(
  words: Int32Array,
  { recordWords, batch, checksContents }: ProduceJob,
): void {
  const slots = new Slots(words, recordWords);
  const record = new Int32Array(strideOf(recordWords));
  let next = 0;
  let consumed = 0;
  for (;;) {
    while (((next + batch - consumed) | 0) > SLOTS) {
      consumed = awaitChange(words, CONSUMED, consumed);
      if (consumed === STOP) {
        Atomics.store(words, ENDED, 1);
        return;
      }
    }
    for (let i = 0; i < batch; i++) {
      if (checksContents) fill(record, next);
      else record[0] = next;
      slots.write(next, record);
      next = (next + 1) | 0;
    }
    Atomics.store(words, PUBLISHED, next);
  }
}

/** @returns records a second */
export function consume(words: Int32Array, job: ConsumeJob): number {
  const consumer = new Consumer(words, job);
  consumer.takeFor(WARM_UP_MS);
  const rate = consumer.takeFor(job.seconds * 1000);
  consumer.finish();
  return rate;
}

class Consumer {
  private readonly slots: Slots;
  private readonly record: Int32Array;
  private next = 0;
  private published = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly job: ConsumeJob,
  ) {
    this.slots = new Slots(words, job.recordWords);
    this.record = new Int32Array(strideOf(job.recordWords));
  }

  /** @returns records a second */
  takeFor(durationMs: number): number {
    const startMs = performance.now();
    let blocks = 0;
    let elapsedMs = 0;
    do {
      this.take(BLOCK);
      blocks++;
      elapsedMs = performance.now() - startMs;
    } while (elapsedMs < durationMs);
    return (blocks * BLOCK * 1000) / elapsedMs;
  }

  /** Stops the producer and takes the remaining records. */
  finish(): void {
    Atomics.store(this.words, CONSUMED, STOP);
    awaitChange(this.words, ENDED, 0);
    this.take((Atomics.load(this.words, PUBLISHED) - this.next) | 0);
  }

  private take(count: number): void {
    const { words, slots, record } = this;
    const { checksContents } = this.job;
    let { next, published } = this;
    for (let i = 0; i < count; i++) {
      if (next === published) published = awaitChange(words, PUBLISHED, published);
      slots.read(next, record);
      if (checksContents) check(record, next);
      else if (record[0] !== next) throw wrongRecord(next);
      next = (next + 1) | 0;
      if (next % BATCH === 0) Atomics.store(words, CONSUMED, next);
    }
    this.next = next;
    this.published = published;
  }
}

/** The slots of the records. Small records are copied word by word, large ones with `TypedArray.set`. */
class Slots {
  private readonly stride: number;
  private readonly isLarge: boolean;
  /** One view for each slot if records are large: creating a view for each copy costs more than the copy. */
  private readonly views: readonly Int32Array[];

  constructor(
    private readonly words: Int32Array,
    recordWords: number,
  ) {
    this.stride = strideOf(recordWords);
    this.isLarge = recordWords >= SET_WORDS;
    this.views = Array.from({ length: this.isLarge ? SLOTS : 0 }, (_, slot) => {
      const at = RECORDS + slot * this.stride;
      return words.subarray(at, at + this.stride);
    });
  }

  write(position: number, record: Int32Array): void {
    const slot = position & (SLOTS - 1);
    if (this.isLarge) this.views[slot].set(record);
    else copyLines(record, 0, this.words, RECORDS + slot * this.stride, this.stride);
  }

  read(position: number, record: Int32Array): void {
    const slot = position & (SLOTS - 1);
    if (this.isLarge) record.set(this.views[slot]);
    else copyLines(this.words, RECORDS + slot * this.stride, record, 0, this.stride);
  }
}

/** The first line is outside the loop: for a single line the loop took half of the time. */
function copyLines(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  words: number,
): void {
  copyLine(from, fromAt, to, toAt);
  for (let i = LINE_WORDS; i < words; i += LINE_WORDS) copyLine(from, fromAt + i, to, toAt + i);
}

/** Unrolled: a loop over words takes several times as long. */
function copyLine(from: Int32Array, fromAt: number, to: Int32Array, toAt: number): void {
  to[toAt] = from[fromAt];
  to[toAt + 1] = from[fromAt + 1];
  to[toAt + 2] = from[fromAt + 2];
  to[toAt + 3] = from[fromAt + 3];
  to[toAt + 4] = from[fromAt + 4];
  to[toAt + 5] = from[fromAt + 5];
  to[toAt + 6] = from[fromAt + 6];
  to[toAt + 7] = from[fromAt + 7];
  to[toAt + 8] = from[fromAt + 8];
  to[toAt + 9] = from[fromAt + 9];
  to[toAt + 10] = from[fromAt + 10];
  to[toAt + 11] = from[fromAt + 11];
  to[toAt + 12] = from[fromAt + 12];
  to[toAt + 13] = from[fromAt + 13];
  to[toAt + 14] = from[fromAt + 14];
  to[toAt + 15] = from[fromAt + 15];
}

/** The first word is the record's number; the others depend on record and place. */
function fill(record: Int32Array, number: number): void {
  for (let i = 0; i < record.length; i++) record[i] = contentAt(number, i);
}

function check(record: Int32Array, number: number): void {
  for (let i = 0; i < record.length; i++) {
    if (record[i] !== contentAt(number, i)) throw wrongRecord(number);
  }
}

function contentAt(number: number, place: number): number {
  return number ^ Math.imul(place, 0x9e3779b1);
}

function wrongRecord(number: number): Error {
  return new Error(`record ${number >>> 0} of the ring differs from the one that was sent`);
}
