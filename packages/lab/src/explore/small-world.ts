/**
 * A small cluster: replicas and clients as production code, on a memory whose choices are actions. It begins in the state
 * that a scope describes. `choices` lists what may happen next, `act` makes it happen, and `undo` takes it back.
 *
 * Time stands still, except in an action that lets some of it pass for one participant: it then sends a heartbeat, reads
 * rows, asks again, resends. Nobody ever suspects anybody: campaigns are actions.
 *
 * Invariant: `print` is the fingerprint of the state between any two actions.
 */
import { InvariantError } from 'tram-multicast/internal/protocol/assert.js';
import { Layout } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { type Action, letterOf, participantOf } from './action.js';
import { Fingerprint, placeIn, wordOf } from './fingerprint.js';
import { Journal } from './journal.js';
import { Fabric, Killed, type Link, type Operation } from './memory.js';
import { Orders, Violation } from './orders.js';
import { HEARTBEAT_US, type Listener, type Participant, Participants } from './participants.js';
import type { Allowance, Placed, Scope } from './scope.js';

/** In an action that lets time pass for a participant, everything is due that it does again and again. */
const BEAT_US = 64;
/** A message in an inbox takes no more than this. */
const MESSAGE_BYTES = 64;
/** Without progress, a start that takes longer than so many rounds is wrong. */
const ROUNDS_MAX = 200;
/** After so many rounds in which nothing but heartbeats happens, everything has settled. */
const QUIET_ROUNDS = 4;

/** What an action shows to somebody who watches. */
export interface Watcher extends Listener {
  /** This action is about to happen. */
  event(action: Action, world: SmallWorld): void;
}

/** Each kind of action that may happen only so often. */
type Counted =
  | 'pauses'
  | 'resumes'
  | 'leaves'
  | 'deaths'
  | 'restarts'
  | 'beats'
  | 'breaks'
  | 'sessions';

export class SmallWorld {
  readonly journal = new Journal();
  readonly print = new Fingerprint();
  readonly layout: Layout;
  readonly fabric: Fabric;
  readonly orders: Orders;
  private readonly left: Record<Counted, number>;
  /** Per participant, how many campaigns are left. */
  private readonly campaigns: number[];
  private readonly population: Participants;
  private readonly directLinks: readonly Link[];
  /** Per client that has gone, the links on which its messages arrive, and how many posts remain after each. */
  readonly arrivals = new Map<number, { links: readonly Link[]; remaining: readonly number[] }>();

  constructor(
    readonly scope: Scope,
    watcher?: Watcher,
  ) {
    const { groups, replicas: members = 3 } = scope;
    const clients = Math.max(1, scope.placed.length, scope.sessions ? 1 : 0);
    const calls = Math.max(2, ...scope.placed.map(({ names }) => names.length));
    this.layout = new Layout({
      groups,
      replicas: members,
      clients,
      payloadBytesMax: 4,
      replyBytesMax: 8,
      logBytes: scope.logBytes ?? 512,
      inboxBytes: MESSAGE_BYTES * calls,
      feedBytes: groups > 1 ? 256 : 0,
      callsMax: calls,
      snapshotChunkBytes: 84,
      firstIndex: 0,
      salt: { check: 1, tail: 2 },
    });
    const replicas = groups * members;
    this.fabric = new Fabric(
      replicas + clients,
      this.journal,
      this.print,
      (poster, into, at, count) =>
        this.participants[poster].image?.updateBuffer(into.buffer, into.byteOffset / 4 + at, count),
    );
    this.orders = new Orders(groups, this.journal, this.print);
    this.population = new Participants({
      journal: this.journal,
      print: this.print,
      layout: this.layout,
      overlay: new Overlay([-1, 0].slice(0, groups)),
      fabric: this.fabric,
      orders: this.orders,
      unobserved: scope.unobserved ?? {},
      listener: watcher,
    });
    this.left = {
      pauses: scope.pauses?.times ?? 0,
      resumes: scope.resumes?.times ?? 0,
      leaves: scope.leaves?.times ?? 0,
      deaths: scope.deaths?.times ?? 0,
      restarts: scope.restarts?.times ?? 0,
      beats: scope.beats?.times ?? 0,
      breaks: scope.breaks?.times ?? 0,
      sessions: scope.sessions?.times ?? 0,
    };
    this.campaigns = Array.from(
      { length: replicas + clients },
      (_, id) =>
        [...(scope.campaigns ?? '')].filter((letter) => participantOf(letter) === id).length,
    );
    this.directLinks = (scope.directLinks ?? []).map(([from, to]) =>
      this.fabric.link(participantOf(from), participantOf(to)),
    );
    for (const [from, to] of scope.torn ?? []) {
      this.fabric.link(participantOf(from), participantOf(to)).tears = true;
    }
    this.prepare();
  }

