/**
 * All offsets in the regions of RamCast, derived from the sizes of a cluster. No other file computes offsets.
 *
 *   a replica's region                              written by
 *   ┌──────────────────────────────────────────┐
 *   │ per group g:  confirmed, delivered       │    g's leader, after the timestamps that they count
 *   │ per client c:  written                   │    c, after the messages that it counts
 *   │ per replica r:  read                     │    r: how many of this leader's timestamps it has taken
 *   │ per replica r:  acked                    │    r, after the acknowledgements that it counts
 *   │ per group g:  acksRead                   │    g's leader: how many of this replica's it has taken
 *   ├──────────────────────────────────────────┤
 *   │ per client c:  inbox[c]   messages       │    c
 *   │ per group g:  stream[g]   timestamps     │    g's leader
 *   │ per replica r:  acks[r]                  │    r; only if replicas acknowledge
 *   └──────────────────────────────────────────┘
 *
 *   a client's region
 *   ┌──────────────────────────────────────────┐
 *   │ kept                                     │    itself, for the next user of its slot
 *   │ per group g:  replied                    │    g's leader, after the replies that it counts
 *   │ per replica r:  freed                    │    r: the position up to which its inbox is free
 *   │ per group g:  reply slots                │    g's leader
 *   └──────────────────────────────────────────┘
 *
 * A count is posted after the records that it covers, so a reader of the count sees complete records (`memory/contract.ts`,
 * promises 1 and 2). Messages and timestamps therefore need no checksums. Counts and positions only grow, modulo 2³². Counts are
 * adjacent, so that polling touches few cache lines. Each ring and each reply slot starts a cache line.
 */
import type { Regions } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { align, pairedWordsFor, wordsFor } from 'tram-multicast/internal/memory/words.js';

export interface RamcastSizes {
  readonly groups: number;
  /** Members of each group: 2f + 1. The first one leads. */
  readonly replicas: number;
  readonly clients: number;
  readonly payloadBytesMax: number;
  readonly replyBytesMax: number;
  /** The least size of each ring: of messages from a client, of timestamps from a leader. */
  readonly inboxBytes: number;
  readonly streamBytes: number;
  /** The most messages that one client has in flight. */
  readonly callsMax: number;
  /** Do replicas acknowledge timestamps, or do leaders count the completions of their writes? See `acks.ts`. */
  readonly acknowledges: boolean;
  /** The first value of every count and position. Zero, except in tests that cross 2³¹ and 2³². */
  readonly firstIndex: number;
}

/** A message in a client's inbox. */
export const MESSAGE = {
  words: 0,
  /** The number of the client, times `callsMax`, plus the number of its reply slot. */
  slot: 1,
  /** Consecutive for each client, over all destinations. */
  sequence: 2,
  destinationsLow: 3,
  destinationsHigh: 4,
  payloadBytes: 5,
  payload: 6,
} as const;

/** Words of a message: an even number, so that all messages begin at even positions, as those of TRAM do. */
export function messageWords(payloadBytes: number): number {
  return MESSAGE.payload + pairedWordsFor(payloadBytes);
}

/** A timestamp in a leader's stream, without a copy of the message. It is a 64-bit floating-point number. */
export const STAMP = { slot: 0, sequence: 1, timestamp: 2, words: 4 } as const;

/** An acknowledgement: its sender has all timestamps of the message. */
export const ACK = { slot: 0, sequence: 1, words: 2 } as const;

/** The two counts of a leader at each replica. */
export const TOLD = { confirmed: 0, delivered: 1, words: 2 } as const;

export const REPLY = { bytes: 0, payload: 1 } as const;

/** In place of a reply's size: the reply exceeds `replyBytesMax` and was not sent. */
export const TOO_LARGE = -1;

/** Kept for the next client of the slot: the next sequence number; by group, the messages written and their end. */
export const KEPT = { sequence: 0, groups: 1 } as const;
export const KEPT_GROUP = { written: 0, end: 1, words: 2 } as const;

/** The leader of each group is its first member, because there are no failures. */
export const LEADER = 0;

const RING_WORDS_MIN = 2 * STAMP.words;

function ringWords(bytes: number, atLeast: number): number {
  let words = RING_WORDS_MIN;
  while (words < atLeast || words * 4 < bytes) words *= 2;
  return words;
}

/** Allocates consecutive places, each at the start of a cache line. */
class Cursor {
  at = 0;
  take(words: number): number {
    const start = this.at;
    this.at += align(words);
    return start;
  }
}

