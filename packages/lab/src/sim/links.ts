/**
 * The links of the simulated memory: what is on its way from one participant to another, and when
 * something happens on which of them next.
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
  /** Words that have landed (or been read), from the left or from the right. */
  landed: number;
  isBackward: boolean;
  /** Words that will ever land, if its poster died meanwhile; such an operation never completes. */
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
  /** Losses that its poster has not polled yet: until it has, whatever else it posts is lost too. */
  losses = 0;
  /** Nothing written under this guard lands any more. */
  stoppedGuard = OPEN;

  constructor(
    readonly from: ParticipantId,
    readonly to: ParticipantId,
  ) {}

  /** When something happens here next. */
  dueUs(): number {
    let due = Number.POSITIVE_INFINITY;
    if (this.operations.length > 0) due = this.operations[0].arrivesUs;
    if (this.completions.length > 0) due = Math.min(due, this.completions[0].availableUs);
    return due;
  }
}

/** Links by when something happens on them next: a binary heap that knows each link's place. */
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
