/**
 * What must hold in every state. Every message that a replica decides or delivers is compared at once with what was sent
 * and with what other replicas of its group have decided and delivered:
 *
 * - *integrity*: a delivered message was sent, with this payload, to this group, and is delivered once; a message for
 *   this group that it has decided is delivered;
 * - *agreement*: no two replicas of a group decide or deliver different messages at one place;
 * - *order*: two groups that deliver the same two messages deliver them in the same order; and a group that delivers a
 *   message from its parent has delivered all that the parent decided for it before;
 * - *state*: after so many deliveries, the service has the state that these deliveries make;
 * - *reply*: a reply tells the place at which the group delivered the message.
 *
 * The protocol's own assertions are checked as well: they throw.
 */
import type { Application, Delivery } from 'tram-multicast/internal/protocol/edges.js';
import { contains } from 'tram-multicast/internal/protocol/overlay.js';
import { type Fingerprint, placeIn, wordOf } from './fingerprint.js';
import type { Journal } from './journal.js';

/** A property does not hold. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

export interface Sent {
  readonly name: string;
  readonly session: number;
  readonly entryGroup: number;
  readonly number: number;
  readonly destinationsLow: number;
  readonly destinationsHigh: number;
  readonly payload: Uint8Array;
}

export class Orders {
  /** All messages that the scope can send. */
  sent: readonly Sent[] = [];
  /** By group and index: what it has decided. */
  private readonly logs: (Sent | undefined)[][];
  /** By group: what it has delivered, in order. */
  readonly orders: Sent[][];

  constructor(
    groups: number,
    private readonly journal: Journal,
    private readonly print: Fingerprint,
  ) {
    this.logs = Array.from({ length: groups }, () => []);
    this.orders = Array.from({ length: groups }, () => []);
  }

  send(message: Sent): void {
    this.journal.set(this as { sent: readonly Sent[] }, 'sent', [...this.sent, message]);
  }

  find(session: number, entryGroup: number, number: number): Sent | undefined {
    return this.sent.find(
      (message) =>
        message.session === session &&
        message.entryGroup === entryGroup &&
        message.number === number,
    );
  }

  /** A replica holds this message as decided at `index`. */
  decided(replica: string, group: number, index: number, message: Sent | undefined): void {
    if (message === undefined) throw new Violation(`${replica} decided a message that nobody sent`);
    const log = this.logs[group];
    const known = log[index];
    if (known === message) return;
    if (known !== undefined) {
      throw new Violation(
        `agreement: ${replica} decided ${message.name} at index ${index}, where another replica decided ${known.name}`,
      );
    }
    this.append(log, index, message, placeIn(wordOf('log'), group));
  }

  /** A replica delivers this message as its number `count`. */
  deliver(replica: string, group: number, count: number, message: Sent): void {
    const order = this.orders[group];
    if (order[count] === message) return;
    if (count < order.length) {
      throw new Violation(
        `agreement: ${replica} delivered ${message.name} as number ${count} of its group, where another replica delivered ${order[count].name}`,
      );
    }
    if (order.includes(message)) {
      throw new Violation(`integrity: ${replica} delivered ${message.name} twice`);
    }
    if (count > order.length) {
      throw new Violation(`integrity: ${replica} skipped number ${order.length} of its group`);
    }
    this.append(order, count, message, placeIn(wordOf('order'), group));
    this.checkOrders(group);
    if (message.entryGroup !== group) this.checkGap(group, message);
  }

  /** The messages for a child are those that its parent decides for it, in that order, without a gap. */
  private checkGap(group: number, message: Sent): void {
    const decided = this.logs[message.entryGroup];
    for (const earlier of decided.slice(0, decided.indexOf(message))) {
      const isFor = earlier && contains(earlier.destinationsLow, earlier.destinationsHigh, group);
      if (!isFor || this.orders[group].includes(earlier)) continue;
      throw new Violation(
        `order: group ${group} delivered ${message.name} without ${earlier.name}, which its parent decided before`,
      );
    }
  }

  /** A replica has ordered this message, but does not deliver it. */
  checkRelayed(replica: string, group: number, message: Sent): void {
    if (!contains(message.destinationsLow, message.destinationsHigh, group)) return;
    throw new Violation(`integrity: ${replica} skipped ${message.name}, which is for its group`);
  }

  describe(): string {
    const names = (lists: readonly (readonly (Sent | undefined)[])[]): string =>
      lists.map((list) => list.map((message) => message?.name).join()).join(';');
    return `${names(this.logs)} ${names(this.orders)}`;
  }

  private append(list: (Sent | undefined)[], at: number, message: Sent, place: number): void {
    if (at === list.length) this.journal.note(list, 'length', at);
    else this.journal.note(list, at, undefined);
    list[at] = message;
    this.print.addWord(placeIn(place, at), wordOf(message.name));
  }

  private checkOrders(group: number): void {
    const mine = this.orders[group];
    for (const other of this.orders) {
      if (other === mine) continue;
      const common = other.filter((message) => mine.includes(message));
      const sameInMine = mine.filter((message) => other.includes(message));
      const place = common.findIndex((message, i) => message !== sameInMine[i]);
      if (place < 0) continue;
      throw new Violation(
        `order: one group delivered ${common[place].name} before ${sameInMine[place].name}, group ${group} after it`,
      );
    }
  }
}

/** Counts and hashes the messages that it delivers. Its reply and its snapshot are this state. */
export class CheckedService implements Application {
  private readonly state = new Int32Array(2);
  private readonly reply = new Uint8Array(this.state.buffer);

  constructor(
    private readonly orders: Orders,
    private readonly group: number,
    private readonly replica: string,
    private readonly nextToDeliver: () => number,
    private readonly onDeliver: (name: string) => void,
  ) {}

  deliver(delivery: Delivery): Uint8Array {
    const { orders, group, replica, state } = this;
    const message = orders.find(delivery.session, delivery.entryGroup, delivery.number);
    orders.decided(replica, group, this.nextToDeliver(), message);
    if (!contains(message!.destinationsLow, message!.destinationsHigh, group)) {
      throw new Violation(`integrity: ${message!.name} was not sent to group ${group}`);
    }
    if (!isSame(message!.payload, delivery.payload)) {
      throw new Violation(`integrity: ${replica} delivered ${message!.name} with another payload`);
    }
    this.onDeliver(message!.name);
    orders.deliver(replica, group, state[0], message!);
    state[0]++;
    state[1] = next(state[1], message!);
    return this.reply;
  }

  /** It asks for no ticks. */
  tick(): void {
    throw new Violation(`integrity: ${this.replica} delivered a tick that nobody asked for`);
  }

  snapshot(): Uint8Array {
    return this.reply.slice();
  }

  restore(snapshot: Uint8Array): void {
    this.reply.set(snapshot);
  }

  /** A snapshot of so many deliveries was restored. */
  checkRestored(count: number): void {
    const order = this.orders.orders[this.group].slice(0, count);
    const expected = order.reduce((state, message) => next(state, message), 0);
    if (this.state[0] === count && order.length === count && this.state[1] === expected) return;
    throw new Violation(`state: ${this.replica} restored a state that no ${count} deliveries make`);
  }
}

function next(state: number, message: Sent): number {
  return placeIn(state, wordOf(message.name));
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
