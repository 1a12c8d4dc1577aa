/** Shards in this thread, without TRAM: behind the gateway's own code for messages, batches and transactions. */

import type { Deferred, ServiceContext } from 'tram-multicast';
import { type BackendListener, ShardBackend } from '../../src/backend/backend.js';
import type { Sent, Wire } from '../../src/backend/wire.js';
import { KIND } from '../../src/messages/message.js';
import { Shard } from '../../src/shard/shard.js';

const DEFERRED: Deferred = Symbol('deferred') as unknown as Deferred;
const TICK_MS = 20;

/** Delivers at once. Replies come in a later turn, as they do over a network. */
class LocalWire implements Wire {
  readonly #shards: Shard[];
  readonly #waiting = new Map<
    string,
    { readonly kind: number; readonly sent: Sent; left: number }
  >();
  /** Replies that are on their way for as long as mail is left. */
  #leftMail: (() => void)[] | undefined;
  #aheadMs = 0;
  readonly #timer: NodeJS.Timeout;
  #last = 0;

  constructor(count: number) {
    this.#shards = Array.from({ length: count }, () => new Shard());
    this.#timer = setInterval(() => {
      for (const [group, shard] of this.#shards.entries()) shard.tick(this.#context(group));
    }, TICK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    const id = `m${++this.#last}`;
    this.#waiting.set(id, { kind: payload[0], sent, left: groups.length });
    for (const group of groups) {
      const message = { id, payload: Uint8Array.from(payload), destinations: groups };
      const reply = this.#shards[group].deliver(message, this.#context(group));
      if (reply instanceof Uint8Array) this.#reply(id, group, reply);
    }
  }

  /** The gateway gets no mail until it fetches it. */
  leaveMail(): void {
    this.#leftMail = [];
  }

  fetchMail(): void {
    const left = this.#leftMail ?? [];
    this.#leftMail = undefined;
    for (const arrive of left) arrive();
  }

  /** The gateway loses the messages with which it listens, and the time passes after which shards take it for dead. */
  loseMail(): void {
    this.#aheadMs += 11_000;
    for (const [id, { kind, sent }] of this.#waiting) {
      if (kind !== KIND.listen) continue;
      this.#waiting.delete(id);
      for (const [group, shard] of this.#shards.entries()) {
        shard.abandoned(id);
        shard.tick(this.#context(group));
      }
      sent.failed(new Error('the message was lost'));
    }
  }

  #context(group: number): ServiceContext {
    return {
      group,
      member: 0,
      nowMs: Date.now() + this.#aheadMs,
      defer: () => DEFERRED,
      reply: (id, reply = new Uint8Array(0)) => this.#reply(id, group, reply),
    };
  }

  #reply(id: string, group: number, reply: Uint8Array): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return false;
    const copy = Buffer.from(reply);
    const arrive = (): void => {
      waiting.sent.replied(group, copy);
      if (--waiting.left > 0) return;
      this.#waiting.delete(id);
      waiting.sent.answered();
    };
    if (waiting.kind === KIND.listen && this.#leftMail !== undefined) this.#leftMail.push(arrive);
    else setImmediate(arrive);
    return true;
  }
}

export class LocalBackend extends ShardBackend {
  readonly wire: LocalWire;

  /** @param beside  another gateway with the same shards, which are its own */
  constructor(count: number, listener: BackendListener, beside?: LocalBackend) {
    const wire = beside === undefined ? new LocalWire(count) : beside.wire;
    super(count, wire, wire, listener);
    this.wire = wire;
  }

  override async close(): Promise<void> {
    await super.close();
    this.wire.close();
  }
}
