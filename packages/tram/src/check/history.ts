/**
 * A history in the form that the judge needs: names interned to small integers, deliveries in flat
 * arrays.
 *
 * The trace parser fills it from a file, and the simulator adds events as they happen. `add` only
 * records (a map look-up or two); `judge` does the rest. A history can be judged, extended and judged
 * again.
 *
 * Groups, replicas, clients and messages are identified by an index. `groupNumbers`, `replicaNames`,
 * `clientNames` and `messageIds` map it to the name in the trace.
 */

import {
  type AnsweredEvent,
  MalformedTraceError,
  type MulticastEvent,
  type PromisedDurability,
  type PromisedOrder,
  type TraceEvent,
} from './events.js';
import { IntList } from './int-list.js';
import { type Stretch, stretchOf } from './stretch.js';

const NONE = -1;
const FIRST_ERA = 0;

export interface Counts {
  groups: number;
  replicas: number;
  clients: number;
  messages: number;
  answers: number;
  deliveries: number;
  touches: number;
  leaders: number;
  crashes: number;
  restarts: number;
  restores: number;
  clientCrashes: number;
  eras: number;
}

export class History {
  readonly counts: Counts = {
    groups: 0,
    replicas: 0,
    clients: 0,
    messages: 0,
    answers: 0,
    deliveries: 0,
    touches: 0,
    leaders: 0,
    crashes: 0,
    restarts: 0,
    restores: 0,
    clientCrashes: 0,
    eras: 1,
  };
  /** True once the trace has stated that the run was drained. */
  quiescent = false;
  promisedOrder: PromisedOrder = 'multicast';
  /** For each era, what it promises. Invariant: not empty. */
  readonly durabilities: PromisedDurability[] = ['none'];

  readonly groupNumbers: number[] = [];
  readonly replicasOf: number[][] = [];
  readonly replicaNames: string[] = [];
  readonly groupOfReplica: number[] = [];
  /** For each replica, oldest first. Invariant: not empty; the last stretch is the current one. */
  readonly stretchesOf: Stretch[][] = [];

  readonly clientNames: string[] = [];
  /** For each client, the index of its era. */
  readonly eraOfClient: number[] = [];
  /** For each client, the name of its clock; `undefined` for the clock that needs no name. */
  readonly clockOf: (string | undefined)[] = [];

  readonly messageIds: string[] = [];
  /** Messages in the order of their multicast events. */
  readonly multicasts = new IntList();
  /** What clients did, in the order of the events: `m` if m was multicast, `~m` at the first reply to m. */
  readonly clientEvents = new IntList();
  /** The time of each client event; `NaN` if it has none. */
  readonly clientEventUs: number[] = [];

  /** The first delivery that no multicast event of its message precedes. */
  earlyDelivery: { readonly message: number; readonly replica: number } | undefined;
  /** (message, group) pairs, flat, in the order of the events. */
  readonly answers = new IntList();
  /** (message, group) pairs, flat. Touches of messages with several destinations are left out. */
  readonly touches = new IntList();

  private readonly clientOfMessage = new IntList();
  private readonly entryGroupOfMessage = new IntList();
  /** The group of the first reply. */
  private readonly answeringGroup = new IntList();
  /** For each client, the time of its last event: `NaN` if it has none, `undefined` before the first event. */
  private readonly lastUs: (number | undefined)[] = [];
  /** Message m has the `destinationCount[m]` destinations from `firstDestination[m]` on. */
  private readonly firstDestination = new IntList();
  private readonly destinationCount = new IntList();
  private readonly destinations = new IntList();

  /** For each replica, whether it has crashed since it started last; the same for each client. */
  private readonly crashed: boolean[] = [];
  private readonly clientCrashed: boolean[] = [];
  /** From the number of an era to its index. */
  private readonly eraIndex = new Map<number, number>();

  private readonly groupIndex = new Map<number, number>();
  private readonly replicaIndex = new Map<string, number>();
  private readonly clientIndex = new Map<string, number>();
  private readonly messageIndex = new Map<string, number>();
  private parentOfGroup: readonly number[] | undefined;
  private depthOfGroup: readonly number[] = [];
  private ended = false;
  private line = 0;

  get messageCount(): number {
    return this.messageIds.length;
  }

  get groupCount(): number {
    return this.groupNumbers.length;
  }

