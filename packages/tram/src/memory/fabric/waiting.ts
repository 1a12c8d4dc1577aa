/**
 * Sleeps until libfabric has something to do, or another thread of this process writes to `wakeDescriptor`. Called by
 * `fabric.ts`.
 */
import { readSync, writeSync } from 'node:fs';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';

/** Layout of the block: the queues for `fi_trywait`, a timespec, and for `ppoll` a `pollfd` of each queue and one to be woken. */
const QUEUES = 0;
const QUEUE_COUNT = 2;
const SECONDS = 16;
const NANOSECONDS = 24;
const DESCRIPTORS = 32;
const DESCRIPTOR_COUNT = QUEUE_COUNT + 1;
const BLOCK_BYTES = DESCRIPTORS + DESCRIPTOR_COUNT * SIZES.pollfd;
/** Where, in a `pollfd`, the events are that have happened: the upper half of the word. */
const HAPPENED_SHIFT = 16;
/** What an `eventfd` is written, and read as. */
const ONE: Uint8Array = new Uint8Array(new BigUint64Array([1n]).buffer);

/** An endless sleep is one of a month: a longer one might overflow the kernel's clock. */
const SLEEP_US_MAX = 30 * 86_400e6;

export class Waiting {
  private readonly block: Block;
  private readonly tryWait: NativeFunction;
  private readonly poll: NativeFunction;
  private readonly closeDescriptor: NativeFunction;
  /** A write to it (`wake`) ends a sleep, or the next one. */
  readonly wakeDescriptor: number;

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
    // Not by Node, which warns if a thread closes a descriptor that it has not opened by Node.
    this.closeDescriptor = library.system.func('close', 'int', ['int']);
    const { EFD_CLOEXEC, EFD_NONBLOCK } = CONSTANTS;
    const eventfd = library.system.func('eventfd', 'int', ['uint32_t', 'int']);
    this.wakeDescriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    this.watch(QUEUE_COUNT, this.wakeDescriptor);
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
    this.poll(block.address + DESCRIPTORS, DESCRIPTOR_COUNT, block.address + SECONDS, 0);
    const woken = DESCRIPTORS + QUEUE_COUNT * SIZES.pollfd + FIELDS.pollfd.events;
    if (block.getWord(woken) >> HAPPENED_SHIFT !== 0) readSync(this.wakeDescriptor, ONE.slice());
  }

  close(): void {
    this.closeDescriptor(this.wakeDescriptor);
  }

  private watch(index: number, descriptor: number): void {
    const at = DESCRIPTORS + index * SIZES.pollfd;
    this.block.setWord(at + FIELDS.pollfd.fd, descriptor);
    this.block.setWord(at + FIELDS.pollfd.events, CONSTANTS.POLLIN);
  }
}

/** Ends the sleep of the thread that waits. Any thread of its process may call it. */
export function wake(wakeDescriptor: number): void {
  writeSync(wakeDescriptor, ONE);
}
