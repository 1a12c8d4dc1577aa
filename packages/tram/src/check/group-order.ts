/**
 * The order of one group: the sequence of which the sequence of every member should be a prefix.
 *
 * It is assembled from the stretches of all members, because a snapshot covers deliveries that only
 * other members recorded. Stretches are sorted by where they begin, then longest first. Each is
 * compared with the order so far, and extends it if it is longer. A stretch that contradicts the order
 * becomes a *stray*, with a sequence of its own. Strays are rare, so the checks of the properties
 * mostly read this one order instead of the sequence of every replica.
 *
 * A power cut may undo the end of the order. So the order is assembled era by era. A member that opens
 * an era has recorded everything from its snapshot up to what the group has recovered. The order is
 * therefore cut back to the earliest such snapshot, and assembled again from there. What was cut off is
 * kept as a *former end*: where it differs from the order in the end, it was undone.
 */

import type { History } from './history.js';
import { IntList } from './int-list.js';
import type { Stretch } from './stretch.js';

/** A stretch of the last era that is not part of the group's order. */
export interface Stray {
  readonly replica: number;
  readonly sequence: Int32Array;
  /** False if it may begin anywhere in the order (see `unfounded`). */
  readonly isPlaced: boolean;
}

/** Two members have different messages at the same index. */
export interface Disagreement {
  readonly index: number;
  readonly one: { readonly replica: number; readonly message: number };
  readonly other: { readonly replica: number; readonly message: number };
}

/** The part of a member's sequence that it delivered itself: `[from, end)` of the group's order. */
interface Holding {
  readonly replica: number;
  readonly from: number;
  readonly end: number;
}

/** What the order had from an index on, before an era opened. */
export interface FormerEnd {
  readonly from: number;
  readonly messages: Int32Array;
}

export interface GroupOrder {
  readonly group: number;
  /** Sound deliveries, each message once. */
  readonly order: Int32Array;
  readonly strays: readonly Stray[];
  /** The first one in the order of the first era that has any. */
  readonly disagreement: Disagreement | undefined;
  /** A snapshot that covers more deliveries than the history has of this group. */
  readonly unfounded: { readonly stretch: Stretch; readonly delivered: number } | undefined;
  /** The first delivery of a message that a snapshot of the same incarnation covers. */
  readonly repetition: { readonly replica: number; readonly message: number } | undefined;
  readonly holdings: readonly Holding[];
  /** One for each era that the group has opened after the first. */
  readonly formerEnds: readonly FormerEnd[];
}

export function orderGroups(history: History): GroupOrder[] {
  const scratch: Scratch = {
    positions: new Int32Array(history.messageCount),
    seenIn: new Int32Array(history.messageCount),
    stretches: 0,
  };
  return history.groupNumbers.map((_, group) => {
    const assembly = new Assembly(history, group, scratch);
    const stretches = history.replicasOf[group].flatMap((replica) => history.stretchesOf[replica]);
    const ofEra = history.durabilities.map((): Stretch[] => []);
    for (const stretch of stretches) ofEra[stretch.era].push(stretch);
    for (const [era, present] of ofEra.entries()) {
      if (era === 0) assembly.add(present);
      else if (present.some(({ opensEra }) => opensEra)) assembly.open(present);
    }
    return assembly.result();
  });
}

/** Arrays with one element per message, allocated once. */
interface Scratch {
  /** The index of the message in the group's order, or -1. */
  readonly positions: Int32Array;
  /** The number of the last stretch that contained the message. */
  readonly seenIn: Int32Array;
  stretches: number;
}

/** The order of a group while it is assembled. */
class Assembly {
  private readonly order = new IntList();
  private strays: Stray[] = [];
  private disagreement: Disagreement | undefined;
  private unfounded: GroupOrder['unfounded'];
  private repetition: GroupOrder['repetition'];
  private holdings: Holding[] = [];
  private readonly formerEnds: FormerEnd[] = [];
  /** All positions below were delivered by some member, strays included. */
  private delivered = 0;

  constructor(
    private readonly history: History,
    private readonly group: number,
    private readonly scratch: Scratch,
  ) {
    scratch.positions.fill(-1);
  }

  result(): GroupOrder {
    const { group, order, strays, disagreement, unfounded, repetition, holdings, formerEnds } =
      this;
    return {
      group,
      order: order.view(),
      strays,
      disagreement,
      unfounded,
      repetition,
      holdings,
      formerEnds,
    };
  }