  /** The index of the era that was the last to begin. */
  get lastEra(): number {
    return this.durabilities.length - 1;
  }

  /** True if the replica is up now. A power cut has ended all replicas that have not restarted since. */
  isUp(replica: number): boolean {
    return !this.crashed[replica] && this.stretchesOf[replica].at(-1)!.era === this.lastEra;
  }

  /** True if the client neither crashed nor ended with its era. */
  isCorrectClient(client: number): boolean {
    return !this.clientCrashed[client] && this.eraOfClient[client] === this.lastEra;
  }

  isMulticast(message: number): boolean {
    return this.destinationCount.get(message) > 0;
  }

  /** Requires that the message was multicast. */
  clientOf(message: number): number {
    return this.clientOfMessage.get(message);
  }

  /** The group whose reply to the message came first. Requires that there was one. */
  answeringGroupOf(message: number): number {
    return this.answeringGroup.get(message);
  }

  /** True if the times of the client's events are known. */
  hasTimes(client: number): boolean {
    return !Number.isNaN(this.lastUs[client] ?? Number.NaN);
  }

  /** Empty if the message was never multicast. */
  destinationsOf(message: number): Int32Array {
    const first = this.firstDestination.get(message);
    return this.destinations.view().subarray(first, first + this.destinationCount.get(message));
  }

  isAddressedTo(message: number, group: number): boolean {
    const first = this.firstDestination.get(message);
    const end = first + this.destinationCount.get(message);
    for (let i = first; i < end; i++) if (this.destinations.get(i) === group) return true;
    return false;
  }

  /**
   * The group at which the message enters the tree: as recorded, else the lowest common ancestor of
   * its destinations; `undefined` if the trace has neither.
   */
  entryGroupOf(message: number): number | undefined {
    const recorded = this.entryGroupOfMessage.get(message);
    if (recorded !== NONE) return this.groupNumbers[recorded];
    const destinations = this.destinationsOf(message);
    const first = this.groupNumbers[destinations[0]];
    if (destinations.length === 1) return first;
    const parents = this.parentOfGroup;
    if (parents === undefined) return undefined;
    let ancestor = first;
    for (let i = 1; i < destinations.length; i++) {
      let other = this.groupNumbers[destinations[i]];
      while (ancestor !== other) {
        if (this.depthOfGroup[ancestor] >= this.depthOfGroup[other]) ancestor = parents[ancestor];
        else other = parents[other];
      }
    }
    return ancestor;
  }

  /**
   * Records one event.
   *
   * @param line  its line number; without a file, the ordinal of the event
   * @throws {MalformedTraceError} if the event can't follow what was recorded before
   */
  add(event: TraceEvent, line = this.line + 1): void {
    this.line = line;
    if (this.ended) throw this.malformed('nothing may follow the "end" event');
    switch (event.event) {
      case 'deliver':
        this.addDeliver(event.id, event.group, event.replica);
        break;
      case 'multicast':
        this.addMulticast(event);
        break;
      case 'answered':
        this.addAnswered(event);
        break;
      case 'touch':
        this.addTouch(event.id, event.group);
        break;
      case 'groups':
        this.addGroups(event.groups, event.parents);
        this.promisedOrder = event.order ?? 'multicast';
        break;
      case 'era':
        this.addEra(event.era, event.durability);
        break;
      case 'client-start':
        this.addClientStart(event.client, event.clock, event.era);
        break;
      case 'leader':
        this.memberOf(event.group, event.replica);
        this.counts.leaders++;
        break;
      case 'crash':
        this.crashed[this.replica(event.replica)] = true;
        this.counts.crashes++;
        break;
      case 'restart':
        this.addRestart(this.replica(event.replica), this.era(event.era));
        break;
      case 'opened':
        this.stretchesOf[this.replica(event.replica)].at(-1)!.opensEra = true;
        break;
      case 'restore':
        this.addRestore(event.replica, event.from, event.count);
        break;
      case 'client-crash':
        this.clientCrashed[this.client(event.client)] = true;
        this.counts.clientCrashes++;
        break;
      case 'end':
        this.ended = true;
        this.quiescent = event.quiescent;
        break;
    }
  }

  private addDeliver(id: string, groupNumber: number, name: string): void {
    const replica = this.memberOf(groupNumber, name);
    const message = this.message(id);
    if (this.earlyDelivery === undefined && !this.isMulticast(message)) {
      this.earlyDelivery = { message, replica };
    }
    this.stretchesOf[replica].at(-1)!.delivered.push(message);
    this.counts.deliveries++;
  }

