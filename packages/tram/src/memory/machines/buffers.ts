/** The buffers of a link: memory outside of the heap in which all lies that is under way. */
import { Block } from '../fabric/block.js';
import type { Fabric } from '../fabric/fabric.js';
import { libfabric } from '../fabric/libfabric.js';
import type { Buffer, LinkBuffers } from './link.js';

export interface BufferWords {
  readonly out: number;
  readonly in: number;
  /** How many processes the other host has at most. */
  readonly flags: number;
}

export function makeBuffers(fabric: Fabric, words: BufferWords): LinkBuffers {
  const out = makeBuffer(fabric, words.flags + words.out);
  out.words.fill(1, 0, words.flags);
  return {
    out,
    ones: words.flags,
    in: makeBuffer(fabric, words.in),
    extents: fabric.createExtents(),
  };
}

function makeBuffer(fabric: Fabric, count: number): Buffer {
  const block = new Block(libfabric().koffi, count * 4);
  const words = new Int32Array(block.bytes.buffer, block.bytes.byteOffset, count);
  return { words, registration: fabric.register(block.address, count * 4, 'local') };
}
