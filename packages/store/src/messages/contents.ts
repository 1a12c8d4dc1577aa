/** The contents of sections and replies, by kind of message. */

import { ByteReader, ByteWriter } from '../engine/bytes.js';
import type { Bytes } from '../resp/reply.js';
import { REPLY_BYTES_MAX, type StoredReply } from './message.js';

/** A command for one shard. */
export interface Call {
  /** Of the command. */
  readonly name: string;
  readonly args: readonly Bytes[];
  /** The protocol of the reply. */
  readonly resp: 2 | 3;
  /** If the call may block: the number by which the gateway knows it. Otherwise 0. */
  readonly blockedAs: number;
  /** A part of what several shards do: it is not refused, because the others do theirs. */
  readonly isPart?: boolean;
}

const RESP3 = 1;
const MAY_BLOCK = 2;
const IS_PART = 4;

export function writeCall(writer: ByteWriter, call: Call): void {
  const { name, args, resp, blockedAs, isPart } = call;
  const flags =
    (resp === 3 ? RESP3 : 0) | (blockedAs !== 0 ? MAY_BLOCK : 0) | (isPart ? IS_PART : 0);
  writer.bytes(name).uint8(flags);
  if (blockedAs !== 0) writer.float64(blockedAs);
  writer.uint32(args.length);
  for (const arg of args) writer.bytes(arg);
}

export function readCalls(content: Uint8Array): Call[] {
  return readCallsOf(new ByteReader(content));
}

function readCallsOf(reader: ByteReader): Call[] {
  const calls: Call[] = [];
  while (!reader.isAtEnd) calls.push(readCall(reader, calls.at(-1)?.name));
  return calls;
}

/** @param expectedName  probably its name: that of the call before */
function readCall(reader: ByteReader, expectedName?: string): Call {
  const name = reader.bytes(expectedName);
  const flags = reader.uint8();
  const blockedAs = flags & MAY_BLOCK ? reader.float64() : 0;
  const args = new Array<Bytes>(reader.uint32());
  for (let i = 0; i < args.length; i++) args[i] = reader.bytes();
  const isPart = (flags & IS_PART) !== 0;
  return { name, args, resp: flags & RESP3 ? 3 : 2, blockedAs, isPart };
}

/** Instead of its length: the reply is stored at the shard. Its number and its length follow. */
const STORED = 0xffff_ffff;
/** From this length on, a reply is stored on its own if those of its message are too long together. */
const LONG_BYTES = REPLY_BYTES_MAX / 2;

/**
 * Replies that are too long together: the long ones are stored at the shard, and replaced by references. So a request with a short
 * reply does not wait for the long replies of other requests.
 * @param store  @returns the number of what it has stored
 */
export function storeLongReplies(
  content: Uint8Array,
  store: (reply: Uint8Array) => number,
): Uint8Array {
  const reader = new ByteReader(content);
  const writer = new ByteWriter();
  while (!reader.isAtEnd) {
    const length = reader.uint32();
    const reply = reader.raw(length);
    if (length < LONG_BYTES) writer.uint32(length).raw(reply);
    else writer.uint32(STORED).float64(store(reply)).uint32(length);
  }
  return writer.written();
}

/** The replies to calls, each with its length. That of a call that is blocked is empty. */
export class ReplyQueue {
  readonly #reader: ByteReader;

  constructor(content: Uint8Array) {
    this.#reader = new ByteReader(content);
  }

  /** A view, valid as long as the content. */
  next(): Buffer | StoredReply {
    const reader = this.#reader;
    const length = reader.uint32();
    if (length !== STORED) return reader.raw(length);
    return { number: reader.float64(), length: reader.uint32() };
  }
}

export function readReplies(content: Uint8Array): Buffer[] {
  const reader = new ByteReader(content);
  const replies: Buffer[] = [];
  while (!reader.isAtEnd) replies.push(reader.raw(reader.uint32()));
  return replies;
}

/** What a transaction wants of a key. */
export const NEED = {
  /** Only its version: the key was watched, or its value is replaced. */
  version: 0,
  value: 1,
} as const;

export interface Claimed {
  readonly key: Bytes;
  readonly need: number;
}

/** `prepare`: what the transaction claims. */
export interface Preparation {
  /** All groups that are asked to prepare. */
  readonly groups: readonly number[];
  /** The whole shard, not only these keys. */
  readonly isWhole: boolean;
  readonly keys: readonly Claimed[];
}

