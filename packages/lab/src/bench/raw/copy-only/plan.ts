/**
 * What the copy-only loop copies, and where: the rings and reply slots of a cluster of TRAM, at the places that its `Layout`
 * and `ArenaMap` give them. Member 0 leads each group.
 *
 *   client                     leaders
 *   mirror ─┬→ inbox           of every member of the entry group
 *           …  inbox of the leader ─→ its log ─┬→ logs of the other members
 *                                              └→ feeds of all members of each child on the way
 *              feed of the leader  ─→ its log ─┬→ …
 *   reply slot ←─────────────── a reply from each destination
 *
 * These are the copies that `paper/copies.ts` counts. Nothing protects them: no permissions, ballots, checks, sessions or
 * rows. The copies that TRAM makes to deliver a message are not among them.
 *
 * The first word of a record is its *head*. It is stored last, so a reader that finds it finds the whole record. Heads are
 * negative and all other words are not, so nothing that is left over from an earlier lap is taken for a head.
 */
import { ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import { FRAME_WORDS, type Places } from 'tram-multicast/internal/memory/record.js';
import { align, LINE_WORDS } from 'tram-multicast/internal/memory/words.js';
import {
  Layout,
  messageWords,
  REPLY,
  type Sizes,
  SOURCE,
} from 'tram-multicast/internal/protocol/layout.js';
import { contains, Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import type { DestinationSet } from '../../load/destinations.js';

/** The topology and the load, the same as those of the cluster beside which the loop is measured. */
export interface CopyLoad {
  readonly sizes: Sizes;
  readonly parents: readonly number[];
  /** The destinations of messages; clients cycle through them. */
  readonly sets: readonly DestinationSet[];
  readonly clients: number;
  /** Messages that each client keeps in flight. */
  readonly outstanding: number;
  readonly payloadBytes: number;
}

/** The words of a record that tell leaders what to do with it. In logs and feeds they are the same. */
export const RECORD = { head: 0, set: 1, slot: 2, client: 3, serial: 4, contents: 5 } as const;

/** A reply without a payload. */
export const REPLY_WORDS: number = FRAME_WORDS + REPLY.payload;

/** The leader of every group. */
export const LEADER = 0;

/** A mask that wraps nothing. */
const UNWRAPPED = -1;

/** The head of the record with this number, or of the reply to the message with this serial. */
export function headOf(number: number): number {
  return ~(number & 0x7fffffff);
}

export class Plan {
  readonly layout: Layout;
  readonly overlay: Overlay;
  /** All groups, each after its parent. */
  readonly groups: readonly number[];
  /** Words of a message in an inbox, and of an entry in logs and feeds. Both are even. */
  readonly inboxRecordWords: number;
  readonly entryWords: number;
  /** Entries that a group may take in one turn: its log and the feeds of its children have room for them. */
  readonly batchEntries: number;
  /** By set: the entry group and the destinations. */
  readonly entryGroups: readonly number[];
  readonly destinations: readonly (readonly number[])[];
  /** At set * groups + group: is the group a destination, and are there destinations in it or below it? */
  readonly isDestination: Uint8Array;
  readonly isReached: Uint8Array;
  /** What all records are made from, and the word that ends the loop. Both are behind the words of the cluster. */
  readonly template: Places;
  readonly stopAt: number;
  readonly words: number;
  private readonly map: ArenaMap;

  constructor(readonly load: CopyLoad) {
    const { sizes, parents, sets, payloadBytes } = load;
    const layout = new Layout(sizes);
    const overlay = new Overlay(parents);
    this.layout = layout;
    this.overlay = overlay;
    this.map = new ArenaMap(layout, 1, 0, 0, Array(sizes.groups * sizes.replicas).fill(0));
    this.groups = withDescendants(overlay, overlay.root);
    this.inboxRecordWords = FRAME_WORDS + messageWords(payloadBytes);
    this.entryWords = this.inboxRecordWords + SOURCE.words;
    const roomWords = Math.min(layout.logWords / 2, layout.feedWords);
    this.batchEntries = Math.floor(roomWords / this.entryWords);
    this.entryGroups = sets.map(({ low, high }) => overlay.entryGroup(low, high));
    const all = parents.map((_, group) => group);
    this.destinations = sets.map(({ low, high }) =>
      this.groups.filter((group) => contains(low, high, group)),
    );
    const each = (holds: (set: DestinationSet, group: number) => boolean): Uint8Array =>
      Uint8Array.from(sets.flatMap((set) => all.map((group) => (holds(set, group) ? 1 : 0))));
    this.isDestination = each(({ low, high }, group) => contains(low, high, group));
    this.isReached = each(({ low, high }, group) => overlay.reaches(group, low, high));
    this.stopAt = align(this.map.words);
    this.template = { at: this.stopAt + 2 * LINE_WORDS, mask: UNWRAPPED };
    this.words = this.template.at + align(this.inboxRecordWords);
  }

  log(group: number, member: number): Places {
    const { layout } = this;
    const at = this.replica(group, member) + layout.logRing(LEADER, 0);
    return { at, mask: layout.logWords - 1 };
  }

  inbox(group: number, member: number, client: number): Places {
    const { layout } = this;
    const at = this.replica(group, member) + layout.inboxRing(client);
    return { at, mask: layout.inboxWords - 1 };
  }

  /** Where the leader of the parent writes. */
  feed(group: number, member: number): Places {
    const { layout } = this;
    const at = this.replica(group, member) + layout.feedRing(LEADER);
    return { at, mask: layout.feedWords - 1 };
  }

  /** The word that tells how far a feed is written. */
  feedEnd(group: number, member: number): number {
    return this.replica(group, member) + this.layout.feedEnd(LEADER);
  }

  /** A client's own copy of its inboxes at one group. */
  mirror(client: number, group: number): Places {
    const { layout, map } = this;
    const at = map.scratch(layout.clientParticipant(client)) + group * layout.inboxWords;
    return { at, mask: layout.inboxWords - 1 };
  }

  /** Where the leader of a group writes its reply to a client's call. */
  reply(client: number, group: number, slot: number): number {
    const { layout, map } = this;
    const region = map.region(layout.clientParticipant(client));
    return region + layout.reply(layout.replicaParticipant(group, LEADER), slot);
  }

  private replica(group: number, member: number): number {
    return this.map.region(this.layout.replicaParticipant(group, member));
  }
}

function withDescendants(overlay: Overlay, group: number): number[] {
  return [group, ...overlay.children(group).flatMap((child) => withDescendants(overlay, child))];
}