  get participants(): readonly Participant[] {
    return this.population.all;
  }

  // --- the start -----------------------------------------------------------------------------

  private prepare(): void {
    const { scope } = this;
    this.settle();
    for (const { name, to } of scope.delivered ?? []) {
      const client = this.participants[this.layout.clientParticipant(0)];
      if (client.client === undefined) this.population.startClient(client);
      this.population.send(client, name, to);
      this.settle();
    }
    for (const [slot, placed] of scope.placed.entries()) this.place(slot, placed);
    for (const letter of scope.sessions?.who ?? '') {
      this.openSession(this.participants[participantOf(letter)]);
    }
    this.population.makeImages();
    this.fingerprintAll();
    this.journal.clear();
  }

  /** Let time pass, everybody step and everything land, until nothing but heartbeats happens. */
  private settle(): void {
    let quiet = 0;
    for (let round = 0; quiet < QUIET_ROUNDS; round++) {
      if (round > ROUNDS_MAX) throw new Error('the scope does not settle');
      let work = 0;
      for (const participant of this.participants) {
        participant.nowUs += HEARTBEAT_US;
        work += this.population.step(participant);
        for (const link of this.fabric.links) {
          while (link.operations.length > 0) this.fabric.land(link, 'lands');
        }
      }
      quiet = work > 0 ? 0 : quiet + 1;
    }
    const nowUs = Math.max(...this.participants.map((participant) => participant.nowUs));
    for (const participant of this.participants) participant.nowUs = nowUs;
  }

  /** The client has posted messages, and nothing of them has landed. */
  private openSession(client: Participant): void {
    const { to, messages } = this.scope.sessions!;
    this.population.openSession(client, to, messages);
  }

  /** A client has posted these messages to these members, and has gone. */
  private place(slot: number, { names, to, at, arrives }: Placed): void {
    const client = this.participants[this.layout.clientParticipant(slot)];
    this.population.startClient(client);
    const links = this.fabric.links.filter(
      (link) => link.from === client.id && at.includes(letterOf(link.to)),
    );
    const posted = links.map(() => [] as (readonly Operation[])[]);
    for (const name of names) {
      this.population.send(client, name, to);
      client.client!.flush();
      for (const [i, link] of links.entries()) {
        posted[i].push(link.operations);
        this.fabric.change(link, 'operations', []);
      }
    }
    this.fabric.remove(client.id);
    client.client = undefined;
    for (const [i, link] of links.entries()) {
      this.fabric.change(link, 'operations', posted[i].flat());
    }
    // All links have the same posts, so what remains on the first one tells how many messages have arrived.
    const remaining = posted[0].map((_, message) => posted[0].slice(message + 1).flat().length);
    this.arrivals.set(client.id, { links, remaining });
    while (!arrives && links[0].operations.length > 0) this.arrive(client.id);
  }

  /** The next message of a client that has gone. */
  private arrive(client: number): void {
    const { links, remaining } = this.arrivals.get(client)!;
    const end = remaining.find((count) => count < links[0].operations.length)!;
    for (const link of links) {
      while (link.operations.length > end) this.fabric.land(link, 'lands');
    }
  }

  private fingerprintAll(): void {
    const { fabric } = this;
    for (const memory of fabric.memories) {
      if (memory === undefined) continue;
      memory.updateRegion(0, memory.own.length);
      fabric.change(memory, 'permission', memory.permission);
    }
    for (const link of fabric.links) fabric.change(link, 'losses', link.losses);
    fabric.settle();
  }

  private placeOf(participant: number, what: string): number {
    return placeIn(wordOf(what), participant);
  }

  // --- actions -------------------------------------------------------------------------------

