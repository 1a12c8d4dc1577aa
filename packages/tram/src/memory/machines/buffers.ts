/**
 * The buffers of a link: registered memory outside of the heap. What is in flight lies in them until it has completed.
 * Made by `link-table.ts`.
 */
import { Block } from '../fabric/block.js';
import type { Extents } from '../fabric/extents.js';
import type { Fabric } from '../fabric/fabric.js';
import { libfabric } from '../fabric/libfabric.js';
import type { Registration } from '../fabric/registration.js';
import { align } from '../words.js';

export interface RegisteredBuffer {
  readonly words: Int32Array;
  readonly registration: Registration;
}

export interface LinkBuffers {
  /** Source of all writes. Its first `flagWords` words are 1 forever: ready flags are written from there. */
  readonly out: RegisteredBuffer;
  readonly flagWords: number;
  /** Where all reads arrive. */
  readonly in: RegisteredBuffer;
  /** For a parcel, and behind it a receipt. */
  readonly parcels: RegisteredBuffer;
  readonly extents: Extents;
}

/** How many words a link needs. */
export interface BufferWords {
  readonly out: number;
  readonly in: number;
  /** How many participants the other host has at most. */
  readonly flags: number;
}

/** @param parcelWords  the size of a parcel, and of a receipt */
export function makeBuffers(fabric: Fabric, words: BufferWords, parcelWords: number): LinkBuffers {
  const flagWords = align(words.flags);
  const out = makeBuffer(fabric, flagWords + align(words.out));
  out.words.fill(1, 0, flagWords);
  return {
    out,
    flagWords,
    in: makeBuffer(fabric, align(words.in)),
    parcels: makeBuffer(fabric, align(2 * parcelWords)),
    extents: fabric.createExtents(),
  };
}

function makeBuffer(fabric: Fabric, count: number): RegisteredBuffer {
  const block = new Block(libfabric().koffi, count * 4);
  const words = new Int32Array(block.bytes.buffer, block.bytes.byteOffset, count);
  return { words, registration: fabric.register(block.address, count * 4, 'local') };
}