  /** @param stretches  of a later era, which at least one of them opens */
  open(stretches: readonly Stretch[]): void {
    const { order, holdings, scratch } = this;
    const snapshots = stretches.filter(({ opensEra }) => opensEra).map(({ restored }) => restored);
    const from = Math.min(order.length, ...snapshots);
    const messages = order.view().slice(from);
    this.formerEnds.push({ from, messages });
    order.truncate(from);
    for (const message of messages) scratch.positions[message] = -1;
    this.holdings = holdings
      .filter((holding) => holding.from < from)
      .map((holding) => ({ ...holding, end: Math.min(holding.end, from) }));
    this.strays = [];
    this.delivered = from;
    this.add(stretches);
  }

  /** @param stretches  of one era */
  add(stretches: readonly Stretch[]): void {
    const covers = new Covers();
    const candidates = stretches
      .filter((stretch) => stretch.restored > 0 || stretch.delivered.length > 0)
      .map((stretch) => ({
        stretch,
        own: this.soundDeliveries(stretch),
        covered: covers.after(stretch),
      }))
      .sort((a, b) => a.stretch.restored - b.stretch.restored || b.own.length - a.own.length);
    const disagreements = candidates.flatMap(({ stretch, own }) => this.place(stretch, own) ?? []);
    for (const { stretch, own, covered } of candidates) this.findRepetition(stretch, own, covered);
    disagreements.sort((a, b) => a.index - b.index);
    this.disagreement ??= disagreements[0];
  }

  /** Extends the order by a stretch, or makes it a stray. Requires that no stretch that began later was placed. */
  private place(stretch: Stretch, own: Int32Array): Disagreement | undefined {
    const { order, strays, holdings } = this;
    const { positions } = this.scratch;
    const { replica, restored } = stretch;
    if (restored > this.delivered) this.unfounded ??= { stretch, delivered: this.delivered };
    else this.delivered = Math.max(this.delivered, restored + own.length);
    if (restored > order.length) {
      strays.push({ replica, sequence: own, isPlaced: false });
      return undefined;
    }
    const isNew = (message: number) => positions[message] === -1 || positions[message] >= restored;
    const fresh = own.every(isNew) ? own : own.filter(isNew);
    const agreed = Math.min(fresh.length, order.length - restored);
    let index = 0;
    while (index < agreed && order.get(restored + index) === fresh[index]) index++;
    if (index < agreed) {
      const at = restored + index;
      const sequence = concatenate(order.view().subarray(0, restored), fresh);
      strays.push({ replica, sequence, isPlaced: true });
      const one = { replica: replicaHolding({ holdings }, at), message: order.get(at) };
      return { index: at, one, other: { replica, message: fresh[index] } };
    }
    for (; index < fresh.length; index++) {
      positions[fresh[index]] = order.length;
      order.push(fresh[index]);
    }
    holdings.push({ replica, from: restored, end: restored + fresh.length });
    return undefined;
  }

  private findRepetition({ replica }: Stretch, own: Int32Array, covered: number): void {
    const { positions } = this.scratch;
    const isCovered = (message: number): boolean =>
      positions[message] !== -1 && positions[message] < covered;
    const message = own.find(isCovered);
    if (message !== undefined) this.repetition ??= { replica, message };
  }

  /** Deliveries at a destination, each the first of its message in this stretch. */
  private soundDeliveries(stretch: Stretch): Int32Array {
    const { history, group, scratch } = this;
    const all = stretch.delivered.view();
    const { seenIn } = scratch;
    const mark = ++scratch.stretches;
    let kept = 0;
    let copy: Int32Array | undefined;
    for (let i = 0; i < all.length; i++) {
      const message = all[i];
      if (seenIn[message] === mark || !history.isAddressedTo(message, group)) {
        copy ??= all.slice();
        continue;
      }
      seenIn[message] = mark;
      if (copy !== undefined) copy[kept] = message;
      kept++;
    }
    return copy === undefined ? all : copy.subarray(0, kept);
  }
}

/** How many deliveries of its group an incarnation has restored, in the stretches that were asked for so far. */
class Covers {
  private readonly restored = new Map<string, number>();

  after({ replica, incarnation, restored }: Stretch): number {
    const key = `${replica} ${incarnation}`;
    const covered = Math.max(restored, this.restored.get(key) ?? 0);
    this.restored.set(key, covered);
    return covered;
  }
}

/** A replica that delivered both positions itself; else one that has the first from a snapshot. */
export function replicaHolding(
  { holdings }: { readonly holdings: readonly Holding[] },
  first: number,
  second = first,
): number {
  const both = holdings.find(({ from, end }) => from <= first && second < end);
  return (both ?? holdings.find(({ from, end }) => from <= second && second < end)!).replica;
}

function concatenate(head: Int32Array, tail: Int32Array): Int32Array {
  const all = new Int32Array(head.length + tail.length);
  all.set(head);
  all.set(tail, head.length);
  return all;
}