  /** All that may happen next. */
  choices(): Action[] {
    const { scope, fabric, left } = this;
    const choices: Action[] = [];
    const add = (kind: Action['kind'], participant: number, more = 0): void => {
      choices.push({ kind, participant, more });
    };
    for (const link of fabric.links) {
      if (link.operations.length === 0 || this.directLinks.includes(link)) continue;
      if (this.arrivals.has(link.from)) {
        if (this.arrivals.get(link.from)!.links[0] === link) add('arrive', link.from);
        continue;
      }
      add('land', link.from, link.to);
      const isStopped = link.stoppedGuard === link.operations[0].guard;
      if (scope.stops && !isStopped && fabric.isRefused(link)) add('stop', link.from, link.to);
    }
    for (const { id, replica, client, incarnation, isPaused } of this.participants) {
      if (replica === undefined && client === undefined) {
        if (incarnation > 0) add('resume', id);
        continue;
      }
      if (isPaused) add('continue', id);
      else if (this.isFree(id)) add('step', id);
      else if (left.pauses > 0 && allows(scope.pauses, id)) add('pause', id);
      if (this.campaigns[id] > 0 && replica?.role !== 'recovering' && !isPaused)
        add('campaign', id);
      if (left.resumes > 0 && allows(scope.resumes, id)) add('resume', id);
      if (left.leaves > 0 && allows(scope.leaves, id)) add('leave', id);
      if (left.restarts > 0 && allows(scope.restarts, id)) add('restart', id);
      if (left.beats > 0 && !isPaused && allows(scope.beats, id)) add('beat', id);
      if (left.sessions > 0 && allows(scope.sessions, id)) add('session', id);
      if (left.deaths > 0 && !isPaused && allows(scope.deaths, id)) {
        for (let posts = 0; posts < this.postsOf(id); posts++) add('die', id, posts);
      }
    }
    if (left.breaks > 0) {
      for (const [from, to] of scope.breaks!.links) {
        const link = fabric.link(participantOf(from), participantOf(to));
        if (link.operations.length > 0) add('break', link.from, link.to);
      }
    }
    return choices;
  }

  /** These participants, and all that direct links connect with them. All are sets of bits. */
  reachOf(participants: number): number {
    let reach = participants;
    for (let before = 0; before !== reach; ) {
      before = reach;
      for (const { from, to } of this.directLinks) {
        const pair = (1 << from) | (1 << to);
        if ((reach & pair) !== 0) reach |= pair;
      }
    }
    return reach;
  }

  private isFree(id: number): boolean {
    return this.scope.freeSteps?.includes(letterOf(id)) === true;
  }

  /** How many posts and changes of permission the next step of a participant makes. */
  private postsOf(id: number): number {
    const { journal, print } = this;
    const mark = journal.mark;
    const { low, high } = print;
    const memory = this.fabric.memories[id]!;
    memory.diesAfter = STEP_POSTS_MAX;
    this.act({ kind: 'step', participant: id, more: 0 });
    const posts = STEP_POSTS_MAX - memory.diesAfter;
    memory.diesAfter = Number.POSITIVE_INFINITY;
    journal.undo(mark);
    print.low = low;
    print.high = high;
    return posts;
  }

  /** Make it happen. @throws {Violation} if a property, or an assertion of the protocol, does not hold */
  act(action: Action): void {
    try {
      this.perform(action);
      this.react(action);
    } catch (error) {
      if (error instanceof Violation) throw error;
      if (error instanceof InvariantError) throw new Violation(`assertion: ${error.message}`);
      throw new Violation(`error: ${(error as Error).stack}`);
    }
    this.fabric.settle();
  }

  /** Prompt participants that the action concerns take steps until nothing changes any more. */
  private react({ kind, participant, more }: Action): void {
    if (kind === 'land' || kind === 'stop') this.reactToLanding(participant, more);
    else if (kind === 'arrive')
      for (const { to } of this.arrivals.get(participant)!.links) this.rest(to);
    else this.rest(participant);
    const { print } = this;
    // A leader whose log fills up reads rows without end. That is quiet when nothing changes any more.
    for (let isQuiet = false; !isQuiet; ) {
      const { low, high } = print;
      for (const link of this.directLinks) {
        if (link.operations.length === 0) continue;
        this.fabric.land(link, 'lands');
        this.reactToLanding(link.from, link.to);
      }
      this.fabric.settle();
      isQuiet = print.low === low && print.high === high;
    }
  }

  private reactToLanding(poster: number, target: number): void {
    this.rest(target);
    // A poster that is told of nothing has nothing to react to.
    if (this.fabric.memories[poster]?.completions.length !== 0) this.rest(poster);
  }

  private rest(id: number): void {
    const { fabric, print } = this;
    const participant = this.participants[id];
    fabric.settle();
    for (let steps = 0; !participant.isPaused && participant.image && !this.isFree(id); steps++) {
      if (steps > STEPS_MAX) throw new Error(`${letterOf(id)} never rests`);
      const { low, high } = print;
      this.population.step(participant);
      this.population.update(participant);
      fabric.settle();
      if (print.low === low && print.high === high) break;
    }
  }

