/**
 * A memory whose every choice is an action of the explorer. Posted operations wait on links, one for each ordered pair of
 * participants, until an action lands the first one of a link. It fulfils the contract with these choices:
 *
 * - An operation lands whole; on a link that tears, a write that needs no permission lands in two parts, front first.
 * - A write that is refused leaves its bytes behind, or it is stopped, and then so are all later ones with its guard on
 *   that link: an action chooses.
 * - Successes are reported only where the contract demands it. Completions that wait at the same time are polled in the
 *   order of the peers, and for one peer in the order of posting.
 *
 * Invariant: operations, and the arrays that hold operations and completions, never change. So the journal can put the
 * former ones back.
 */
import {
  type Completion,
  type Memory,
  NO_TAG,
  OPEN,
  type Outcome,
  type ParticipantId,
  RETIRED,
  reportsSuccess,
} from 'tram-multicast/internal/memory/contract.js';
import { Fingerprint, placeIn, wordOf } from './fingerprint.js';
import type { Journal } from './journal.js';

export interface Operation {
  readonly isRead: boolean;
  readonly at: number;
  readonly count: number;
  readonly guard: number;
  readonly tag: number;
  /** What is written; or where words that are read go to, from `intoAt` on. */
  readonly words: Int32Array;
  readonly intoAt: number;
  /** Of all the above, except where a read goes to: that follows from its tag and its place. */
  readonly word: number;
}

/** May the poster be told of it, whatever its outcome is? */
export function mayBeReported({ isRead, guard, tag }: Operation): boolean {
  return isRead || guard !== OPEN || reportsSuccess(tag);
}

/** A completion, and a word that stands for what was read. */
interface Finished extends Completion {
  readonly word: number;
}

/** Something of the memory that has changed in this action, so that its fingerprint is to be made anew. */
interface Part {
  readonly print: Fingerprint;
  isDirty: boolean;
  describe(print: Fingerprint): void;
}

export class Link implements Part {
  operations: readonly Operation[] = [];
  /** Losses that the poster has not polled yet. Until it has, all that it posts is lost too. */
  losses = 0;
  /** No further write with this guard lands. */
  stoppedGuard = OPEN;
  readonly print = new Fingerprint();
  isDirty = false;
  /** Do open writes land in two parts? */
  tears = false;
  private readonly place: number;

  constructor(
    readonly from: ParticipantId,
    readonly to: ParticipantId,
  ) {
    this.place = placeIn(placeIn(wordOf('link'), from), to);
  }

  describe(print: Fingerprint): void {
    const { operations, place } = this;
    print.addWord(placeIn(place, -1), this.losses);
    print.addWord(placeIn(place, -2), this.stoppedGuard);
    for (let i = 0; i < operations.length; i++)
      print.addWord(placeIn(place, i), operations[i].word);
  }
}

/** Thrown in the middle of a step in order to kill the participant there. */
export class Killed extends Error {}

export class ExploredMemory implements Memory, Part {
  readonly completion: Completion = { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
  /** In the order in which they are polled. */
  completions: readonly Finished[] = [];
  permission = OPEN;
  /** The participant dies at its next post or change of permission but so many. */
  diesAfter = Number.POSITIVE_INFINITY;
  readonly print = new Fingerprint();
  isDirty = false;
  /** The region as it was after the last action. */
  private readonly before: Int32Array;
  private readonly place: number;

  constructor(
    readonly self: ParticipantId,
    readonly own: Int32Array,
    private readonly fabric: Fabric,
    /** Words of the region that are left out of the fingerprint. */
    readonly unobserved: readonly number[],
  ) {
    this.before = own.slice();
    this.place = placeIn(wordOf('memory'), self);
  }

  readFence(): void {}

  scratch(words: number): Int32Array {
    return new Int32Array(words);
  }

  permit(guard: number): void {
    this.dieIfDue();
    this.fabric.change(this, 'permission', guard);
  }

  permitted(): number {
    return this.permission;
  }

  write(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    let done = 0;
    if (guard === OPEN && count > 1 && this.fabric.link(this.self, peer).tears) {
      done = count >> 1;
      this.post(peer, false, to, done, guard, NO_TAG, source.slice(from, from + done), 0);
    }
    const rest = source.slice(from + done, from + count);
    this.post(peer, false, to + done, rest.length, guard, tag, rest, 0);
  }

  /** Outcomes come later, as over a network. */
  writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean {
    this.write(peer, to, source, from, count, guard, tag);
    return false;
  }

  writeWord(peer: ParticipantId, to: number, value: number, guard: number, tag: number): void {
    this.post(peer, false, to, 1, guard, tag, Int32Array.of(value), 0);
  }

  read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    this.post(peer, true, at, count, OPEN, tag, into, intoAt);
  }

