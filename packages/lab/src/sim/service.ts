/**
 * The replicated service that the simulator runs. Its state depends on the content and the order of all messages and ticks
 * that it has delivered, and may be many chunks of a snapshot long. It fails on some messages and ticks.
 */
import type { Application, Delivery } from 'tram-multicast/internal/protocol/edges.js';
import type { Ledger } from './ledger.js';

/** The first words of the state: the number of delivered messages, and a hash over them and over cells. */
const COUNT = 0;
const HASH = 1;
const HEAD_WORDS = 2;

/** Every reply is the head of the state after the delivery. */
export const REPLY_BYTES = HEAD_WORDS * 4;

/** How many cells one delivery reads and changes. */
const CELLS_PER_DELIVERY = 3;

/** The failure that the plan asks for. */
export class ServiceFailure extends Error {}

/** What the service of a group throws. It has characters of one to four bytes, so that a cut may fall into one. */
export function failureText(group: number, number: number): string {
  return `g${group} ≠ ü𝄞${number}`;
}

/** Does the service fail on this message? It fails on one of `every` messages, or on none if that is 0. */
export function failsOn(every: number, session: number, number: number): boolean {
  return every > 0 && (session + (number >>> 0)) % every === 0;
}

/** One step of a hash over words. */
export function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}

export class Service implements Application {
  /** The head, and cells of one byte each. */
  readonly state: Uint8Array;
  private readonly head: Int32Array;
  private readonly cells: Uint8Array;
  private readonly reply: Uint8Array;
  private orderedUs = 0;

  constructor(
    private readonly ledger: Ledger,
    private readonly group: number,
    private readonly member: number,
    cells: number,
    private readonly failsEvery: number,
    readonly tickEveryUs: number | undefined,
    private readonly onDeliver: (delivery: Delivery) => void,
    private readonly onTick: (orderedUs: number) => void,
  ) {
    this.state = new Uint8Array(REPLY_BYTES + cells);
    this.head = new Int32Array(this.state.buffer, 0, HEAD_WORDS);
    this.cells = this.state.subarray(REPLY_BYTES);
    this.reply = this.state.subarray(0, REPLY_BYTES);
  }

  get count(): number {
    return this.head[COUNT];
  }

  deliver(message: Delivery): Uint8Array {
    this.ledger.deliver(this.group, this.member, this.count, message);
    this.onDeliver(message);
    this.apply(message);
    if (failsOn(this.failsEvery, message.session, message.number)) {
      throw new ServiceFailure(failureText(this.group, message.number));
    }
    return this.reply;
  }

  private apply({ session, number, entryGroup, payload }: Delivery): void {
    const { head, cells } = this;
    let hash = mix(mix(mix(head[HASH], session), number), entryGroup);
    hash = mix(hash, this.orderedUs);
    for (let i = 0; i < payload.length; i++) hash = mix(hash, payload[i]);
    if (cells.length > 0) {
      for (let i = 0; i < CELLS_PER_DELIVERY; i++) {
        const cell = (hash >>> 0) % cells.length;
        hash = mix(hash, cells[cell]);
        cells[cell] = hash;
      }
    }
    head[COUNT]++;
    head[HASH] = hash;
  }

  tick(orderedUs: number): void {
    const { head, group, failsEvery } = this;
    this.onTick(orderedUs);
    this.orderedUs = orderedUs;
    head[HASH] = mix(head[HASH], orderedUs);
    if (failsOn(failsEvery, group, orderedUs)) {
      throw new ServiceFailure(failureText(group, orderedUs));
    }
  }

  snapshot(): Uint8Array {
    return this.state.slice();
  }

  restore(snapshot: Uint8Array, orderedUs: number): void {
    this.state.set(snapshot);
    this.orderedUs = orderedUs;
  }
}
