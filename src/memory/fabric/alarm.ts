/**
 * A descriptor through which other threads of this process wake one that sleeps in `Fabric.wait`. They share
 * descriptors, so its number is all that they need. Other processes can use a FIFO in the same way.
 */
import { closeSync } from 'node:fs';
import type { NativeFunction } from '../koffi.js';
import { systemError } from '../native.js';
import { Block } from './block.js';
import { libfabric } from './libfabric.js';

const CLOSE_ON_EXEC = 0o2000000;
const NON_BLOCKING = 0o4000;
const COUNT_BYTES = 8;

export class Alarm {
  private readonly count: Block;
  private readonly writeTo: NativeFunction;
  private readonly readFrom: NativeFunction;

  /** @param descriptor  of an alarm in another thread, or of a FIFO that is opened to read and write */
  constructor(readonly descriptor: number) {
    const { koffi, system } = libfabric();
    this.count = new Block(koffi, COUNT_BYTES);
    this.writeTo = system.func('write', 'intptr_t', ['int', 'uintptr_t', 'size_t']);
    this.readFrom = system.func('read', 'intptr_t', ['int', 'uintptr_t', 'size_t']);
  }

  static create(): Alarm {
    const { koffi, system } = libfabric();
    const descriptor = system.func('eventfd', 'int', ['uint32_t', 'int'])(
      0,
      CLOSE_ON_EXEC | NON_BLOCKING,
    );
    if (descriptor < 0) throw systemError("Can't make an event descriptor", koffi.errno());
    return new Alarm(descriptor);
  }

  /** Whoever waits for the descriptor returns, now or at its next attempt. */
  ring(): void {
    this.count.setWide(0, 1);
    // It fails only if it has rung too often since it was silenced, and then it still rings.
    this.writeTo(this.descriptor, this.count.address, COUNT_BYTES);
  }

  /** Forget all that rang. */
  silence(): void {
    this.readFrom(this.descriptor, this.count.address, COUNT_BYTES);
  }

  close(): void {
    closeSync(this.descriptor);
  }
}