  private post(
    peer: ParticipantId,
    isRead: boolean,
    at: number,
    count: number,
    guard: number,
    tag: number,
    words: Int32Array,
    intoAt: number,
  ): void {
    this.dieIfDue();
    let word = placeIn(placeIn(placeIn(placeIn(isRead ? 1 : 2, at), count), guard), tag);
    if (!isRead) for (let i = 0; i < count; i++) word = placeIn(word, words[i]);
    this.fabric.post(this.self, peer, { isRead, at, count, guard, tag, words, intoAt, word });
  }

  private dieIfDue(): void {
    if (this.diesAfter-- <= 0) throw new Killed();
  }

  poll(): boolean {
    const { completions, completion } = this;
    if (completions.length === 0) return false;
    const { peer, tag, guard, outcome } = completions[0];
    this.fabric.change(this, 'completions', completions.slice(1));
    if (outcome === 'lost') this.fabric.lossPolled(this.self, peer);
    completion.peer = peer;
    completion.tag = tag;
    completion.guard = guard;
    completion.outcome = outcome;
    return true;
  }

  /** Hints do nothing: the explorer chooses the steps, and the platform reports no end of a participant. */
  markUrgent(): void {}
  wake(): void {}
  hasEnded(): boolean {
    return false;
  }

  describe(print: Fingerprint): void {
    const { place, completions } = this;
    print.addWord(placeIn(place, -1), this.permission);
    for (let i = 0; i < completions.length; i++) {
      const { peer, tag, guard, outcome, word } = completions[i];
      const name = placeIn(placeIn(placeIn(tag, peer), guard), wordOf(outcome));
      print.addWord(placeIn(place, -2 - i), placeIn(name, word));
    }
  }

  /** The participant, or a landing, may have changed these words of its region. */
  updateRegion(from: number, end: number): void {
    const { own, before, place, fabric, unobserved } = this;
    const { journal, print } = fabric;
    for (let i = from; i < end; i++) {
      if (own[i] === before[i]) continue;
      journal.note(own, i, before[i]);
      journal.note(before, i, before[i]);
      if (!unobserved.includes(i)) {
        const at = placeIn(place, i);
        print.removeWord(at, before[i]);
        print.addWord(at, own[i]);
      }
      before[i] = own[i];
    }
  }

  /** Add the whole region to a fingerprint. */
  describeRegion(print: Fingerprint): void {
    const { own, place, unobserved } = this;
    for (let i = 0; i < own.length; i++) {
      if (!unobserved.includes(i)) print.addWord(placeIn(place, i), own[i]);
    }
  }
}

/** How a landing ends. */
export type Landing = 'lands' | 'stopped';

export class Fabric {
  readonly memories: (ExploredMemory | undefined)[];
  readonly links: Link[] = [];
  private readonly dirty: Part[] = [];

  constructor(
    readonly participants: number,
    readonly journal: Journal,
    /** Of the whole state: kept up to date. */
    readonly print: Fingerprint,
    /** Words have been read into a buffer of this participant. */
    private readonly onRead: (
      poster: ParticipantId,
      into: Int32Array,
      at: number,
      count: number,
    ) => void,
  ) {
    this.memories = new Array<ExploredMemory | undefined>(participants).fill(undefined);
    for (let from = 0; from < participants; from++) {
      for (let to = 0; to < participants; to++) this.links.push(new Link(from, to));
    }
  }

  link(from: ParticipantId, to: ParticipantId): Link {
    return this.links[from * this.participants + to];
  }

  /** Change a field of a link or a memory. */
  change<P extends Part & object, K extends keyof P & string>(part: P, key: K, value: P[K]): void {
    this.journal.set(part, key, value);
    if (part.isDirty) return;
    part.isDirty = true;
    this.dirty.push(part);
  }

  /** At the end of an action: bring the fingerprint up to date. */
  settle(): void {
    const { journal, print } = this;
    for (const part of this.dirty) {
      part.isDirty = false;
      print.exclude(part.print);
      journal.note(part.print, 'low', part.print.low);
      journal.note(part.print, 'high', part.print.high);
      part.print.clear();
      part.describe(part.print);
      print.include(part.print);
    }
    this.dirty.length = 0;
  }

  /** A participant begins with an empty region: posts of others that are under way may still land there. */
  start(
    participant: ParticipantId,
    words: number,
    unobserved: readonly number[] = [],
  ): ExploredMemory {
    const before = this.memories[participant];
    const region = new Fingerprint();
    before?.describeRegion(region);
    this.print.exclude(region);
    const memory = new ExploredMemory(participant, new Int32Array(words), this, unobserved);
    region.clear();
    memory.describeRegion(region);
    this.print.include(region);
    this.begin(memory, before === undefined ? OPEN : RETIRED);
    return memory;
  }

