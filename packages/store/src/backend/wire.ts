/** Multicasts bytes to groups, over a client of TRAM. */

import type { Client, Destinations, OfferListener } from 'tram-multicast';
import type { Pressure } from '../gateway/traffic.js';

export interface Sent {
  /** The reply of one group, valid only during the call. */
  replied(group: number, reply: Uint8Array): void;
  /** All groups have replied. */
  answered(): void;
  /** It is not known which groups have delivered it. */
  failed(error: Error): void;
}

export interface Wire {
  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void;
}

/** How long unanswered messages are waited for at the end. */
const CLOSE_MS = 2000;

interface Waiting {
  readonly destinations: Destinations;
  readonly payload: Uint8Array;
  readonly sent: Sent;
}

export class TramWire implements Wire {
  readonly #client: Client;
  readonly #unanswered = new Map<number, Sent>();
  /** There was no room for these yet. While there are any, a message is unanswered, or a retry is scheduled. */
  readonly #waiting: Waiting[] = [];
  #isRetryScheduled = false;
  #heldBack = 0;

  private constructor(client: Client) {
    this.#client = client;
  }

  /** @param connect  `Client.connect` or `cluster.connect` */
  static async connect(
    connect: (options: { listener: OfferListener }) => Promise<Client>,
  ): Promise<TramWire> {
    let wire: TramWire | undefined;
    const client = await connect({
      listener: {
        replied: (ticket, group, reply, outcome) => {
          wire!.#replied(ticket, group, reply, outcome);
        },
        answered: (ticket) => wire!.#answered(ticket),
        closed: () => wire!.#failAll(),
      },
    });
    wire = new TramWire(client);
    return wire;
  }

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    const destinations = this.#client.destinations(groups);
    if (this.#waiting.length > 0 || !this.#offer(destinations, payload, sent)) {
      this.#heldBack++;
      this.#waiting.push({ destinations, payload: Buffer.from(payload), sent });
      if (this.#unanswered.size === 0) this.#retrySoon();
    }
  }

  get pressure(): Pressure {
    return {
      unanswered: this.#unanswered.size,
      waiting: this.#waiting.length,
      heldBack: this.#heldBack,
    };
  }

  /** Does not wait for long: shards without a leader never answer. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#client.destroy(), CLOSE_MS);
    await this.#client.close();
    clearTimeout(timer);
  }

  /** The client has ended. */
  #failAll(): void {
    const error = new Error('the gateway has lost the cluster');
    const unsettled = [...this.#unanswered.values(), ...this.#waiting.map(({ sent }) => sent)];
    this.#unanswered.clear();
    this.#waiting.length = 0;
    for (const sent of unsettled) sent.failed(error);
  }

  /** @returns false if there is no room */
  #offer(destinations: Destinations, payload: Uint8Array, sent: Sent): boolean {
    const offer = this.#client.offer(destinations, payload);
    if (offer === 'backPressured') return false;
    if (offer === 'closed') sent.failed(new Error('the cluster is closed'));
    else this.#unanswered.set(this.#client.ticket, sent);
    return true;
  }

  #replied(ticket: number, group: number, reply: Uint8Array, outcome: string): void {
    const sent = this.#unanswered.get(ticket);
    if (outcome === 'ok') {
      sent?.replied(group, reply);
      return;
    }
    this.#unanswered.delete(ticket);
    sent?.failed(new Error(`group ${group}: ${outcome} ${Buffer.from(reply).toString()}`));
  }

  #answered(ticket: number): void {
    const sent = this.#unanswered.get(ticket);
    this.#unanswered.delete(ticket);
    sent?.answered();
    if (this.#waiting.length > 0) this.#retrySoon();
  }

  /** Not at once: the client frees the room of a message only after it has told that it is answered. */
  #retrySoon(): void {
    if (this.#isRetryScheduled) return;
    this.#isRetryScheduled = true;
    setImmediate(() => this.#retry());
  }

  #retry(): void {
    this.#isRetryScheduled = false;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#offer(next.destinations, next.payload, next.sent)) break;
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0 && this.#unanswered.size === 0) this.#retrySoon();
  }
}
