/** The replicated service that the simulator runs: it counts and hashes its messages, and fails on some of them. */
import type { Application, Delivery } from 'tram-multicast/internal/protocol/edges.js';
import type { Ledger } from './ledger.js';

const STATE_WORDS = 2;

/** Every reply is the state after the delivery. */
export const REPLY_BYTES = STATE_WORDS * 4;

/** The failure that the plan asks for. */
export class ServiceFailure extends Error {}

/** Does the service fail on this message? It fails on one of `every` messages, or on none if that is 0. */
export function failsOn(every: number, session: number, number: number): boolean {
  return every > 0 && (session + (number >>> 0)) % every === 0;
}

export class Service implements Application {
  /** The number of delivered messages, and a hash over all of them in order. */
  private readonly state = new Int32Array(STATE_WORDS);
  private readonly reply = new Uint8Array(this.state.buffer);

  constructor(
    private readonly ledger: Ledger,
    private readonly group: number,
    private readonly member: number,
    private readonly failsEvery: number,
    private readonly onDeliver: (delivery: Delivery) => void,
  ) {}

  get count(): number {
    return this.state[0];
  }

  deliver(message: Delivery): Uint8Array {
    this.ledger.deliver(this.group, this.member, this.count, message);
    this.onDeliver(message);
    const hash = this.state[1] ^ Math.imul(message.session, 0x9e3779b1) ^ message.number;
    this.state[0]++;
    this.state[1] = Math.imul(hash, 0x85ebca6b) ^ (hash >>> 13);
    if (failsOn(this.failsEvery, message.session, message.number)) throw new ServiceFailure();
    return this.reply;
  }

  snapshot(): Uint8Array {
    return this.reply.slice();
  }

  restore(snapshot: Uint8Array): void {
    this.reply.set(snapshot);
  }
}