  /** A participant that was killed goes on with the region that it left. */
  resume(participant: ParticipantId): ExploredMemory {
    const { own, permission, unobserved } = this.memories[participant]!;
    const memory = new ExploredMemory(participant, own, this, unobserved);
    this.begin(memory, permission);
    return memory;
  }

  private begin(memory: ExploredMemory, permission: number): void {
    const { self } = memory;
    this.end(self);
    this.journal.set(this.memories, self, memory);
    this.change(memory, 'permission', permission);
  }

  /** No operation of this participant's incarnation lands any more, and it gets no completion. */
  private end(participant: ParticipantId): void {
    for (let peer = 0; peer < this.participants; peer++) {
      const link = this.link(participant, peer);
      if (link.operations.length > 0) this.change(link, 'operations', []);
      if (link.losses > 0) this.change(link, 'losses', 0);
      if (link.stoppedGuard !== OPEN) this.change(link, 'stoppedGuard', OPEN);
    }
    const memory = this.memories[participant];
    if (memory === undefined) return;
    const place = this.dirty.indexOf(memory);
    if (place >= 0) this.dirty.splice(place, 1);
    this.print.exclude(memory.print);
  }

  /** A participant has gone with its region. What is posted to it leads nowhere. */
  remove(participant: ParticipantId): void {
    this.end(participant);
    const region = new Fingerprint();
    this.memories[participant]?.describeRegion(region);
    this.print.exclude(region);
    this.journal.set(this.memories, participant, undefined);
    for (let peer = 0; peer < this.participants; peer++) {
      const link = this.link(peer, participant);
      if (link.operations.length > 0) this.change(link, 'operations', []);
    }
  }

  post(from: ParticipantId, to: ParticipantId, operation: Operation): void {
    const target = this.memories[to];
    if (target === undefined) return;
    const { at, count } = operation;
    if (at < 0 || count <= 0 || at + count > target.own.length) {
      throw new RangeError(
        `words ${at} to ${at + count} are not in the region of participant ${to}`,
      );
    }
    const link = this.link(from, to);
    if (link.losses > 0) this.complete(link, operation, 'lost');
    else this.change(link, 'operations', [...link.operations, operation]);
  }

  /** The first operation of a link lands. If it is refused, `landing` says what becomes of its bytes. */
  land(link: Link, landing: Landing): void {
    const operation = link.operations[0];
    const { at, count, words, intoAt, guard, isRead } = operation;
    const { own, unobserved } = this.memories[link.to]!;
    let word = 0;
    const isRefused = this.isRefused(link);
    this.change(link, 'operations', link.operations.slice(1));
    if (isRead) {
      for (let i = 0; i < count; i++) {
        words[intoAt + i] = own[at + i];
        if (!unobserved.includes(at + i)) word = placeIn(word, own[at + i]);
      }
      this.onRead(link.from, words, intoAt, count);
    } else {
      if (isRefused && landing === 'stopped') this.change(link, 'stoppedGuard', guard);
      if (!isRefused || link.stoppedGuard !== guard) {
        for (let i = 0; i < count; i++) own[at + i] = words[i];
        this.memories[link.to]!.updateRegion(at, at + count);
      }
    }
    this.complete(link, operation, isRefused ? 'refused' : 'ok', word);
  }

  /** Would the first operation of the link be refused now? */
  isRefused({ operations: [{ guard }], to }: Link): boolean {
    return guard !== OPEN && guard !== this.memories[to]!.permission;
  }

  /** All operations in flight on this link are lost. */
  break(link: Link): void {
    const { operations } = link;
    this.change(link, 'operations', []);
    for (const operation of operations) this.complete(link, operation, 'lost');
  }

  /** The poster has polled one of its losses. After the last one it has a new connection. */
  lossPolled(from: ParticipantId, to: ParticipantId): void {
    const link = this.link(from, to);
    if (link.losses > 0) this.change(link, 'losses', link.losses - 1);
  }

  private complete(link: Link, { tag, guard }: Operation, outcome: Outcome, word = 0): void {
    const poster = this.memories[link.from];
    if (poster === undefined) return;
    const mustReport = outcome === 'ok' ? reportsSuccess(tag) : guard !== OPEN || tag !== NO_TAG;
    if (!mustReport) return;
    if (outcome === 'lost') this.change(link, 'losses', link.losses + 1);
    const { completions } = poster;
    let place = completions.length;
    while (place > 0 && completions[place - 1].peer > link.to) place--;
    const completion = { peer: link.to, tag, guard, outcome, word };
    this.change(poster, 'completions', completions.toSpliced(place, 0, completion));
  }
}
