/**
 * The lock service of the examples, without a cluster: what it promises holds in any sequence of events. Examples import the
 * built library, and so does this test. documents.test.ts runs all examples.
 */
import fc from 'fast-check';
import type { ServiceContext } from 'tram-multicast';
import { DEFERRED, type Deferred } from 'tram-multicast/internal/protocol/edges.js';
import { expect, test } from 'vitest';
import locks, { type Command, type Reply } from '../../../examples/locks/service.js';

const LOCK = 'printer';

/** The replica that runs the service, and a model of the lock that knows what must come. */
class Replica implements ServiceContext {
  readonly group = 0;
  readonly member = 0;
  nowMs = 1000;
  private service = locks.serviceOf(this);
  private messages = 0;
  /** The clients that wait, in the order in which they have asked. */
  private waiting: { readonly id: string; readonly leaseMs: number }[] = [];
  private holder: { readonly fence: number; untilMs: number } | undefined;
  /** All fencing numbers, in the order in which they were given. */
  private readonly fences: number[] = [0];

  defer(): Deferred {
    return DEFERRED;
  }

  reply(id: string, reply?: Uint8Array): boolean {
    const next = this.waiting.shift();
    expect(id).toBe(next?.id);
    this.given(decoded(reply), next!.leaseMs);
    return true;
  }

  private given({ fence }: Reply, leaseMs: number): void {
    expect(this.holder).toBeUndefined();
    expect(fence).toBeGreaterThan(this.fences.at(-1)!);
    this.fences.push(fence);
    this.holder = { fence, untilMs: this.nowMs + leaseMs };
  }

  private deliver(command: Command): unknown {
    const payload = new TextEncoder().encode(JSON.stringify(command));
    const id = `message ${++this.messages}`;
    return this.service.deliver({ payload, destinations: [0], id }, this);
  }

  acquire(leaseMs: number): void {
    const reply = this.deliver({ type: 'acquire', lock: LOCK, leaseMs });
    if (reply === DEFERRED) this.waiting.push({ id: `message ${this.messages}`, leaseMs });
    else this.given(decoded(reply), leaseMs);
  }

  /** @param choice  which of all holders that ever were */
  renew(choice: number, leaseMs: number): void {
    const fence = this.fences[choice % this.fences.length];
    const isHeld = this.holder?.fence === fence;
    const { accepted } = decoded(this.deliver({ type: 'renew', lock: LOCK, fence, leaseMs }));
    expect(accepted).toBe(isHeld);
    if (isHeld) this.holder!.untilMs = this.nowMs + leaseMs;
  }

  /** @param choice  which of all holders that ever were */
  release(choice: number): void {
    const fence = this.fences[choice % this.fences.length];
    const isHeld = this.holder?.fence === fence;
    if (isHeld) this.holder = undefined;
    const { accepted } = decoded(this.deliver({ type: 'release', lock: LOCK, fence }));
    expect(accepted).toBe(isHeld);
  }

  tick(elapsedMs: number): void {
    this.nowMs += elapsedMs;
    if (this.holder !== undefined && this.holder.untilMs <= this.nowMs) this.holder = undefined;
    this.service.tick!(this);
  }

  /** @param choice  which of those that wait */
  abandon(choice: number): void {
    if (this.waiting.length === 0) return;
    const [{ id }] = this.waiting.splice(choice % this.waiting.length, 1);
    this.service.abandoned!(id, this);
  }

  /** Another replica continues. */
  replace(): void {
    const snapshot = this.service.snapshot(this) as Uint8Array;
    this.service = locks.serviceOf(this);
    this.service.restore(snapshot, this);
  }

  /** A lock with waiting calls has a holder, and the calls that wait are those that the service keeps. */
  check(): void {
    if (this.waiting.length > 0) expect(this.holder).toBeDefined();
    const { fence, waiting } = decoded(this.deliver({ type: 'look', lock: LOCK }));
    expect(fence).toBe(this.holder?.fence ?? 0);
    expect(waiting).toBe(this.waiting.length);
  }
}

function decoded(reply: unknown): Reply {
  return JSON.parse(new TextDecoder().decode(reply as Uint8Array));
}

type Event = readonly [keyof typeof EVENTS, choice: number, ms: number];

const EVENTS = {
  acquire: (replica: Replica, _: number, ms: number) => replica.acquire(ms),
  renew: (replica: Replica, choice: number, ms: number) => replica.renew(choice, ms),
  release: (replica: Replica, choice: number) => replica.release(choice),
  tick: (replica: Replica, _: number, ms: number) => replica.tick(ms),
  abandon: (replica: Replica, choice: number) => replica.abandon(choice),
  replace: (replica: Replica) => replica.replace(),
};

const event: fc.Arbitrary<Event> = fc.tuple(
  fc.constantFrom(...(Object.keys(EVENTS) as (keyof typeof EVENTS)[])),
  fc.nat(10),
  fc.integer({ min: 1, max: 20 }),
);

test('locks: one holder at a time, in the order of asking, with ascending numbers, and nobody waits for nothing', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const replica = new Replica();
      for (const [name, choice, ms] of events) {
        EVENTS[name](replica, choice, ms);
        replica.check();
      }
    }),
    { numRuns: 300 },
  );
});

test('locks: the store refuses lower numbers than it has seen', () => {
  const store = locks.serviceOf(new Replica());
  const write = (fence: number): boolean => {
    const command: Command = { type: 'write', fence, text: 'text' };
    const payload = new TextEncoder().encode(JSON.stringify(command));
    const message = { payload, destinations: [1], id: 'message' };
    return decoded(store.deliver(message, new Replica())).accepted;
  };
  expect([1, 3, 2, 3, 4].map(write)).toEqual([true, true, false, true, true]);
});
