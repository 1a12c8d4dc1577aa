/**
 * The participants of a small world: starts replicas and clients, which are production code, steps them, and keeps their
 * images. Called by `small-world.ts`.
 */
import {
  type Call,
  Client,
  type ReplyOutcome,
} from 'tram-multicast/internal/protocol/data-path/client.js';
import {
  type Edges,
  NO_OBSERVER,
  type Observer,
  PACE,
  type Transition,
} from 'tram-multicast/internal/protocol/edges.js';
import type { Layout } from 'tram-multicast/internal/protocol/layout.js';
import type { Past } from 'tram-multicast/internal/protocol/member.js';
import { lowMask, type Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { Replica } from 'tram-multicast/internal/protocol/replica.js';
import { firstKeyOf } from '../sim/first-key.js';
import { letterOf } from './action.js';
import { type Fingerprint, placeIn, wordOf } from './fingerprint.js';
import { Image } from './image.js';
import type { Journal } from './journal.js';
import type { Fabric } from './memory.js';
import { CheckedService, type Orders, Violation } from './orders.js';
import { type Reasons, ROW_NUMBER_WORDS, unseenNews } from './unobserved.js';

/** Longer than any search. */
const NEVER_US = 1e9;
export const HEARTBEAT_US = 1;
const TIMING = {
  heartbeatUs: HEARTBEAT_US,
  restUs: NEVER_US,
  // Time does not pass by itself. So that a step does all that it can, all steps are full.
  quickUs: 0,
  suspectAfterUs: NEVER_US,
  askAgainUs: HEARTBEAT_US,
  backOffUs: NEVER_US,
  resendAfterUs: HEARTBEAT_US,
};

export interface Participant {
  readonly id: number;
  readonly group: number;
  readonly member: number;
  incarnation: number;
  nowUs: number;
  isPaused: boolean;
  /** Undefined while it is down. */
  replica: Replica | undefined;
  client: Client | undefined;
  image: Image | undefined;
  /** See `unseenNews`. */
  unseenNews: number;
}

/** Is told what participants do. */
export interface Listener {
  transition(participant: number, what: Transition): void;
  delivered(participant: number, message: string): void;
}

/** What participants share. */
export interface Commons {
  readonly journal: Journal;
  readonly print: Fingerprint;
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly fabric: Fabric;
  readonly orders: Orders;
  readonly unobserved: Reasons;
  readonly listener: Listener | undefined;
}

export class Participants {
  readonly all: Participant[] = [];
  sessions = 0;
  private hasImages = false;
  private readonly edgesOf = new WeakMap<object, Edges>();
  private readonly shared: ReadonlySet<object>;
  private readonly rowNumbers: readonly number[];

  constructor(private readonly commons: Commons) {
    const { layout, overlay, orders } = commons;
    this.shared = new Set<object>([layout, layout.sizes, overlay, orders, TIMING, PACE]);
    this.rowNumbers = ROW_NUMBER_WORDS.map((word) => layout.row + word);
    const { groups, replicas, clients } = layout.sizes;
    for (let group = 0; group < groups; group++) {
      for (let member = 0; member < replicas; member++) {
        this.startReplica(this.add(group, member), 'none');
      }
    }
    for (let slot = 0; slot < clients; slot++) this.add(-1, slot);
  }

  private add(group: number, member: number): Participant {
    const participant: Participant = {
      id: this.all.length,
      group,
      member,
      incarnation: 0,
      nowUs: 0,
      isPaused: false,
      replica: undefined,
      client: undefined,
      image: undefined,
      unseenNews: 0,
    };
    this.all.push(participant);
    return participant;
  }

  /** From now on, what a participant changes is found by comparison with its image. */
  makeImages(): void {
    this.hasImages = true;
    for (const participant of this.all) this.makeImage(participant);
  }

  private makeImage(participant: Participant): void {
    const { replica, client, id } = participant;
    const root = replica ?? client;
    if (!this.hasImages || root === undefined) return;
    const memory = this.commons.fabric.memories[id]!;
    const edges = this.edgesOf.get(root)!;
    const objects = new Set([...this.shared, memory, edges, edges.observer, this, ...this.all]);
    const unobserved = this.commons.unobserved;
    const surroundings = { objects, region: memory.own.buffer, unobserved };
    const place = placeIn(wordOf('participant'), id);
    this.commons.journal.set(
      participant,
      'image',
      new Image(root, place, surroundings, this.commons.journal, this.commons.print),
    );
  }

  startReplica(participant: Participant, past: Past, left?: Int32Array): void {
    const { id, group, member } = participant;
    const memory =
      past === 'kept'
        ? this.commons.fabric.resume(id)
        : this.commons.fabric.start(id, this.commons.layout.replicaRegionWords, this.rowNumbers);
    this.commons.journal.set(participant, 'incarnation', participant.incarnation + 1);
    const name = letterOf(id);
    const service = new CheckedService(
      this.commons.orders,
      group,
      name,
      () => participant.replica!.member.nextToDeliver,
      (message) => this.commons.listener?.delivered(id, message),
    );
    const observer: Observer = {
      transition: (what) => this.commons.listener?.transition(id, what),
      led: () => undefined,
      relayed: ({ session, entryGroup, number }) => {
        const { orders } = this.commons;
        const message = orders.find(session, entryGroup, number);
        orders.decided(name, group, participant.replica!.member.nextToDeliver, message);
        orders.checkRelayed(name, group, message!);
      },
      restored: (_, count) => service.checkRestored(count),
      failed: (error) => {
        throw error;
      },
      snapshotFailed: (error) => {
        throw error;
      },
    };
    const edges = this.edges(memory, observer);
    const { incarnation } = participant;
    const identity = { group, member, incarnation, firstKey: firstKeyOf(incarnation), past, left };
    const replica = new Replica(identity, edges, service, participant.nowUs);
    this.edgesOf.set(replica, edges);
    this.commons.journal.set(participant, 'replica', replica);
    this.makeImage(participant);
  }

  private edges(memory: Edges['memory'], observer: Observer): Edges {
    return {
      memory,
      layout: this.commons.layout,
      overlay: this.commons.overlay,
      timing: TIMING,
      pace: PACE,
      order: 'multicast',
      observer,
      wallClockUs: () => 0,
      monotonicUs: () => 0,
      hasSessionEnded: () => false,
    };
  }

  startClient(participant: Participant): void {
    const { id, member } = participant;
    const memory = this.commons.fabric.start(id, this.commons.layout.clientRegionWords);
    this.commons.journal.set(this as { sessions: number }, 'sessions', this.sessions + 1);
    const observer: Observer = {
      ...NO_OBSERVER,
      transition: (what) => this.commons.listener?.transition(id, what),
    };
    const edges = this.edges(memory, observer);
    const session = this.sessions;
    const listener = {
      replied: (call: Call, group: number, reply: Uint8Array, outcome: ReplyOutcome) =>
        this.checkReply(session, call, group, reply, outcome),
      answered: () => undefined,
    };
    const client = new Client(edges, member, session, listener, participant.nowUs);
    this.edgesOf.set(client, edges);
    this.commons.journal.set(participant, 'client', client);
  }

  private checkReply(
    session: number,
    { entryGroup, number }: Call,
    group: number,
    reply: Uint8Array,
    outcome: ReplyOutcome,
  ): void {
    const message = this.commons.orders.find(session, entryGroup, number)!;
    const count =
      outcome === 'ok' ? new DataView(reply.buffer, reply.byteOffset).getInt32(0, true) : 0;
    if (count > 0 && this.commons.orders.orders[group][count - 1] === message) return;
    throw new Violation(
      `reply: group ${group} replied to ${message.name} as its number ${count - 1}`,
    );
  }

  send(client: Participant, name: string, to: readonly number[]): void {
    const { client: sender } = client;
    const low = to.reduce((mask, group) => mask | lowMask(group), 0);
    const payload = new TextEncoder().encode(name);
    if (sender!.offer(low, 0, payload) !== 'accepted') throw new Error('a client has no room');
    const { entryGroup, number } = sender!.lastCall;
    this.commons.orders.send({
      name,
      session: sender!.session,
      entryGroup,
      number,
      destinationsLow: low,
      destinationsHigh: 0,
      payload,
    });
  }

  /** A client starts, and posts so many messages. */
  openSession(participant: Participant, to: readonly number[], messages: number): void {
    this.startClient(participant);
    for (let i = 0; i < messages; i++) {
      this.send(participant, `m${this.sessions}${"'".repeat(i)}`, to);
      participant.client!.flush();
    }
    this.makeImage(participant);
  }

  step(participant: Participant): number {
    const { replica, client, nowUs } = participant;
    return replica?.doWork(nowUs) ?? client?.doWork(nowUs) ?? 0;
  }

  /** The participant has run: what it has changed in its objects and in its region is part of the state now. */
  update(participant: Participant): void {
    const { id, image, replica } = participant;
    if (!this.hasImages) return;
    image!.update();
    if (replica !== undefined) this.noteNews(participant, unseenNews(replica));
    const memory = this.commons.fabric.memories[id]!;
    memory.updateRegion(0, memory.own.length);
  }

  private noteNews(participant: Participant, unseen: number): void {
    const { print, journal } = this.commons;
    const place = placeIn(wordOf('unseen news'), participant.id);
    print.removeWord(place, participant.unseenNews);
    print.addWord(place, unseen);
    journal.set(participant, 'unseenNews', unseen);
  }

  /** The participant has ended: its objects are no part of the state any more. */
  end(participant: Participant): void {
    const { journal } = this.commons;
    participant.image?.remove();
    this.noteNews(participant, 0);
    journal.set(participant, 'image', undefined);
    journal.set(participant, 'replica', undefined);
    journal.set(participant, 'client', undefined);
  }
}