export class RamcastLayout implements Regions {
  readonly messageWordsMax: number;
  readonly inboxWords: number;
  readonly streamWords: number;
  readonly ackWords: number;
  readonly replySlotWords: number;
  readonly replicas: number;
  /** The number of (client, call) pairs: places for messages in flight. */
  readonly slots: number;
  readonly row = 0;
  readonly kept: number;
  readonly replicaRegionWords: number;
  readonly clientRegionWords: number;
  private readonly writtens: number;
  private readonly reads: number;
  private readonly ackeds: number;
  private readonly acksReads: number;
  private readonly inboxes: number;
  private readonly inboxStride: number;
  private readonly streams: number;
  private readonly streamStride: number;
  private readonly ackRings: number;
  private readonly ackStride: number;
  private readonly replieds: number;
  private readonly freeds: number;
  private readonly replies: number;

  constructor(readonly sizes: RamcastSizes) {
    const { groups, replicas, clients, callsMax } = sizes;
    this.replicas = groups * replicas;
    this.slots = clients * callsMax;
    this.messageWordsMax = messageWords(sizes.payloadBytesMax);
    // Replicas report freed space when it is a quarter of the ring: the largest message must fit beside that.
    this.inboxWords = ringWords(sizes.inboxBytes, 2 * this.messageWordsMax);
    this.streamWords = ringWords(sizes.streamBytes, RING_WORDS_MIN);
    this.replySlotWords = align(FRAME_WORDS + REPLY.payload + wordsFor(sizes.replyBytesMax));
    this.inboxStride = align(this.inboxWords);
    this.streamStride = align(this.streamWords);
    this.ackWords = this.streamWords;
    this.ackStride = sizes.acknowledges ? align(this.ackWords) : 0;

    const region = new Cursor();
    region.take(groups * TOLD.words);
    this.writtens = region.take(clients);
    this.reads = region.take(this.replicas);
    this.ackeds = region.take(this.replicas);
    this.acksReads = region.take(groups);
    this.inboxes = region.take(clients * this.inboxStride);
    this.streams = region.take(groups * this.streamStride);
    this.ackRings = region.take(this.replicas * this.ackStride);
    this.replicaRegionWords = region.at;

    const client = new Cursor();
    this.kept = client.take(KEPT.groups + groups * KEPT_GROUP.words);
    this.replieds = client.take(groups);
    this.freeds = client.take(this.replicas);
    this.replies = client.take(groups * callsMax * this.replySlotWords);
    this.clientRegionWords = client.at;
  }

  told(group: number): number {
    return group * TOLD.words;
  }

  written(client: number): number {
    return this.writtens + client;
  }

  read(replica: ParticipantId): number {
    return this.reads + replica;
  }

  acked(replica: ParticipantId): number {
    return this.ackeds + replica;
  }

  acksRead(group: number): number {
    return this.acksReads + group;
  }

  inbox(client: number): number {
    return this.inboxes + client * this.inboxStride;
  }

  stream(group: number): number {
    return this.streams + group * this.streamStride;
  }

  acks(replica: ParticipantId): number {
    return this.ackRings + replica * this.ackStride;
  }

  keptOf(group: number): number {
    return this.kept + KEPT.groups + group * KEPT_GROUP.words;
  }

  replied(group: number): number {
    return this.replieds + group;
  }

  freed(replica: ParticipantId): number {
    return this.freeds + replica;
  }

  reply(group: number, call: number): number {
    return this.replies + (group * this.sizes.callsMax + call) * this.replySlotWords;
  }

  /** Participants are numbered: the replicas of group 0, of group 1, …, then the clients. */
  replicaParticipant(group: number, member: number): ParticipantId {
    return group * this.sizes.replicas + member;
  }

  leaderParticipant(group: number): ParticipantId {
    return this.replicaParticipant(group, LEADER);
  }

  clientParticipant(client: number): ParticipantId {
    return this.replicas + client;
  }

  /** Clients, leaders and replicas that acknowledge keep a mirror of each ring that they write. */
  scratchWords(participant: ParticipantId): number {
    const { groups, replicas, acknowledges } = this.sizes;
    if (participant >= this.replicas) return groups * this.inboxWords;
    const ackWords = acknowledges ? groups * this.ackWords : 0;
    return ackWords + (participant % replicas === LEADER ? groups * this.streamWords : 0);
  }
}
