/** Sleeps until libfabric has something to do. Called by `fabric.ts`. */
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';

/** Layout of the block: the queues for `fi_trywait`, a timespec, and a `pollfd` of each queue for `ppoll`. */
const QUEUES = 0;
const QUEUE_COUNT = 2;
const SECONDS = 16;
const NANOSECONDS = 24;
const DESCRIPTORS = 32;
const BLOCK_BYTES = DESCRIPTORS + QUEUE_COUNT * SIZES.pollfd;

/** An endless sleep is one of a month: a longer one might overflow the kernel's clock. */
const SLEEP_US_MAX = 30 * 86_400e6;

export class Waiting {
  private readonly block: Block;
  private readonly tryWait: NativeFunction;
  private readonly poll: NativeFunction;

  constructor(
    library: Libfabric,
    private readonly fabric: number,
    completionQueue: number,
    eventQueue: number,
  ) {
    this.block = new Block(library.koffi, BLOCK_BYTES);
    this.tryWait = library.operation('tryWait', fabric);
    this.poll = library.system.func('ppoll', 'int', [
      'uintptr_t',
      'uint64_t',
      'uintptr_t',
      'uintptr_t',
    ]);
    [completionQueue, eventQueue].forEach((queue, i) => {
      this.block.setWide(QUEUES + i * 8, queue);
      const { result } = library;
      library.check(
        library.operation('control', queue)(queue, CONSTANTS.FI_GETWAIT, result.address),
        "Can't wait for libfabric",
      );
      this.watch(i, result.getWord(0));
    });
  }

  /** May return early. */
  wait(timeoutUs: number): void {
    if (!(timeoutUs > 0)) return;
    const { block } = this;
    // Only if this returns 0 do the descriptors become readable with everything that happens from now on.
    if (this.tryWait(this.fabric, block.address + QUEUES, QUEUE_COUNT) !== 0) return;
    const us = Math.min(timeoutUs, SLEEP_US_MAX);
    block.setWide(SECONDS, Math.floor(us / 1e6));
    block.setWide(NANOSECONDS, Math.floor((us % 1e6) * 1000));
    this.poll(block.address + DESCRIPTORS, QUEUE_COUNT, block.address + SECONDS, 0);
  }

  private watch(index: number, descriptor: number): void {
    const at = DESCRIPTORS + index * SIZES.pollfd;
    this.block.setWord(at + FIELDS.pollfd.fd, descriptor);
    this.block.setWord(at + FIELDS.pollfd.events, CONSTANTS.POLLIN);
  }
}
