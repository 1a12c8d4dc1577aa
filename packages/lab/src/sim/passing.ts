/**
 * Runs a message-passing system (`baselines/`) in virtual time. It draws groups, tree, clients and load from a seed, runs
 * until nothing is in flight, and returns the history. There are no faults: as in the paper, these systems serve for
 * comparison and have no replication. Called by the tests of the systems.
 */

import { History } from 'tram-multicast/internal/check/history.js';
import { contains, highMask, lowMask, Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import type { Client } from '../baselines/passing/client.js';
import type { Message } from '../baselines/passing/message.js';
import type { Participant, Sizes } from '../baselines/passing/network.js';
import type { Protocol } from '../baselines/passing/protocol.js';
import { FifoNetwork } from './fifo-network.js';
import { Random } from './random.js';

/** Makes the system under test. @param overlay  for systems that need one */
export type ProtocolMaker = (sizes: Sizes, overlay: Overlay) => Protocol;

export interface PassingRun {
  readonly history: History;
  /** How many messages lack the reply of a destination. */
  readonly unanswered: number;
  /** How often a message reached a group that is not one of its destinations. */
  readonly outsiders: number;
}

const MESSAGES = 150;
const PAYLOAD_BYTES_MAX = 40;

/** @param usesTree  whether the history names the tree, so that FIFO order can be judged */
export function simulatePassing(
  seed: number,
  protocolOf: ProtocolMaker,
  usesTree: boolean,
): PassingRun {
  const random = new Random(seed);
  const groups = random.between(1, 8);
  const sizes: Sizes = {
    groups,
    clients: random.between(1, 5),
    slots: random.between(1, 6),
  };
  const overlay = new Overlay(drawTree(random, groups));
  return new PassingWorld(sizes, protocolOf(sizes, overlay), overlay, usesTree, random).run();
}

class PassingWorld {
  private readonly history = new History();
  private readonly network: FifoNetwork;
  private readonly participants: Participant[];
  private readonly clients: Client[];
  /** By client and number. */
  private readonly sent = new Map<string, { low: number; high: number; payloadBytes: number }>();
  private left = MESSAGES;
  private outsiders = 0;

  constructor(
    private readonly sizes: Sizes,
    protocol: Protocol,
    overlay: Overlay,
    usesTree: boolean,
    private readonly random: Random,
  ) {
    const { groups, clients } = sizes;
    this.network = new FifoNetwork(groups + clients, random, (from, to, message) =>
      this.arrive(from, to, message),
    );
    this.history.add({
      event: 'groups',
      groups: Object.fromEntries(Array.from({ length: groups }, (_, g) => [g, [replicaOf(g)]])),
      ...(usesTree && { parents: overlay.parents }),
    });
    const listener = { answered: (client: number) => this.multicast(client) };
    this.clients = Array.from({ length: clients }, (_, client) =>
      protocol.client(client, this.network.from(groups + client), listener),
    );
    this.participants = Array.from({ length: groups }, (_, group) =>
      protocol.group(group, this.network.from(group), {
        delivered: (message) => this.deliver(group, message),
        relayed: () => undefined,
      }),
    );
    this.participants.push(...this.clients);
  }

  run(): PassingRun {
    for (let i = 0; i < this.sizes.slots; i++) {
      for (let client = 0; client < this.sizes.clients; client++) this.multicast(client);
    }
    while (this.network.step());
    this.history.add({ event: 'end', quiescent: true });
    const unanswered = this.clients.reduce((sum, { outstanding }) => sum + outstanding, 0);
    return { history: this.history, unanswered, outsiders: this.outsiders };
  }

  private multicast(client: number): void {
    if (this.left === 0) return;
    this.left--;
    const { low, high, destinations } = this.drawDestinations();
    const payloadBytes = this.random.between(0, PAYLOAD_BYTES_MAX);
    const sender = this.clients[client];
    const payload = new Int32Array(PAYLOAD_BYTES_MAX / 4).fill(sender.lastNumber + 1);
    if (!sender.multicast(low, high, payload, payloadBytes)) throw new Error('there is no slot');
    const id = idOf(client, sender.lastNumber);
    this.sent.set(id, { low, high, payloadBytes });
    this.history.add({ event: 'multicast', id, client: `c${client}`, destinations });
  }

  /** One group, all, or any number of them. */
  private drawDestinations() {
    const { groups } = this.sizes;
    const count = this.random.pick([1, groups, this.random.between(1, groups)]);
    const left = Array.from({ length: groups }, (_, group) => group);
    const destinations = Array.from(
      { length: count },
      () => left.splice(this.random.below(left.length), 1)[0],
    );
    const low = destinations.reduce((mask, group) => mask | lowMask(group), 0);
    const high = destinations.reduce((mask, group) => mask | highMask(group), 0);
    return { low, high, destinations };
  }

  private arrive(from: number, to: number, message: Message): void {
    const id = idOf(message.client, message.number);
    const { low, high } = this.sent.get(id)!;
    if (to < this.sizes.groups && !contains(low, high, to)) {
      this.history.add({ event: 'touch', id, group: to });
      this.outsiders++;
    }
    this.participants[to].receive(from, message);
  }

  private deliver(group: number, message: Message): void {
    const id = idOf(message.client, message.number);
    const { payload, payloadAt, payloadBytes } = message;
    const isWhole =
      payloadBytes === this.sent.get(id)!.payloadBytes &&
      (payloadBytes === 0 || payload[payloadAt] === message.number);
    if (!isWhole) throw new Error(`the payload of ${id} has changed on its way to group ${group}`);
    this.history.add({ event: 'deliver', id, group, replica: replicaOf(group) });
  }
}

/** The parent of each group, except the first, is any group before it. */
function drawTree(random: Random, groups: number): number[] {
  return Array.from({ length: groups }, (_, group) => (group === 0 ? -1 : random.below(group)));
}

function replicaOf(group: number): string {
  return `g${group}/0`;
}

function idOf(client: number, number: number): string {
  return `c${client}-${number}`;
}
