/**
 * The simulator's own record of every message sent, of every group's order, and of the states of its members. It checks
 * each delivery against them at once, so that a failure is reported at the event that causes it. It also keeps the
 * history that the judge checks at the end. Called by the world, its services and its workloads.
 *
 * Invariant: an event is in the history before it is compared with anything, so that the judge sees what a failed run
 * has done.
 */

import type { TraceEvent } from 'tram-multicast/internal/check/events.js';
import { History } from 'tram-multicast/internal/check/history.js';
import { InvariantError } from 'tram-multicast/internal/protocol/assert.js';
import type { Delivery, Durability } from 'tram-multicast/internal/protocol/edges.js';
import { contains, highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import type { Plan } from './plan.js';
import type { Settings } from './world.js';

/** A check of the simulator has failed. */
export class SimulationFailure extends Error {
  override readonly name = 'SimulationFailure';
  constructor(
    readonly kind:
      | 'divergence'
      | 'integrity'
      | 'state'
      | 'reply'
      | 'time'
      | 'fairness'
      | 'availability'
      | 'loss'
      | 'recovery'
      | 'liveness'
      | 'property'
      | 'assertion'
      | 'error',
    message: string,
  ) {
    super(message);
  }
}

export class Sent {
  constructor(
    readonly client: string,
    readonly entryGroup: number,
    private readonly ordinal: number,
    readonly destinationsLow: number,
    readonly destinationsHigh: number,
    readonly payload: Uint8Array,
  ) {}

  /** Built on demand: most runs need the ids of few messages. */
  get id(): string {
    return `${this.client}:${this.entryGroup}.${this.ordinal}`;
  }

  isFor(group: number): boolean {
    return contains(this.destinationsLow, this.destinationsHigh, group);
  }

  /** Is it for other groups too? */
  hasOthersThan(group: number): boolean {
    const low = this.destinationsLow & ~lowMask(group);
    return (low | (this.destinationsHigh & ~highMask(group))) !== 0;
  }
}

/** A tick that a group has decided. */
interface Tick {
  readonly id: string;
}

export class Ledger {
  readonly history = new History();
  readonly trace: TraceEvent[] | undefined;
  messages = 0;
  deliveries = 0;
  /** By session, entry group and number. */
  private readonly sent: (Sent | undefined)[][][] = [];
  /** By group: the messages that it has delivered, in order. */
  orders: Sent[][];
  /** By group: how many of them are from earlier eras. */
  private openedWith: number[];
  /** By group and index: the messages and ticks that it has decided in this era. */
  private logs: (Sent | Tick | undefined)[][];
  /** By group and stamp. */
  private ticks: Map<number, Tick>[];
  /** By group and index: the digest of the state that its members have when they come to that index in this era. */
  private states: (number | undefined)[][];
  private readonly firstIndex: number;
  private readonly replicas: number;
  /** How many deliveries there were when not all messages had arrived. */
  private incompleteAt = -1;
  private lastEventUs = 0;

  constructor(
    { parents, sizes, order }: Plan,
    keepsTrace: boolean,
    /** Without a history only the checks of each delivery are made. Measurements of throughput use that. */
    private readonly keepsHistory: boolean,
    private readonly nowUs: () => number,
  ) {
    this.firstIndex = sizes.firstIndex;
    this.replicas = sizes.replicas;
    this.orders = parents.map(() => []);
    this.openedWith = parents.map(() => 0);
    this.logs = parents.map(() => []);
    this.states = parents.map(() => []);
    this.ticks = parents.map(() => new Map());
    if (keepsTrace) this.trace = [];
    const groups: Record<string, string[]> = {};
    parents.forEach((_, group) => {
      groups[group] = Array.from({ length: sizes.replicas }, (__, member) => `${group}/${member}`);
    });
    this.record({ event: 'groups', groups, parents, order });
  }

  /**
   * An era is open. In the history, the first member of each group delivers what the group starts with, and the others
   * restore it.
   * @param orders  by group, what it starts with
   */
  openEra(era: number, durability: Durability, orders: readonly (readonly Sent[])[]): void {
    this.orders = orders.map((order) => [...order]);
    this.openedWith = orders.map((order) => order.length);
    this.logs = orders.map(() => []);
    this.states = orders.map(() => []);
    this.ticks = orders.map(() => new Map());
    this.incompleteAt = -1;
    this.record({ event: 'era', era, durability });
    orders.forEach((order, group) => {
      for (let member = 0; member < this.replicas; member++) {
        const replica = `${group}/${member}`;
        this.record({ event: 'restart', replica, era });
        if (member === 0) {
          for (const { id } of order) this.record({ event: 'deliver', id, group, replica });
        } else {
          this.record({ event: 'restore', replica, from: `${group}/0`, count: order.length });
        }
        this.record({ event: 'opened', replica });
      }
    });
  }

  record(event: TraceEvent): void {
    if (this.keepsHistory) this.history.add(event);
    this.trace?.push(event);
  }

  /** Has every destination delivered every message that any group has decided? */
  get isComplete(): boolean {
    // Only another delivery can make it complete.
    if (this.incompleteAt === this.deliveries) return false;
    const delivered = this.orders.map((order) => new Set(order));
    const isComplete = this.logs.every((log) =>
      log.every(
        (entry) =>
          !(entry instanceof Sent) ||
          delivered.every((messages, group) => !entry.isFor(group) || messages.has(entry)),
      ),
    );
    if (!isComplete) this.incompleteAt = this.deliveries;
    return isComplete;
  }

  /** Record a message that a client has accepted. */
  multicast(
    session: number,
    number: number,
    message: Pick<Sent, 'entryGroup' | 'destinationsLow' | 'destinationsHigh' | 'payload'>,
  ): Sent {
    const client = `c${session}`;
    const ordinal = number - this.firstIndex;
    const { entryGroup, destinationsLow, destinationsHigh, payload } = message;
    const sent = new Sent(client, entryGroup, ordinal, destinationsLow, destinationsHigh, payload);
    this.sent[session] ??= [];
    this.sent[session][entryGroup] ??= [];
    if (this.sent[session][entryGroup][ordinal] !== undefined) {
      throw new SimulationFailure('integrity', `the id of ${sent.id} is used twice`);
    }
    this.sent[session][entryGroup][ordinal] = sent;
    this.messages++;
    if (this.keepsHistory || this.trace) {
      const destinations: number[] = [];
      for (let group = 0; group < this.orders.length; group++) {
        if (sent.isFor(group)) destinations.push(group);
      }
      this.record({
        event: 'multicast',
        id: sent.id,
        client,
        destinations,
        entryGroup: message.entryGroup,
        timeUs: this.timeOfEvent(),
      });
    }
    return sent;
  }

  /** Record that the client of a message has received the reply of a group. */
  answered(sent: Sent, group: number): void {
    if (!this.keepsHistory && !this.trace) return;
    const timeUs = this.timeOfEvent();
    this.record({ event: 'answered', id: sent.id, group, timeUs });
  }

  /** Of two events of clients in the same microsecond, the later one has the greater time. */
  private timeOfEvent(): number {
    this.lastEventUs = Math.max(this.nowUs(), this.lastEventUs + EVENT_US);
    return this.lastEventUs;
  }

  find(session: number, entryGroup: number, number: number): Sent | undefined {
    return this.sent[session]?.[entryGroup]?.[number - this.firstIndex];
  }

  /** Record and check a delivery. @param count  how many messages the replica has delivered before */
  deliver(group: number, member: number, count: number, delivery: Delivery): void {
    const { session, entryGroup, number, payload } = delivery;
    this.deliveries++;
    if (this.keepsHistory || this.trace) {
      const sent = this.find(session, entryGroup, number);
      const id = sent?.id ?? `c${session}:${entryGroup}.${(number - this.firstIndex) | 0}`;
      // For the judge, a message with another payload is one that nobody multicast.
      const isIntact = sent === undefined || sameBytes(sent.payload, payload);
      const delivered = isIntact ? id : `${id} with another payload`;
      this.record({ event: 'deliver', id: delivered, group, replica: `${group}/${member}` });
    }
    const sent = this.requireSent(group, member, delivery);
    const order = this.orders[group];
    if (count === order.length) order.push(sent);
    else if (order[count] !== sent) {
      throw new SimulationFailure(
        'divergence',
        `${group}/${member} delivered ${sent.id} as number ${count} of its group, where another replica delivered ${order[count]?.id}`,
      );
    }
  }

  /** The message that a replica delivers: somebody must have sent it as it is. */
  requireSent(group: number, member: number, delivery: Delivery): Sent {
    const { session, entryGroup, number, payload } = delivery;
    const sent = this.find(session, entryGroup, number);
    if (sent === undefined) {
      throw new SimulationFailure(
        'integrity',
        `${group}/${member} delivered a message that nobody sent: session ${session}, entry group ${entryGroup}, number ${number}`,
      );
    }
    if (!sameBytes(sent.payload, payload)) {
      throw new SimulationFailure(
        'integrity',
        `${group}/${member} delivered ${sent.id} with another payload`,
      );
    }
    return sent;
  }

  /** A replica has this state when it comes to `index`. All replicas of its group have the same one there. */
  state(group: number, member: number, index: number, digest: number): void {
    const states = this.states[group];
    const place = index - this.firstIndex;
    const known = states[place];
    if (known !== undefined && known !== digest) {
      throw new SimulationFailure(
        'state',
        `${group}/${member} has another state at index ${place} than another replica had there`,
      );
    }
    states[place] = digest;
  }

  /**
   * A replica holds this message as decided at `index`. No replica of the group may decide another one there.
   * @returns whether it is the first of its group
   */
  decided(group: number, member: number, index: number, sent: Sent | Tick | undefined): boolean {
    const log = this.logs[group];
    const place = index - this.firstIndex;
    const known = log[place];
    if (known !== undefined && known !== sent) {
      throw new SimulationFailure(
        'divergence',
        `${group}/${member} decided ${sent?.id} at index ${place}, where another replica decided ${known.id}`,
      );
    }
    log[place] = sent;
    return known === undefined;
  }

  /** The same for a tick. */
  ticked(group: number, member: number, index: number, stampUs: number): boolean {
    const tick = this.ticks[group].get(stampUs) ?? { id: `the tick ${stampUs}` };
    this.ticks[group].set(stampUs, tick);
    return this.decided(group, member, index, tick);
  }

  /** How many messages a group has delivered before the entry `index` of this era, earlier eras included. */
  deliveredBelow(group: number, index: number): number {
    const log = this.logs[group].slice(0, Math.max(0, index - this.firstIndex));
    const messages = log.filter((entry) => entry instanceof Sent && entry.isFor(group));
    return this.openedWith[group] + messages.length;
  }

  /** How many entries the group has decided so far. */
  decidedCount(group: number): number {
    return this.logs[group].length;
  }
}

/** A ledger for a run with these settings. */
export function newLedger(
  plan: Plan,
  settings: Pick<Settings, 'keepsTrace' | 'keepsHistory'>,
  nowUs: () => number,
): Ledger {
  return new Ledger(plan, settings.keepsTrace === true, settings.keepsHistory !== false, nowUs);
}

/** Run `body`. Anything that the protocol throws becomes a `SimulationFailure`. */
export function guarded(body: () => void): void {
  try {
    body();
  } catch (error) {
    if (error instanceof SimulationFailure) throw error;
    const isInvariant = error instanceof InvariantError;
    const story = isInvariant ? error.message : String((error as Error).stack);
    throw new SimulationFailure(isInvariant ? 'assertion' : 'error', story);
  }
}

/** Between two events of clients in the same microsecond. A sum of these is exact. */
const EVENT_US = 1 / 1024;

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