  private addMulticast({ id, client, destinations, entryGroup, timeUs }: MulticastEvent): void {
    if (destinations.length === 0) throw this.malformed(`message ${quote(id)} has no destination`);
    const message = this.message(id);
    if (this.isMulticast(message)) {
      throw this.malformed(`message ${quote(id)} is multicast a second time`);
    }
    const first = this.destinations.length;
    for (let i = 0; i < destinations.length; i++) {
      if (destinations.indexOf(destinations[i]) !== i) {
        throw this.malformed(`message ${quote(id)} names destination ${destinations[i]} twice`);
      }
      this.destinations.push(this.group(destinations[i]));
    }
    this.firstDestination.set(message, first);
    this.destinationCount.set(message, destinations.length);
    this.clientOfMessage.set(message, this.client(client));
    if (entryGroup !== undefined) this.entryGroupOfMessage.set(message, this.group(entryGroup));
    this.multicasts.push(message);
    this.addClientEvent(message, message, timeUs);
    this.counts.messages++;
  }

  private addAnswered({ id, group: groupNumber, timeUs }: AnsweredEvent): void {
    const message = this.message(id);
    if (!this.isMulticast(message)) {
      throw this.malformed(`message ${quote(id)} is answered before it is multicast`);
    }
    const group = this.group(groupNumber);
    if (!this.isAddressedTo(message, group)) {
      throw this.malformed(
        `message ${quote(id)} is answered by group ${groupNumber}, which is no destination`,
      );
    }
    this.counts.answers++;
    this.answers.push(message);
    this.answers.push(group);
    if (this.answeringGroup.get(message) !== NONE) return;
    this.answeringGroup.set(message, group);
    this.addClientEvent(~message, message, timeUs);
  }

  private addClientEvent(event: number, message: number, timeUs = Number.NaN): void {
    const client = this.clientOf(message);
    const last = this.lastUs[client] ?? timeUs;
    if (Number.isNaN(last) !== Number.isNaN(timeUs)) {
      throw this.malformed(
        `client ${quote(this.clientNames[client])} has events with and without a time`,
      );
    }
    if (timeUs < last) {
      throw this.malformed(`the clock of client ${quote(this.clientNames[client])} goes back`);
    }
    this.lastUs[client] = timeUs;
    this.clientEvents.push(event);
    this.clientEventUs.push(timeUs);
  }

  private addEra(number: number, durability: PromisedDurability): void {
    const last = [...this.eraIndex.keys()].at(-1);
    if (last === undefined) {
      if (this.clientNames.length > 0) throw this.malformed('clients occur before the first era');
      this.durabilities[FIRST_ERA] = durability;
    } else if (number > last) this.durabilities.push(durability);
    else throw this.malformed(`era ${number} begins after era ${last}`);
    this.eraIndex.set(number, this.lastEra);
    this.counts.eras = this.durabilities.length;
  }

  private addClientStart(name: string, clock: string, era: number | undefined): void {
    const client = this.client(name);
    if (this.clockOf[client] !== undefined) {
      throw this.malformed(`client ${quote(name)} starts a second time`);
    }
    this.clockOf[client] = clock;
    this.eraOfClient[client] = this.era(era);
  }

  private addTouch(id: string, groupNumber: number): void {
    const group = this.group(groupNumber);
    const message = this.message(id);
    this.counts.touches++;
    // Any group may order a message with several destinations.
    if (this.destinationCount.get(message) > 1) return;
    this.touches.push(message);
    this.touches.push(group);
  }

  private addGroups(
    groups: Readonly<Record<string, readonly string[]>>,
    parents: readonly number[] | undefined,
  ): void {
    if (this.groupCount > 0) throw this.malformed('there is a second "groups" event');
    const numbers = Object.keys(groups).map(Number);
    if (numbers.length === 0) throw this.malformed('there are no groups');
    for (const number of numbers.sort((a, b) => a - b)) {
      const group = this.groupNumbers.length;
      this.groupNumbers.push(number);
      this.groupIndex.set(number, group);
      this.replicasOf.push(groups[number].map((name) => this.addReplica(name, group)));
    }
    this.counts.groups = numbers.length;
    this.counts.replicas = this.replicaNames.length;
    if (parents !== undefined) this.addTree(parents);
  }

