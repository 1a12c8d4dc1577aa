/** The contents of sections and replies, by kind of message. */

import { ByteReader, type ByteWriter } from '../engine/bytes.js';
import type { Bytes } from '../resp/reply.js';

/** A command for one shard. */
export interface Call {
  /** Of the command. */
  readonly name: string;
  readonly args: readonly Bytes[];
  /** The protocol of the reply. */
  readonly resp: 2 | 3;
  /** If the call may block: the number by which the gateway knows it. Otherwise 0. */
  readonly blockedAs: number;
}

const RESP3 = 1;
const MAY_BLOCK = 2;

export function writeCall(writer: ByteWriter, call: Call): void {
  const { name, args, resp, blockedAs } = call;
  writer.bytes(name).uint8((resp === 3 ? RESP3 : 0) | (blockedAs !== 0 ? MAY_BLOCK : 0));
  if (blockedAs !== 0) writer.float64(blockedAs);
  writer.uint32(args.length);
  for (const arg of args) writer.bytes(arg);
}

/** @param expectedName  probably its name: that of the call before */
export function readCall(reader: ByteReader, expectedName?: string): Call {
  const name = reader.bytes(expectedName);
  const flags = reader.uint8();
  const blockedAs = flags & MAY_BLOCK ? reader.float64() : 0;
  const args = new Array<Bytes>(reader.uint32());
  for (let i = 0; i < args.length; i++) args[i] = reader.bytes();
  return { name, args, resp: flags & RESP3 ? 3 : 2, blockedAs };
}

/** The replies to calls, each with its length. That of a call that is blocked is empty. */
export class ReplyQueue {
  readonly #reader: ByteReader;

  constructor(content: Uint8Array) {
    this.#reader = new ByteReader(content);
  }

  /** A view, valid as long as the content. */
  next(): Buffer {
    return this.#reader.raw(this.#reader.uint32());
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
  /** In the order of the claimed keys. */
  readonly held: readonly Held[];
}

export interface Held {
  readonly version: number;
  /** As `engine/codec` has it; undefined if the key is not there, or its value was not asked for. */
  readonly entry: Uint8Array | undefined;
}

export function writePrepared(writer: ByteWriter, prepared: Prepared | undefined): void {
  writer.uint8(prepared === undefined ? 0 : 1);
  if (prepared === undefined) return;
  writer.float64(prepared.nowMs);
  for (const { version, entry } of prepared.held) {
    writer.float64(version).uint8(entry === undefined ? 0 : 1);
    if (entry !== undefined) writer.uint32(entry.length).raw(entry);
  }
}

export function readPrepared(content: Uint8Array): Prepared | undefined {
  const reader = new ByteReader(content);
  if (reader.isAtEnd || reader.uint8() === 0) return undefined;
  const nowMs = reader.float64();
  const held: Held[] = [];
  while (!reader.isAtEnd) {
    const version = reader.float64();
    const entry = reader.uint8() === 1 ? reader.raw(reader.uint32()) : undefined;
    held.push({ version, entry });
  }
  return { nowMs, held };
}

/** `decide`: first the writes, then the calls. */
export interface Decision {
  readonly writes: readonly Write[];
  readonly calls: readonly Call[];
}

export interface Write {
  readonly key: Bytes;
  /** Undefined: the key is deleted. */
  readonly entry: Uint8Array | undefined;
}

export function writeDecision(writer: ByteWriter, { writes, calls }: Decision): void {
  writer.uint32(writes.length);
  for (const { key, entry } of writes) {
    writer.bytes(key).uint8(entry === undefined ? 0 : 1);
    if (entry !== undefined) writer.uint32(entry.length).raw(entry);
  }
  for (const call of calls) writeCall(writer, call);
}

export function readDecision(content: Uint8Array): Decision {
  const reader = new ByteReader(content);
  const writes = Array.from({ length: reader.uint32() }, () => ({
    key: reader.bytes(),
    entry: reader.uint8() === 1 ? reader.raw(reader.uint32()) : undefined,
  }));
  const calls: Call[] = [];
  while (!reader.isAtEnd) calls.push(readCall(reader));
  return { writes, calls };
}

/** The reply to `decide`: whether the transaction has taken effect, and then the replies to its calls. Empty: it has not. */
export function writeDecided(writer: ByteWriter, replies: readonly Uint8Array[] | undefined): void {
  writer.uint8(replies === undefined ? 0 : 1);
  for (const reply of replies ?? []) writer.uint32(reply.length).raw(reply);
}

export function readDecided(content: Uint8Array): Buffer[] | undefined {
  return content[0] === 1 ? readReplies(content.subarray(1)) : undefined;
}
