/**
 * The replicated service that the simulator runs. Its state depends on the content and the order of all messages and ticks
 * that it has delivered, and may be many chunks of a snapshot long. It fails on some messages and ticks.
 * It defers the replies to some messages, and gives them while it delivers later messages and ticks.
 */
import {
  type Application,
  DEFERRED,
  type Deferred,
  type Delivery,
  type Replier,
} from 'tram-multicast/internal/protocol/edges.js';
import { messageId } from 'tram-multicast/internal/protocol/layout.js';
import type { Deferrals } from './deferrals.js';
import { type Ledger, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';

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

/** Does a group defer its reply to this message, if it does not fail? It defers one of `every`, or none if that is 0. */
export function defersOn(every: number, group: number, session: number, number: number): boolean {
  return every > 0 && (mix(mix(group, session), number) >>> 0) % every === 0;
}

const ANSWERS_EVERY = 4;

/** One step of a hash over words. */
export function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}

export function mixText(hash: number, text: string): number {
  let mixed = hash;
  for (let i = 0; i < text.length; i++) mixed = mix(mixed, text.charCodeAt(i));
  return mixed;
}

export class Service implements Application {
  /** The head, and cells of one byte each. */
  readonly state: Uint8Array;
  private readonly head: Int32Array;
  private readonly cells: Uint8Array;
  private readonly reply: Uint8Array;
  readonly tickEveryUs: number | undefined;
  private readonly failsEvery: number;
  private readonly defersEvery: number;
  private orderedUs = 0;
  /** The ids of the messages that wait, oldest first. */
  waiting: string[] = [];
  /** The one that has waited longest gets its reply with one of so many deliveries. */
  answersEvery = ANSWERS_EVERY;

  constructor(
    { serviceCells, serviceFailsEvery, serviceDefersEvery, ticks }: Plan,
    private readonly ledger: Pick<Ledger, 'deliver'>,
    private readonly deferrals: Pick<Deferrals, 'deferred' | 'answered' | 'abandoned'>,
    private readonly group: number,
    private readonly member: number,
    private readonly onDeliver: (delivery: Delivery) => void,
    private readonly onTick: (orderedUs: number) => void,
  ) {
    this.failsEvery = serviceFailsEvery;
    this.defersEvery = serviceDefersEvery;
    this.tickEveryUs = ticks?.everyUs;
    this.state = new Uint8Array(REPLY_BYTES + serviceCells);
    this.head = new Int32Array(this.state.buffer, 0, HEAD_WORDS);
    this.cells = this.state.subarray(REPLY_BYTES);
    this.reply = this.state.subarray(0, REPLY_BYTES);
  }

  get count(): number {
    return this.head[COUNT];
  }

  deliver(message: Delivery, replier: Replier): Uint8Array | Deferred {
    const { group, failsEvery, defersEvery } = this;
    const { session, number } = message;
    this.ledger.deliver(group, this.member, this.count, message);
    this.onDeliver(message);
    this.apply(message);
    this.answerSome(replier);
    if (failsOn(failsEvery, session, number)) {
      throw new ServiceFailure(failureText(group, number));
    }
    if (!defersOn(defersEvery, group, session, number)) return this.reply;
    const id = messageId(message);
    this.deferrals.deferred(group, id, this.count);
    this.waiting.push(id);
    return DEFERRED;
  }

  /** With some deliveries, answer the call that has waited longest. */
  private answerSome(replier: Replier): void {
    const [oldest] = this.waiting;
    if (oldest === undefined || !this.isAnswering) return;
    if (!this.answer(oldest, replier)) this.fail(`could not reply to ${oldest}, which waits`);
  }

  private get isAnswering(): boolean {
    return (this.head[HASH] >>> 0) % this.answersEvery === 0;
  }

  private answer(id: string, replier: Replier): boolean {
    if (!replier.reply(id, this.reply)) return false;
    this.deferrals.answered(this.group, id, this.count, this.reply);
    this.waiting.splice(this.waiting.indexOf(id), 1);
    if (replier.reply(id, this.reply)) this.fail(`replied to ${id} twice`);
    return true;
  }

  abandoned(id: string, replier: Replier): void {
    const { head, group, failsEvery } = this;
    const place = this.waiting.indexOf(id);
    if (place < 0) this.fail(`has to abandon ${id}, which does not wait`);
    this.waiting.splice(place, 1);
    this.deferrals.abandoned(group, id, this.count);
    if (replier.reply(id, this.reply)) this.fail(`replied to ${id}, which was abandoned`);
    head[HASH] = mixText(head[HASH], id);
    // Another one, unless it is about to be abandoned too.
    const [oldest] = this.waiting;
    if (oldest !== undefined && this.isAnswering) this.answer(oldest, replier);
    if (failsOn(failsEvery, group, head[HASH])) throw new ServiceFailure(failureText(group, 0));
  }

  private fail(what: string): void {
    throw new SimulationFailure('reply', `${this.group}/${this.member} ${what}`);
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

  tick(orderedUs: number, replier: Replier): void {
    const { head, group, failsEvery } = this;
    this.onTick(orderedUs);
    this.orderedUs = orderedUs;
    head[HASH] = mix(head[HASH], orderedUs);
    this.answerSome(replier);
    if (failsOn(failsEvery, group, orderedUs)) {
      throw new ServiceFailure(failureText(group, orderedUs));
    }
  }

  snapshot(): Uint8Array {
    const waiting = new TextEncoder().encode(JSON.stringify(this.waiting));
    const { length } = this.state;
    const snapshot = new Uint8Array(length + waiting.length);
    snapshot.set(this.state);
    snapshot.set(waiting, length);
    return snapshot;
  }

  restore(snapshot: Uint8Array, orderedUs: number): void {
    const { length } = this.state;
    this.state.set(snapshot.subarray(0, length));
    this.waiting = JSON.parse(new TextDecoder().decode(snapshot.subarray(length)));
    this.orderedUs = orderedUs;
  }
}