export function writePreparation(writer: ByteWriter, preparation: Preparation): void {
  const { groups, isWhole, keys } = preparation;
  writer.uint32(groups.length);
  for (const group of groups) writer.uint8(group);
  writer.uint8(isWhole ? 1 : 0).uint32(keys.length);
  for (const { key, need } of keys) writer.bytes(key).uint8(need);
}

export function readPreparation(content: Uint8Array): Preparation {
  const reader = new ByteReader(content);
  const groups = Array.from({ length: reader.uint32() }, () => reader.uint8());
  const isWhole = reader.uint8() === 1;
  const keys = Array.from({ length: reader.uint32() }, () => ({
    key: reader.bytes(),
    need: reader.uint8(),
  }));
  return { groups, isWhole, keys };
}

/** The reply to `prepare`: undefined if the transaction was aborted meanwhile, or what it claims was dropped. */
export interface Prepared {
  /** The time of the shard. */
  readonly nowMs: number;
  /** Whether its memory is short. */
  readonly isShort: boolean;
  /** What staleness is about: see `engine/usage`. */
  readonly countsFrequency: boolean;
  /** In the order of the claimed keys. */
  readonly held: readonly Held[];
}

export interface Held {
  readonly version: number;
  /** Undefined if the key is not there, or its value was not asked for. */
  readonly entry: MovedEntry | undefined;
}

export interface MovedEntry {
  /** As `engine/codec` has it. */
  readonly bytes: Uint8Array;
  readonly staleness: number;
}

function writeEntry(writer: ByteWriter, entry: MovedEntry | undefined): void {
  writer.uint8(entry === undefined ? 0 : 1);
  if (entry === undefined) return;
  writer.uint32(entry.staleness).uint32(entry.bytes.length).raw(entry.bytes);
}

function readEntry(reader: ByteReader): MovedEntry | undefined {
  if (reader.uint8() === 0) return undefined;
  return { staleness: reader.uint32(), bytes: reader.raw(reader.uint32()) };
}

const PREPARED = 1;
const IS_SHORT = 2;
const COUNTS_FREQUENCY = 4;

export function writePrepared(writer: ByteWriter, prepared: Prepared | undefined): void {
  if (prepared === undefined) {
    writer.uint8(0);
    return;
  }
  const { nowMs, isShort, countsFrequency, held } = prepared;
  const flags = (isShort ? IS_SHORT : 0) | (countsFrequency ? COUNTS_FREQUENCY : 0);
  writer.uint8(PREPARED | flags).float64(nowMs);
  for (const { version, entry } of held) writeEntry(writer.float64(version), entry);
}

export function readPrepared(content: Uint8Array): Prepared | undefined {
  const reader = new ByteReader(content);
  const flags = reader.isAtEnd ? 0 : reader.uint8();
  if (flags === 0) return undefined;
  const nowMs = reader.float64();
  const held: Held[] = [];
  while (!reader.isAtEnd) held.push({ version: reader.float64(), entry: readEntry(reader) });
  const isShort = (flags & IS_SHORT) !== 0;
  return { nowMs, isShort, countsFrequency: (flags & COUNTS_FREQUENCY) !== 0, held };
}

/** `decide`: first the writes, then the calls. */
export interface Decision {
  readonly writes: readonly Write[];
  readonly calls: readonly Call[];
}

export interface Write {
  readonly key: Bytes;
  /** Undefined: the key is deleted. */
  readonly entry: MovedEntry | undefined;
}

export function writeDecision(writer: ByteWriter, { writes, calls }: Decision): void {
  writer.uint32(writes.length);
  for (const { key, entry } of writes) writeEntry(writer.bytes(key), entry);
  for (const call of calls) writeCall(writer, call);
}

export function readDecision(content: Uint8Array): Decision {
  const reader = new ByteReader(content);
  const writes = Array.from({ length: reader.uint32() }, () => ({
    key: reader.bytes(),
    entry: readEntry(reader),
  }));
  return { writes, calls: readCallsOf(reader) };
}

/** The reply to `decide`: whether the transaction has taken effect, and then the replies to its calls. Empty: it has not. */
export function writeDecided(writer: ByteWriter, replies: readonly Uint8Array[] | undefined): void {
  writer.uint8(replies === undefined ? 0 : 1);
  for (const reply of replies ?? []) writer.uint32(reply.length).raw(reply);
}

export function readDecided(content: Uint8Array): Buffer[] | undefined {
  return content[0] === 1 ? readReplies(content.subarray(1)) : undefined;
}