  private addReplica(name: string, group: number): number {
    if (this.replicaIndex.has(name)) {
      throw this.malformed(`replica ${quote(name)} is named twice`);
    }
    const replica = this.replicaNames.length;
    this.replicaNames.push(name);
    this.replicaIndex.set(name, replica);
    this.groupOfReplica.push(group);
    this.crashed.push(false);
    this.stretchesOf.push([stretchOf(replica, 0, FIRST_ERA, 0)]);
    return replica;
  }

  private addTree(parents: readonly number[]): void {
    const depths = parents.map((_, group) => {
      let depth = 0;
      for (let g = group; parents[g] !== -1; g = parents[g]) {
        if (parents[g] === undefined || ++depth > parents.length) {
          throw this.malformed(`"parents" is not a tree: group ${group} does not reach a root`);
        }
      }
      return depth;
    });
    if (parents.filter((parent) => parent === -1).length !== 1) {
      throw this.malformed('"parents" is not a tree: it needs exactly one root (-1)');
    }
    const outside = this.groupNumbers.find((group) => parents[group] === undefined);
    if (outside !== undefined) throw this.malformed(`group ${outside} is not in "parents"`);
    this.parentOfGroup = parents;
    this.depthOfGroup = depths;
  }

  private addRestart(replica: number, era: number): void {
    const last = this.stretchesOf[replica].at(-1)!;
    if (era < last.era) {
      throw this.malformed(
        `replica ${quote(this.replicaNames[replica])} restarts in an era that it has left`,
      );
    }
    this.stretchesOf[replica].push(stretchOf(replica, last.incarnation + 1, era, 0));
    this.crashed[replica] = false;
    this.counts.restarts++;
  }

  private addRestore(name: string, from: string, restored: number): void {
    const replica = this.replica(name);
    if (this.groupOfReplica[this.replica(from)] !== this.groupOfReplica[replica]) {
      throw this.malformed(
        `${quote(name)} restores from ${quote(from)}, which is in another group`,
      );
    }
    const { incarnation, era } = this.stretchesOf[replica].at(-1)!;
    this.stretchesOf[replica].push(stretchOf(replica, incarnation, era, restored));
    if (restored > 0) this.counts.restores++;
  }

  private message(id: string): number {
    const known = this.messageIndex.get(id);
    if (known !== undefined) return known;
    const message = this.messageIds.length;
    this.messageIds.push(id);
    this.messageIndex.set(id, message);
    this.clientOfMessage.push(NONE);
    this.entryGroupOfMessage.push(NONE);
    this.answeringGroup.push(NONE);
    this.firstDestination.push(0);
    this.destinationCount.push(0);
    return message;
  }

  private client(name: string): number {
    const known = this.clientIndex.get(name);
    if (known !== undefined) return known;
    const client = this.clientNames.length;
    this.clientNames.push(name);
    this.eraOfClient.push(this.lastEra);
    this.clientIndex.set(name, client);
    this.clientCrashed.push(false);
    this.clockOf.push(undefined);
    this.lastUs.push(undefined);
    this.counts.clients++;
    return client;
  }

  private replica(name: string): number {
    const replica = this.replicaIndex.get(name);
    if (replica === undefined) throw this.malformed(`there is no replica ${quote(name)}`);
    return replica;
  }

  private era(number: number | undefined): number {
    if (number === undefined) return this.lastEra;
    const era = this.eraIndex.get(number);
    if (era === undefined) throw this.malformed(`era ${number} has not begun`);
    return era;
  }

  private group(number: number): number {
    const group = this.groupIndex.get(number);
    if (group === undefined) throw this.malformed(`there is no group ${number}`);
    return group;
  }

  private memberOf(groupNumber: number, name: string): number {
    const replica = this.replica(name);
    if (this.groupOfReplica[replica] !== this.group(groupNumber)) {
      throw this.malformed(`replica ${quote(name)} is not in group ${groupNumber}`);
    }
    return replica;
  }

  private malformed(reason: string): MalformedTraceError {
    const hint = this.groupCount === 0 ? ' (a "groups" event must come first)' : '';
    return new MalformedTraceError(reason + hint, this.line);
  }
}

function quote(name: string): string {
  return JSON.stringify(name);
}
