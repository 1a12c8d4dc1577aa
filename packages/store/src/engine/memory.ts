/**
 * How much memory entries take, by estimate: in constant time, so that the keyspace can keep the sum with every change. The figures were
 * measured with V8 of Node 20: the sum is within a fifth of the heap, for keys of one type (`test/engine/memory.test.ts`).
 *
 * It depends on nothing but keys and values, so that replicas agree on it, also after one has restored a snapshot: `maxmemory`
 * refuses commands by it.
 */

import type { Bytes } from '../resp/reply.js';
import type { Entry } from './entry.js';
import type { Value } from './values.js';

/** In bytes. */
const STRING = 20;
const BUFFER = 190;
/** An empty list. */
const COLLECTION = 250;
/** An empty hash or set. */
const MAP = 500;
/** An empty sorted set. */
const SORTED_MAP = 1_000;
/** A place in an IndexedMap, without the bytes of its key. */
const PLACE = 56 + STRING;
/** A score, and the member's place in the order. */
const SCORE = 30;
/** An empty stream. */
const STREAM = 850;
/** An entry of a stream, without its fields and values. */
const ITEM = 105;
/** A field or value of a stream, without its bytes. */
const TEXT = 8 + STRING;
/** An entry that a consumer has not acknowledged. */
const PENDING = 120;
/** An element of a list, without its bytes. */
const ELEMENT = 12 + STRING;
const ENTRY = 90;
/** The place of a key in the queue of those that expire. */
const EXPIRY = 20;

export function memoryOf(key: Bytes, { value, expires }: Entry): number {
  const expiry = expires ? EXPIRY : 0;
  return PLACE + ENTRY + expiry + key.length + memoryOfValue(value);
}

function memoryOfValue(value: Value): number {
  if (typeof value === 'string') return STRING + value.length;
  if (Buffer.isBuffer(value)) return BUFFER + value.length;
  switch (value.type) {
    case 'hash':
      return MAP + value.size * (PLACE + STRING) + value.bytes;
    case 'set':
      return MAP + value.size * PLACE + value.keyBytes;
    case 'zset': {
      const { scores } = value;
      return SORTED_MAP + scores.size * (PLACE + SCORE) + scores.keyBytes;
    }
    case 'stream':
      return (
        STREAM +
        value.entries.size * ITEM +
        value.texts * TEXT +
        value.pending * PENDING +
        value.bytes
      );
    case 'list':
      return COLLECTION + value.length * ELEMENT + value.bytes;
  }
}
