/**
 * The positions of the keys of a large map. A lookup reads one slot, which has the hash, and then the key that it looks for: about half
 * as many cache lines as in a `Map`.
 *
 * A key is in the first slot that was free, from the one that its hash names. At least half of the slots are free. If fewer than one in
 * sixteen are taken, the table gets smaller.
 */

import type { Bytes } from '../resp/reply.js';

/** A slot has two words: the hash, and the position plus 1. 0: the slot is free. */
const SLOT_WORDS = 2;
const SLOTS_MIN = 16;

/** Replicas may have different hashes: no state depends on them. */
const [SECRET0, SECRET1] = crypto.getRandomValues(new Int32Array(2));

export class PositionTable {
  #slots = new Int32Array(SLOTS_MIN * SLOT_WORDS);
  /** The number of slots, which is a power of two, minus 1. */
  #mask = SLOTS_MIN - 1;
  #size = 0;

  /** @param keys  by position. They belong to the map, and change after this table: what it has is still at its position */
  constructor(private readonly keys: readonly Bytes[]) {}

  get(key: Bytes): number | undefined {
    const position = this.#slots[this.#find(key, hashOf(key)) + 1];
    return position === 0 ? undefined : position - 1;
  }

  /**
   * Finds where keys probably are: what the first slot of each one has. The processor reads all slots at the same time, because no read
   * depends on another one.
   * @param positions  gets them; -1: the slot is free, so the key is not there
   */
  guess(keys: readonly Bytes[], positions: Int32Array): void {
    const slots = this.#slots;
    for (let i = 0; i < keys.length; i++) positions[i] = this.#first(hashOf(keys[i])) + 1;
    for (let i = 0; i < keys.length; i++) positions[i] = slots[positions[i]] - 1;
  }

  set(key: Bytes, position: number): void {
    const hash = hashOf(key);
    const slot = this.#find(key, hash);
    const isNew = this.#slots[slot + 1] === 0;
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = position + 1;
    if (isNew && 2 * ++this.#size > this.#mask) this.#resize(2 * this.#slots.length);
  }

  delete(key: Bytes): void {
    const slots = this.#slots;
    let free = this.#find(key, hashOf(key));
    if (slots[free + 1] === 0) return;
    // Linear probing leaves no gaps: the next position that may lie in the free slot moves there, and frees its own slot.
    for (let slot = this.#after(free); slots[slot + 1] !== 0; slot = this.#after(slot)) {
      if (this.#distance(slots[slot], slot) < this.#distance(slots[slot], free)) continue;
      slots[free] = slots[slot];
      slots[free + 1] = slots[slot + 1];
      free = slot;
    }
    slots[free + 1] = 0;
    if (16 * --this.#size < this.#mask && this.#mask >= SLOTS_MIN) this.#resize(slots.length / 2);
  }

  clear(): void {
    this.#slots = new Int32Array(SLOTS_MIN * SLOT_WORDS);
    this.#mask = SLOTS_MIN - 1;
    this.#size = 0;
  }

  /** @returns where the slot of the key begins, or the free one that it would have */
  #find(key: Bytes, hash: number): number {
    const slots = this.#slots;
    for (let slot = this.#first(hash); ; slot = this.#after(slot)) {
      const position = slots[slot + 1];
      if (position === 0 || (slots[slot] === hash && this.keys[position - 1] === key)) return slot;
    }
  }

  #first(hash: number): number {
    return (hash & this.#mask) * SLOT_WORDS;
  }

  #after(slot: number): number {
    return (slot + SLOT_WORDS) & (this.#mask * SLOT_WORDS);
  }

  /** How far a slot is from the first one for the hash. */
  #distance(hash: number, slot: number): number {
    return (slot - this.#first(hash)) & (this.#mask * SLOT_WORDS);
  }

  /** @param words  of all slots */
  #resize(words: number): void {
    const old = this.#slots;
    this.#slots = new Int32Array(words);
    this.#mask = words / SLOT_WORDS - 1;
    for (let from = 0; from < old.length; from += SLOT_WORDS) {
      if (old[from + 1] === 0) continue;
      let slot = this.#first(old[from]);
      while (this.#slots[slot + 1] !== 0) slot = this.#after(slot);
      this.#slots[slot] = old[from];
      this.#slots[slot + 1] = old[from + 1];
    }
  }
}

/**
 * HalfSipHash-1-3, as the tables of Linux have it: who does not know the secret can't choose many keys with the same hash. Simpler ones,
 * such as FNV-1a with secret numbers, have keys that collide whatever is secret.
 */
function hashOf(key: Bytes): number {
  const words = key.length >>> 2;
  let v0 = SECRET0;
  let v1 = SECRET1;
  let v2 = SECRET0 ^ 0x6c796765;
  let v3 = SECRET1 ^ 0x74656462;
  // The words of the key, the rest of it with its length, and three empty words.
  for (let i = 0; i <= words + 3; i++) {
    const word = i < words ? wordAt(key, 4 * i) : i === words ? restOf(key) : 0;
    if (i === words + 1) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = rotated(v1, 5) ^ v0;
    v0 = rotated(v0, 16);
    v2 = (v2 + v3) | 0;
    v3 = rotated(v3, 8) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = rotated(v3, 7) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = rotated(v1, 13) ^ v2;
    v2 = rotated(v2, 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function wordAt(key: Bytes, at: number): number {
  return (
    key.charCodeAt(at) |
    (key.charCodeAt(at + 1) << 8) |
    (key.charCodeAt(at + 2) << 16) |
    (key.charCodeAt(at + 3) << 24)
  );
}

/** The last bytes, which are no whole word. */
function restOf(key: Bytes): number {
  let rest = key.length << 24;
  for (let i = key.length & ~3; i < key.length; i++) rest |= key.charCodeAt(i) << (8 * (i & 3));
  return rest;
}
