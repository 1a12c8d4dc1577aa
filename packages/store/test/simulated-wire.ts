/**
 * Shards without TRAM: two replicas each, in this thread, which must stay alike. Messages have one order, and each shard delivers
 * those that are for it in this order, at its own pace: that is what atomic multicast allows. The pace is drawn from a seed.
 */

import { inspect } from 'node:util';
import { deserialize } from 'node:v8';
import type { Deferred, Message, ServiceContext } from 'tram-multicast';
import type { Sent, Wire } from '../src/backend/wire.js';
import { KIND } from '../src/messages/message.js';
import type { Shard } from '../src/shard/shard.js';

/** Anything but bytes. */
const DEFERRED = Symbol('deferred');

interface Multicast {
  readonly id: string;
  readonly groups: readonly number[];
  readonly payload: Uint8Array;
  readonly sent: Sent;
  left: number;
}

class SimulatedShard {
  readonly queue: Multicast[] = [];
  readonly waiting = new Map<string, Multicast>();
  /** How far its clock is ahead. */
  aheadMs = 0;
  #leader: Shard;
  #follower: Shard;

  constructor(
    readonly group: number,
    private readonly world: SimulatedWire,
    private readonly newShard: () => Shard,
  ) {
    this.#leader = newShard();
    this.#follower = newShard();
  }

  deliverNext(): void {
    const multicast = this.queue.shift()!;
    const { id, payload, groups } = multicast;
    const message: Message = { id, payload: Uint8Array.from(payload), destinations: groups };
    this.waiting.set(id, multicast);
    this.#both((shard, context) => {
      const reply = shard.deliver(message, context);
      if (reply instanceof Uint8Array) context.reply(id, reply);
    });
  }

  tick(): void {
    this.#both((shard, context) => shard.tick(context));
  }

  /** One replica is replaced by another one, which begins with a snapshot. That of either has to do. */
  restart(): void {
    const snapshot = snapshotOf(this.#follower);
    this.#follower = this.#leader;
    this.#leader = this.newShard();
    this.#leader.restore(snapshot);
  }

  /** A gateway loses the message with which it listens. */
  loseListener(): void {
    for (const [id, { payload, sent }] of this.waiting) {
      if (payload[0] !== KIND.listen) continue;
      this.waiting.delete(id);
      this.#both((shard) => shard.abandoned(id));
      sent.failed(new Error('the message was lost'));
      return;
    }
  }

  /** @returns what is wrong if the replicas are not alike */
  compareReplicas(): string | undefined {
    const [a, b] = [this.#leader, this.#follower].map(snapshotOf).map(describe);
    return a === b ? undefined : `the replicas of shard ${this.group} differ`;
  }

  /** Lets both replicas do the same. They have to give the same replies. */
  #both(run: (shard: Shard, context: ServiceContext) => void): void {
    const [replies, others] = [this.#leader, this.#follower].map((shard) => {
      const given: [id: string, reply: Buffer][] = [];
      run(shard, this.#context(given));
      return given;
    });
    const texts = [replies, others].map((given) =>
      given.map(([id, reply]) => `${id} ${reply.toString('latin1')}`).join(),
    );
    if (texts[0] !== texts[1]) {
      throw new Error(`the replicas of shard ${this.group} reply ${texts[0]} and ${texts[1]}`);
    }
    for (const [id, reply] of replies) this.#reply(id, reply);
  }

  #context(given: [id: string, reply: Buffer][]): ServiceContext {
    return {
      group: this.group,
      member: 0,
      nowMs: this.world.nowMs + this.aheadMs,
      defer: () => DEFERRED as unknown as Deferred,
      reply: (id, reply = new Uint8Array(0)) => {
        given.push([id, Buffer.from(reply)]);
        return this.waiting.has(id);
      },
    };
  }

  #reply(id: string, reply: Uint8Array): void {
    const multicast = this.waiting.get(id);
    if (multicast === undefined) return;
    this.waiting.delete(id);
    this.world.replied(multicast, this.group, reply);
  }
}

/** Equal for equal states. The bytes may differ: V8 writes equal arrays in two ways. */
function describe(snapshot: Buffer): string {
  const length = snapshot.readUInt32LE(0);
  const state = deserialize(Buffer.from(snapshot.subarray(4, 4 + length)));
  const options = { depth: Infinity, maxArrayLength: null, maxStringLength: null };
  return inspect(state, options) + snapshot.toString('latin1', 4 + length);
}

function snapshotOf(shard: Shard): Buffer {
  return Buffer.concat([...shard.snapshot()].map((piece) => Buffer.from(piece)));
}

export class SimulatedWire implements Wire {
  nowMs = 1_700_000_000_000;
  readonly shards: readonly SimulatedShard[];
  readonly #events: (() => void)[] = [];
  #last = 0;

  /** @param random  0 <= x < 1 */
  constructor(
    count: number,
    private readonly random: () => number,
    newShard: () => Shard,
  ) {
    this.shards = Array.from(
      { length: count },
      (_, group) => new SimulatedShard(group, this, newShard),
    );
  }

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    const id = `m${++this.#last}`;
    const multicast = { id, groups, payload: Buffer.from(payload), sent, left: groups.length };
    for (const group of groups) this.shards[group].queue.push(multicast);
  }

  replied(multicast: Multicast, group: number, reply: Uint8Array): void {
    const bytes = Buffer.from(reply);
    this.#events.push(() => {
      multicast.sent.replied(group, bytes);
      if (--multicast.left === 0) multicast.sent.answered();
    });
  }

  /** Does one thing that can be done. @returns false if there is nothing */
  step(): boolean {
    const ready = this.shards.filter(({ queue }) => queue.length > 0);
    const choices = ready.length + (this.#events.length > 0 ? 1 : 0);
    if (choices === 0) return false;
    const choice = Math.floor(this.random() * choices);
    if (choice < ready.length) {
      ready[choice].deliverNext();
    } else {
      const at = Math.floor(this.random() * this.#events.length);
      this.#events.splice(at, 1)[0]();
    }
    return true;
  }

  /** Lets time pass. Some shards notice it later. */
  tick(ms: number): void {
    this.nowMs += ms;
    for (const shard of this.shards) if (this.random() < 0.6) shard.tick();
  }
}
