/**
 * Zeroed memory outside of the JavaScript heap, for structures that C code reads and writes. It is freed by a finalizer
 * once its views are unreachable. Blocks are allocated at start and per connection, never per operation.
 *
 * Offsets are in bytes. 64-bit numbers are read and written as two words, since a `BigInt` would be allocated.
 */
import type { Koffi } from '../koffi.js';

const WORD_RANGE = 2 ** 32;
let freeUnreachable: FinalizationRegistry<() => void> | undefined;

export class Block {
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;

  constructor(koffi: Koffi, bytes: number) {
    const memory = koffi.alloc('uint64_t', Math.ceil(bytes / 8));
    const buffer = koffi.view(memory, Math.ceil(bytes / 8) * 8);
    this.address = Number(memory);
    this.bytes = new Uint8Array(buffer).fill(0);
    this.words = new Uint32Array(buffer);
    freeUnreachable ??= new FinalizationRegistry((free) => free());
    freeUnreachable.register(buffer, () => koffi.free(memory));
  }

  /** @param value  below 2⁵³ */
  setWide(offset: number, value: number): void {
    this.words[offset >> 2] = value;
    this.words[(offset >> 2) + 1] = value / WORD_RANGE;
  }

  /** The value must be below 2⁵³. */
  getWide(offset: number): number {
    return this.words[offset >> 2] + this.words[(offset >> 2) + 1] * WORD_RANGE;
  }

  setWord(offset: number, value: number): void {
    this.words[offset >> 2] = value;
  }

  getWord(offset: number): number {
    return this.words[offset >> 2];
  }
}
