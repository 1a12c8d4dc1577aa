/** Which shard has a key: as in Redis Cluster, a key has one of 16,384 slots, and each shard has a range of slots. */

import type { Bytes } from '../resp/reply.js';

export const SLOTS = 16_384;

/** CRC-16/XMODEM: polynomial 0x1021. */
const CRC = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** If the key has a part in braces that is not empty, only the first one counts: keys with the same one are in one shard. */
export function slotOf(key: Bytes): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const [from, to] = close > open + 1 ? [open + 1, close] : [0, key.length];
  let crc = 0;
  for (let i = from; i < to; i++) {
    crc = ((crc << 8) & 0xffff) ^ CRC[(crc >>> 8) ^ key.charCodeAt(i)];
  }
  return crc & (SLOTS - 1);
}

export function shardOfSlot(slot: number, shards: number): number {
  return Math.floor((slot * shards) / SLOTS);
}

/** A part in braces before any `*`: what the `*` stands for could have braces too. */
const BEGINS_WITH_TAG = /^[^{]*\{[^}]+\}/;

/** Whether all keys that a pattern can stand for have the slot of the pattern itself. */
export function hasFixedSlot(pattern: Bytes): boolean {
  return BEGINS_WITH_TAG.test(pattern.slice(0, pattern.indexOf('*')));
}
