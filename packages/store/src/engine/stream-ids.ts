/**
 * The ids of entries of streams: a time in milliseconds and a number, of 64 bits each. They are kept as 16 bytes, highest first, so
 * that the order of the bytes is the order of the ids, and that nothing has to be counted with big integers.
 */

import type { Bytes } from '../resp/reply.js';

export type StreamId = Bytes;

/** One of the two parts of an id: 8 bytes. */
export type IdPart = Bytes;

const BYTES = 16;
const PART_BYTES = 8;
const PART_MAX: IdPart = '\xff'.repeat(PART_BYTES);
export const PART_MIN: IdPart = '\0'.repeat(PART_BYTES);

export const ID_MIN: StreamId = PART_MIN + PART_MIN;
export const ID_MAX: StreamId = PART_MAX + PART_MAX;

/** @param value  a safe integer, not negative */
export function idPart(value: number): IdPart {
  const high = Math.floor(value / 2 ** 32);
  return String.fromCharCode(
    0,
    (high >>> 16) & 255,
    (high >>> 8) & 255,
    high & 255,
    (value >>> 24) & 255,
    (value >>> 16) & 255,
    (value >>> 8) & 255,
    value & 255,
  );
}

export function msOf(id: StreamId): IdPart {
  return id.slice(0, PART_BYTES);
}

export function idText(id: StreamId): Bytes {
  return `${partText(id, 0)}-${partText(id, PART_BYTES)}`;
}

function partText(id: StreamId, at: number): string {
  const high = word(id, at);
  const low = word(id, at + 4);
  if (high < 2 ** 21) return String(high * 2 ** 32 + low);
  return String(BigInt(high) * 2n ** 32n + BigInt(low));
}

/** 32 bits. */
function word(id: StreamId, at: number): number {
  const upper = (id.charCodeAt(at) << 8) | id.charCodeAt(at + 1);
  return upper * 2 ** 16 + ((id.charCodeAt(at + 2) << 8) | id.charCodeAt(at + 3));
}

/** Adds one. @returns undefined if it is the greatest */
export function idAfter(id: StreamId): StreamId | undefined {
  let at = BYTES - 1;
  while (at >= 0 && id.charCodeAt(at) === 255) at--;
  if (at < 0) return undefined;
  return id.slice(0, at) + String.fromCharCode(id.charCodeAt(at) + 1) + ID_MIN.slice(at + 1);
}

/** Subtracts one. @returns undefined if it is the smallest */
export function idBefore(id: StreamId): StreamId | undefined {
  let at = BYTES - 1;
  while (at >= 0 && id.charCodeAt(at) === 0) at--;
  if (at < 0) return undefined;
  return id.slice(0, at) + String.fromCharCode(id.charCodeAt(at) - 1) + ID_MAX.slice(at + 1);
}

/** The parts of an id as a client writes it. */
export interface IdParts {
  readonly ms: IdPart;
  /** Undefined if only the time was given; `*` if it is to be chosen. */
  readonly sequence: IdPart | '*' | undefined;
}

/** As C's `strtoull` reads them: spaces, a plus sign and zeros may be in front of both parts. */
const FORM = /^[ \t-\r]*\+?0*([0-9]{1,20})(?:-(?:[ \t-\r]*\+?0*([0-9]{1,20})|(\*)))?$/;

/** Redis reads no longer ones. */
const TEXT_MAX = 127;

/** @returns undefined if it is none */
export function parseIdParts(text: Bytes): IdParts | undefined {
  const found = text.length > TEXT_MAX ? null : FORM.exec(text);
  if (found === null) return undefined;
  const ms = parsePart(found[1]);
  if (ms === undefined) return undefined;
  if (found[2] === undefined) return { ms, sequence: found[3] as '*' | undefined };
  const sequence = parsePart(found[2]);
  return sequence === undefined ? undefined : { ms, sequence };
}

/** @param digits  20 at most. @returns undefined if it has more than 64 bits */
function parsePart(digits: string): IdPart | undefined {
  if (digits.length <= 15) return idPart(Number(digits));
  const value = BigInt(digits);
  if (value >= 2n ** 64n) return undefined;
  const part = Buffer.alloc(PART_BYTES);
  part.writeBigUInt64BE(value);
  return part.toString('latin1');
}

/** @param missing  the second part if it is not given. @returns undefined if it is none */
export function parseId(text: Bytes, missing: 'min' | 'max' = 'min'): StreamId | undefined {
  const parts = parseIdParts(text);
  if (parts === undefined || parts.sequence === '*') return undefined;
  return parts.ms + (parts.sequence ?? (missing === 'max' ? PART_MAX : PART_MIN));
}
