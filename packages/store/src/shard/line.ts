/**
 * The line in front of the keys of a shard: who has to wait for whom. Everything queues at its place in the order on all its keys, and
 * is *first* once nothing before it is left on any of them. What concerns the whole shard queues on everything.
 *
 * Waits point backwards in the order of the multicast, which is the same in all shards, so they never form a cycle. A command that does
 * not touch a contended key itself must still not pass one that does, if they share another key. docs/store.md has the argument.
 */

import type { Claim } from '../commands/claims.js';
import type { Bytes } from '../resp/reply.js';

interface Place<T> {
  readonly item: T;
  /** Each key once. */
  readonly claim: Claim;
  /** How many queues it is not the first of. */
  waitsFor: number;
  /** The section that it is in; for a claim of the whole shard the one behind it. */
  readonly section: Section<T>;
}

/** What is between two claims of the whole shard. */
interface Section<T> {
  readonly places: Set<Place<T>>;
  readonly queues: Map<Bytes, Place<T>[]>;
  /** The claim of the whole shard before it, and behind it. */
  opener: Place<T> | undefined;
  closer: Place<T> | undefined;
}

export class Line<T> {
  /** In the order of their arrival. */
  readonly #places = new Map<T, Place<T>>();
  #last = newSection<T>();
  #wholeClaims = 0;

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  has(item: T): boolean {
    return this.#places.has(item);
  }

  /** In the order of their arrival. */
  items(): IterableIterator<T> {
    return this.#places.keys();
  }

  isFirst(item: T): boolean {
    return this.#places.get(item)?.waitsFor === 0;
  }

  /** Whether somebody is in line for this key. */
  isClaimed(key: Bytes): boolean {
    // What is not behind a claim of the whole shard is in one section.
    return this.#wholeClaims > 0 || this.#last.queues.has(key);
  }

  /** @returns whether it is the first on all that it claims */
  join(item: T, claim: Claim): boolean {
    const place = claim === undefined ? this.#joinWhole(item) : this.#joinKeys(item, claim);
    this.#places.set(item, place);
    return place.waitsFor === 0;
  }

  #joinKeys(item: T, keys: readonly Bytes[]): Place<T> {
    const section = this.#last;
    const claim = [...new Set(keys)];
    const place = { item, claim, waitsFor: section.opener === undefined ? 0 : 1, section };
    for (const key of claim) {
      const queue = section.queues.get(key);
      if (queue === undefined) {
        section.queues.set(key, [place]);
      } else {
        place.waitsFor++;
        queue.push(place);
      }
    }
    section.places.add(place);
    return place;
  }

  #joinWhole(item: T): Place<T> {
    const before = this.#last;
    const section = newSection<T>();
    const waitsFor = (before.places.size > 0 ? 1 : 0) + (before.opener === undefined ? 0 : 1);
    const place = { item, claim: undefined, waitsFor, section };
    before.closer = place;
    section.opener = place;
    this.#last = section;
    this.#wholeClaims++;
    return place;
  }

  /** @returns those that are first now, in the order of their arrival at each queue */
  leave(item: T): T[] {
    const place = this.#places.get(item);
    if (place === undefined) return [];
    if (place.claim === undefined && place.waitsFor > 0) return this.#leaveAhead(item);
    this.#places.delete(item);
    const first: T[] = [];
    const advance = (next: Place<T> | undefined): void => {
      if (next !== undefined && --next.waitsFor === 0) first.push(next.item);
    };
    const { section, claim } = place;
    if (claim === undefined) {
      this.#wholeClaims--;
      section.opener = undefined;
      for (const next of section.places) advance(next);
      advance(section.closer);
      return first;
    }
    section.places.delete(place);
    for (const key of claim) {
      const queue = section.queues.get(key)!;
      const at = queue.indexOf(place);
      queue.splice(at, 1);
      if (queue.length === 0) section.queues.delete(key);
      else if (at === 0) advance(queue[0]);
    }
    if (section.places.size === 0) advance(section.closer);
    return first;
  }

  /** Takes out a claim of the whole shard that is not first yet: those behind it now wait for those before it. */
  #leaveAhead(item: T): T[] {
    const others = [...this.#places.values()].filter((place) => place.item !== item);
    this.#places.clear();
    this.#last = newSection();
    this.#wholeClaims = 0;
    const isNowFirst = others.map(
      ({ item, claim, waitsFor }) => this.join(item, claim) && waitsFor > 0,
    );
    return others.filter((_, i) => isNowFirst[i]).map((place) => place.item);
  }
}

function newSection<T>(): Section<T> {
  return { places: new Set(), queues: new Map(), opener: undefined, closer: undefined };
}
