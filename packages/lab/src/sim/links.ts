/**
 * The links of the simulated memory: the operations in flight from one participant to another, and an agenda that finds
 * the link with the next event. Called by `simulated-memory.ts`.
 *
 * Invariant: the operations of a link arrive, and complete, in the order of posting.
 */
import {
  type Completion,
  OPEN,
  type ParticipantId,
} from 'tram-multicast/internal/memory/contract.js';

export interface Operation {
  isRead: boolean;
  at: number;
  data: Int32Array;
  dataAt: number;
  count: number;
  guard: number;
  tag: number;
  arrivesUs: number;
  /** Words that have landed or have been read so far: the first ones, or the last ones if `isBackward`. */
  landed: number;
  isBackward: boolean;
  /** Less than `count` if the poster died and only a part of the operation lands. Such an operation never completes. */
  landsAtMost: number;
}

export interface Completed extends Completion {
  availableUs: number;
}

export class Link {
  readonly operations: Operation[] = [];
  readonly completions: Completed[] = [];
  /** Added to every delay. */
  slownessUs = 0;
  /** Place in the agenda, or -1. */
  place = -1;
  nextUs = 0;
  lastArrivalUs = 0;
  /** Losses that the poster has not polled yet. Until it has, all that it posts is lost too. */
  losses = 0;
  /** All that is posted is lost. */
  isDown = false;
  /** No further write with this guard lands. */
  stoppedGuard = OPEN;

  constructor(
    readonly from: ParticipantId,
    readonly to: ParticipantId,
  ) {}

  /** The time of the next event on this link. */
  dueUs(): number {
    let due = Number.POSITIVE_INFINITY;
    if (this.operations.length > 0) due = this.operations[0].arrivesUs;
    if (this.completions.length > 0) due = Math.min(due, this.completions[0].availableUs);
    return due;
  }
}

/** Links by the time of their next event: a binary heap. Each link knows its place in it. */
export class Agenda {
  private readonly heap: Link[] = [];

  get first(): Link | undefined {
    return this.heap[0];
  }

  update(link: Link): void {
    const due = link.dueUs();
    if (due === Number.POSITIVE_INFINITY) {
      if (link.place >= 0) this.remove(link);
      return;
    }
    link.nextUs = due;
    if (link.place < 0) {
      link.place = this.heap.length;
      this.heap.push(link);
    }
    this.rise(link);
    this.sink(link);
  }

  private remove(link: Link): void {
    const last = this.heap.pop()!;
    const { place } = link;
    link.place = -1;
    if (last === link) return;
    this.heap[place] = last;
    last.place = place;
    this.rise(last);
    this.sink(last);
  }

  private rise(link: Link): void {
    const { heap } = this;
    while (link.place > 0) {
      const above = heap[(link.place - 1) >> 1];
      if (above.nextUs <= link.nextUs) return;
      this.swap(above, link);
    }
  }

  private sink(link: Link): void {
    const { heap } = this;
    for (;;) {
      const left = link.place * 2 + 1;
      if (left >= heap.length) return;
      let least = heap[left];
      const right = heap[left + 1];
      if (right !== undefined && right.nextUs < least.nextUs) least = right;
      if (link.nextUs <= least.nextUs) return;
      this.swap(link, least);
    }
  }

  private swap(a: Link, b: Link): void {
    const { place } = a;
    a.place = b.place;
    b.place = place;
    this.heap[a.place] = a;
    this.heap[b.place] = b;
  }
}

export function newOperation(
  isRead: boolean,
  at: number,
  data: Int32Array,
  dataAt: number,
  count: number,
  guard: number,
  tag: number,
): Operation {
  return {
    isRead,
    at,
    data,
    dataAt,
    count,
    guard,
    tag,
    arrivesUs: 0,
    landed: 0,
    isBackward: false,
    landsAtMost: count,
  };
}