  private perform({ kind, participant: id, more }: Action): void {
    const participant = this.participants[id];
    switch (kind) {
      case 'step':
        this.population.step(participant);
        break;
      case 'land':
        this.fabric.land(this.fabric.link(id, more), 'lands');
        return;
      case 'stop':
        this.fabric.land(this.fabric.link(id, more), 'stopped');
        return;
      case 'break':
        this.spend('breaks');
        this.fabric.break(this.fabric.link(id, more));
        return;
      case 'arrive':
        this.arrive(id);
        return;
      case 'pause':
        this.spend('pauses');
        this.count(participant, 'isPaused', true, 'isPaused', id);
        return;
      case 'continue':
        this.count(participant, 'isPaused', false, 'isPaused', id);
        return;
      case 'campaign':
        this.count(this.campaigns, id, this.campaigns[id] - 1, 'campaigns');
        participant.replica!.campaign(participant.nowUs);
        break;
      case 'beat':
        this.spend('beats');
        this.count(participant, 'nowUs', participant.nowUs + BEAT_US, 'nowUs', id);
        this.population.step(participant);
        break;
      case 'resume':
        if (participant.replica !== undefined) {
          this.spend('resumes');
          this.end(participant);
        }
        this.population.startReplica(participant, 'kept');
        break;
      case 'leave': {
        this.spend('leaves');
        const snapshot = participant.replica!.leave();
        this.end(participant);
        this.population.startReplica(participant, 'kept', snapshot);
        break;
      }
      case 'die':
        this.spend('deaths');
        this.die(participant, more);
        return;
      case 'restart':
        this.spend('restarts');
        this.end(participant);
        this.population.startReplica(participant, 'lost');
        break;
      case 'session':
        this.spend('sessions');
        this.end(participant);
        this.replaceSession(participant);
        break;
    }
    this.population.update(participant);
  }

  private end(participant: Participant): void {
    if (participant.isPaused) {
      this.count(participant, 'isPaused', false, 'isPaused', participant.id);
    }
    this.population.end(participant);
  }

  private die(participant: Participant, posts: number): void {
    const memory = this.fabric.memories[participant.id]!;
    memory.diesAfter = posts;
    try {
      this.population.step(participant);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
    memory.diesAfter = Number.POSITIVE_INFINITY;
    this.population.update(participant);
    this.end(participant);
  }

  private replaceSession(participant: Participant): void {
    this.fabric.remove(participant.id);
    this.openSession(participant);
  }

  private spend(what: Counted): void {
    this.count(this.left, what, this.left[what] - 1, what);
  }

  /** Change a count that is part of the state. */
  private count<T extends object, K extends keyof T & (string | number)>(
    owner: T,
    key: K,
    value: T[K],
    name: string,
    id = typeof key === 'number' ? key : 0,
  ): void {
    const place = this.placeOf(id, name);
    this.print.remove(place, owner[key]);
    this.print.add(place, value);
    this.journal.set(owner, key, value);
  }

  describe(): string {
    return this.participants
      .map(({ id, replica, client }) => {
        if (replica) return `${letterOf(id)} ${replica.describe()}`;
        return client ? `${letterOf(id)} client, ${client.outstanding} unanswered` : '';
      })
      .filter(Boolean)
      .join('\n');
  }

  /** A text that is the same only for states that agree in every field and every word. Slow: for `verify.ts`. */
  describeWhole(): string {
    const parts: unknown[] = [this.print.low, this.print.high, this.left, this.campaigns];
    for (const { id, incarnation, nowUs, isPaused, image } of this.participants) {
      parts.push(id, incarnation, nowUs, isPaused, image?.describe());
    }
    for (const memory of this.fabric.memories) {
      if (memory) parts.push(memory.own.join(), memory.permission, memory.completions);
    }
    for (const { operations, losses, stoppedGuard } of this.fabric.links) {
      const words = operations.map(({ at, guard, tag, word }) => [at, guard, tag, word]);
      if (losses + operations.length > 0) parts.push(words, losses, stoppedGuard);
    }
    parts.push(this.orders.describe());
    return JSON.stringify(parts);
  }
}

const STEP_POSTS_MAX = 1000;
/** A participant to which nothing happens rests after so many steps. */
const STEPS_MAX = 50;

function allows(allowance: Allowance | undefined, id: number): boolean {
  return allowance?.who.includes(letterOf(id)) === true;
}
