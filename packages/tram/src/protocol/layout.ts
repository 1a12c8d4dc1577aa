/**
 * Every offset in every region, derived from the sizes of a cluster. Nothing else computes one.
 *
 *   a replica's region                              written by
 *   ┌──────────────────────────────────────────┐
 *   │ row                                      │    itself; all others read it
 *   │ kept                                     │    itself, for its next incarnation
 *   │ per member j of its group: notification  │    j, after it wrote one of the slots below
 *   │ per client c:  notification              │    c, after it wrote into its inbox
 *   ├──────────────────────────────────────────┤
 *   │ per member j of its group:               │
 *   │   leadRequest[j]      slot               │    j, when it wants to lead
 *   │   leadGrant[j]        slot               │    j, answering this replica's request
 *   │   snapshotRequest[j]  slot               │    j, when it has been left behind
 *   │   snapshotChunk[j]    slot               │    j, answering this replica's request
 *   │   durable[j]          slot               │    j, when it follows this replica
 *   │   log[j][0], log[j][1]                   │    j, when it leads (guarded by the permission)
 *   │     ┌────────┬──────┬─────────┬─────┬──┐ │
 *   │     │ marker │ base │ decided │ key │ …│ │
 *   │     └────────┴──────┴─────────┴─────┴──┘ │
 *   ├──────────────────────────────────────────┤
 *   │ per client c:  inbox[c]                  │    c
 *   │     ┌─────────┬───────┬────────┐         │
 *   │     │ session │ nudge │ ring … │         │
 *   │     └─────────┴───────┴────────┘         │
 *   ├──────────────────────────────────────────┤
 *   │ per member j of the parent group:        │
 *   │   feed[j]    start (slot), end,          │    j, when it leads the parent
 *   │              gates (slot), ring …        │
 *   ├──────────────────────────────────────────┤
 *   │ per group g, per member j of it:         │
 *   │   settled[g][j]  slot                    │    j, when it leads a child of this group
 *   └──────────────────────────────────────────┘
 *
 *   a client's region
 *   ┌──────────────────────────────────────────┐
 *   │ per replica r:  notification             │    r, after it wrote replies
 *   │ per replica r:  reply slots              │    r
 *   └──────────────────────────────────────────┘
 *
 * Control words (kept, marker, base, decided, key, session, nudge, end) and notifications are
 * single words, so they can't tear. Notifications lie side by side, so that a look at a few cache lines tells where
 * there is something new. Each control area and each slot starts a cache line of its own.
 *
 * Invariant: each word of a region only ever has one writer.
 */
import { FRAME_WORDS, type Salt } from '../memory/record.js';
import { align, LINE_WORDS, pairedWordsFor, wordsFor } from '../memory/words.js';
import { WIDE } from './wide.js';

export { NO_SALT, type Salt } from '../memory/record.js';

/** The sizes of a cluster; everything else here follows from them. */
export interface Sizes {
  readonly groups: number;
  /** Members of each group: 2f + 1. */
  readonly replicas: number;
  /** How many clients may be registered at one time. */
  readonly clients: number;
  readonly payloadBytesMax: number;
  readonly replyBytesMax: number;
  /** At least this much for each ring: a log, a client's inbox, a feed from the parent. */
  readonly logBytes: number;
  readonly inboxBytes: number;
  readonly feedBytes: number;
  /** How many messages of one client may be unanswered at one time. */
  readonly callsMax: number;
  readonly snapshotChunkBytes: number;
  /**
   * Where every count starts (log index, message number, ring position). Zero, except in tests that
   * carry the counts across 2³¹ and 2³². Even.
   */
  readonly firstIndex: number;
  /** Known only to the cluster's own participants. */
  readonly salt: Salt;
}

/** A message as it travels: the same words in a client's inbox, in logs and in feeds. */
export const MESSAGE = {
  /** Which of the client slots; the call slot, which names the place for replies, is in the upper half. */
  client: 0,
  session: 1,
  /** Consecutive for one session and entry group; this is the low word. */
  number: 2,
  /** The entry group and the upper part of the number: see `seriesOf`. */
  series: 3,
  destinationsLow: 4,
  destinationsHigh: 5,
  /** Or `CANCEL`, or `MARK`. */
  payloadBytes: 6,
  payload: 7,
} as const;

const ENTRY_GROUP_BITS = 8;

/**
 * Messages of one session are numbered in series of 2³²: the lowest byte of a series is the entry group, and the rest is
 * the part of the number that exceeds 32 bits. So session, series and the low word of the number name a message, however
 * many the session sends.
 */
export function seriesOf(entryGroup: number, number: number): number {
  return (Math.floor(number / WIDE) << ENTRY_GROUP_BITS) | entryGroup;
}

export function entryGroupOf(series: number): number {
  return series & ((1 << ENTRY_GROUP_BITS) - 1);
}

export function numberIn(series: number, low: number): number {
  return (series >>> ENTRY_GROUP_BITS) * WIDE + (low >>> 0);
}

/** `c12:3.456`: the client's session, the entry group, and the number in that group. */
export function messageId(message: {
  readonly session: number;
  readonly entryGroup: number;
  readonly number: number;
}): string {
  return `c${message.session}:${message.entryGroup}.${message.number}`;
}

/**
 * In `payloadBytes`: the message is a *cancel*. It has no payload, and is never delivered to the service. Its client no
 * longer waits for the reply to the message before it in the same call slot, which went to the same destinations.
 */
export const CANCEL = 1 << 30;

/**
 * In `payloadBytes`: the message is a *mark*. It has no payload, and is never delivered to the service. It goes to all
 * groups, and divides the order of each into what comes before it and after it. A client sends one for a backup. The leader
 * of the root proposes numbered ones for journals (recoverable.ts).
 */
export const MARK = 1 << 29;

/** In place of the client, for a numbered mark. Its number is in `session`, and in `number` that of a mark which is complete. */
export const NO_CLIENT = -1;

/** The number of a mark; 0 if the message that begins at `at` is no numbered mark. */
export function markNumberIn(words: Int32Array, at: number): number {
  const isNumbered =
    (words[at + MESSAGE.payloadBytes] & MARK) !== 0 && words[at + MESSAGE.client] === NO_CLIENT;
  return isNumbered ? words[at + MESSAGE.session] : 0;
}

/** What `parentIndexIn` says of an entry that has not come from the parent. */
export const NOT_FROM_PARENT = -1;

/** The index in the parent's log of the entry whose body of `count` words lies at `at`. */
export function parentIndexIn(words: Int32Array, at: number, count: number): number {
  const source = at + count - SOURCE.words;
  if (words[source + SOURCE.id] !== PARENT) return NOT_FROM_PARENT;
  return words[source + SOURCE.nextPosition] * WIDE + (words[source + SOURCE.number] >>> 0);
}

/**
 * Words of a message with so many bytes of payload. The payload is filled up with zeros to a multiple of eight bytes. So
 * the records of messages and entries have an even number of words, and all of them begin at an even position: copies
 * are fast and tear no word (`copyPart`).
 */
export function messageWords(payloadBytes: number): number {
  return MESSAGE.payload + pairedWordsFor(payloadBytes);
}

/** What follows the message in the body of a log entry: where it came from. */
export const SOURCE = {
  /** A client slot, `PARENT` or `OWN`. */
  id: 0,
  /** The client's number, its index in the parent's log, or the kind of an own entry. */
  number: 1,
  /** Where in the client's inbox its next message starts; of the parent's index, the upper half. */
  nextPosition: 2,
  /** Of the message: a child that takes the entry need not hash the message again. */
  hash: 3,
  words: 4,
} as const;

/** Where in a log entry of so many words, frame included, its source lies. */
export function sourceIn(entryWords: number): number {
  return entryWords - 1 - SOURCE.words;
}

export const PARENT = -1;

/**
 * The source of an *own entry*: the leader has proposed it for its own group. In place of a message it has a kind, one of
 * `OWN_KIND`, and two words, those of `MESSAGE.client` and `MESSAGE.session`. It has no payload and, except for marks, no
 * destinations, so it goes to no child, and no reader of messages takes it for one.
 */
export const OWN = -2;

export const OWN_KIND = {
  /** Ordered time advances. Its words: microseconds since 1970, low and high. */
  tick: 1,
  /** A session has ended: no client takes its replies any more. Its words: the client slot and the session. */
  sessionEnded: 2,
  /** A numbered mark, see `MARK`. It is the only one that has destinations. */
  mark: 3,
} as const;

/** Every layout has room for it: it is as long as an entry without payload. */
export const OWN_ENTRY_WORDS: number = FRAME_WORDS + messageWords(0) + SOURCE.words;

/** The words of a replica's published row; its epoch is the incarnation. Wide counts take two words: low, high. */
export const ROW = {
  heartbeat: 0,
  state: 1,
  promised: 2,
  logBallot: 3,
  ledBallot: 4,
  delivered: 5,
  fromParent: 7,
  holdAt: 9,
  /** The ballot that it has promised, if it hears from the member that pursues it. */
  hears: 11,
  /** The first index that it can send to members that lag, or EMPTY (backlog.ts). */
  backlog: 12,
  /** The member that it trusts as leader, or -1. */
  trusts: 14,
  /** While its log lacks entries that it has yet to deliver: the first index that the log has; otherwise 0. */
  needs: 15,
  /** Of the parent's log: below it, all that goes to this group is settled (settling.ts). */
  settledFromParent: 17,
  /** Entries below this index are durable on its host; 0 without a journal. */
  durable: 19,
  /** Of the parent's log: below it, all that goes to this group is durable in this group (recoverable.ts). */
  durableFromParent: 21,
  /** Entries below this index are stable, as far as it knows (recoverable.ts). */
  stable: 23,
  /** The last mark that its host holds, and one that f+1 members of each group in its subtree hold (recoverable.ts). */
  heldMark: 25,
  subtreeMark: 26,
  /** Does a journal of its group or of a group below wait for marks? */
  awaitsMark: 27,
  words: 28,
} as const;

export const ROW_STATE = {
  normal: 1,
  recovering: 2,
  /** Normal, but it hears from too few members to lead them. */
  alone: 3,
} as const;

/** What a replica keeps for its next incarnation: see leadership/kept.ts. */
export const KEPT = {
  firstKey: 0,
  member: 1,
  promised: 2,
  keys: 3,
  era: 4,
  words: 5,
} as const;

export const REQUEST = { ballot: 0, incarnation: 1, words: 2 } as const;

export const GRANT = {
  ballot: 0,
  granted: 1,
  promised: 2,
  /** The granter's incarnation, and the candidate's as the granter knows it. */
  incarnation: 3,
  candidateIncarnation: 4,
  logBallot: 5,
  logWriter: 6,
  logRing: 7,
  basePosition: 8,
  endPosition: 9,
  endIndex: 10,
  /** What the granter's memory permits now. */
  key: 12,
  words: 13,
} as const;

/** `next` is the index that the fetcher delivers next. */
export const SNAPSHOT_REQUEST = { nonce: 0, chunk: 1, next: 2, words: 4 } as const;

/**
 * Part of a snapshot or of a backlog. A chunk names the request it answers, so that an answer to an earlier incarnation
 * is not mistaken for it.
 */
export const CHUNK = {
  fetcherIncarnation: 0,
  nonce: 1,
  chunk: 2,
  /** Of all chunks together, in the last one; 0 in the others. */
  totalWords: 3,
  /** How far the fetcher has delivered once it has all chunks. */
  index: 4,
  /** The ballot of the entries, or NO_BALLOT if this is a snapshot. */
  ballot: 6,
  data: 7,
} as const;

/** A reply. Its number is that of the record. */
export const REPLY = {
  /** The series of the message that it answers. */
  series: 0,
  /** One of `OUTCOME`. */
  outcome: 1,
  bytes: 2,
  /** The reply, or what the service threw. Absent if the reply is too large. */
  payload: 3,
} as const;

/**
 * What a group made of a message: a reply, one that exceeds `replyBytesMax`, the service failed, or the reply comes later,
 * in the same place.
 */
export const OUTCOME = { ok: 0, tooLarge: 1, failed: 2, deferred: 3 } as const;

/**
 * Where a reader of a feed may begin: the index in the parent's log, and the position in the feed. It is meant for one
 * incarnation of the reader: the entries that were written for an earlier one may be gone.
 */
export const FEED_START = { epoch: 0, incarnation: 1, index: 2, position: 4, words: 5 } as const;

/** What a group tells its children: its gate under strict order (settling.ts), its recoverable index with a journal. */
export const FEED_GATES = { strict: 0, recoverable: 2, words: 4 } as const;

/** What a group has settled of the entries from its parent, as told to the parent (settling.ts). */
export const SETTLED = { index: 0, words: 2 } as const;

/** How far a member's host has made the log durable, as told to the member that it follows (journaling.ts). */
export const DURABLE = { index: 0, words: 2 } as const;

/** Where, after the end of a feed, its gates begin. They share a cache line, so one write tells all. */
export const GATES_AFTER_END = 2;

export const LOG_CONTROL = { marker: 0, base: 1, decided: 2, key: 3, words: 4 } as const;
export const INBOX_CONTROL = { session: 0, nudge: 1, words: 2 } as const;

export const RINGS_PER_WRITER = 2;

const slot = (bodyWords: number): number => align(bodyWords + FRAME_WORDS);

function ringWords(bytes: number, atLeast: number): number {
  let words = LINE_WORDS;
  while (words < atLeast || words * 4 < bytes) words *= 2;
  return words;
}

/** Assigns consecutive places. */
class Cursor {
  at = 0;
  take(words: number): number {
    const start = this.at;
    this.at += words;
    return start;
  }
}

export class Layout {
  readonly messageWordsMax: number;
  readonly inboxRecordWordsMax: number;
  readonly entryWordsMax: number;
  readonly logWords: number;
  readonly inboxWords: number;
  readonly feedWords: number;
  readonly chunkWords: number;
  readonly replySlotWords: number;

  readonly row: number;
  readonly kept: number;
  private readonly memberNotifications: number;
  private readonly clientNotifications: number;
  readonly replicaRegionWords: number;
  readonly clientRegionWords: number;

  private readonly members: number;
  private readonly memberStride: number;
  private readonly inboxes: number;
  private readonly inboxStride: number;
  private readonly feeds: number;
  private readonly feedStride: number;
  private readonly settledSlots: number;
  private readonly settledStride: number;
  private readonly firstReply: number;
  private readonly replyStride: number;

  private readonly offsets: {
    leadRequest: number;
    leadGrant: number;
    snapshotRequest: number;
    snapshotChunk: number;
    durable: number;
    log: number;
  };
  private readonly logStride: number;

  constructor(readonly sizes: Sizes) {
    this.messageWordsMax = messageWords(sizes.payloadBytesMax);
    this.inboxRecordWordsMax = FRAME_WORDS + this.messageWordsMax;
    this.entryWordsMax = FRAME_WORDS + this.messageWordsMax + SOURCE.words;
    // The log never drops its last decided entry, so it must hold that one and the next.
    this.logWords = ringWords(sizes.logBytes, 2 * this.entryWordsMax);
    this.inboxWords = ringWords(sizes.inboxBytes, this.inboxRecordWordsMax);
    this.feedWords = ringWords(sizes.feedBytes, this.entryWordsMax);
    this.chunkWords = wordsFor(sizes.snapshotChunkBytes);
    this.replySlotWords = slot(REPLY.payload + wordsFor(sizes.replyBytesMax));

    const member = new Cursor();
    this.logStride = align(LOG_CONTROL.words) + this.logWords;
    this.offsets = {
      leadRequest: member.take(slot(REQUEST.words)),
      leadGrant: member.take(slot(GRANT.words)),
      snapshotRequest: member.take(slot(SNAPSHOT_REQUEST.words)),
      snapshotChunk: member.take(slot(CHUNK.data + this.chunkWords)),
      durable: member.take(slot(DURABLE.words)),
      log: member.take(RINGS_PER_WRITER * this.logStride),
    };
    this.memberStride = member.at;
    this.inboxStride = align(INBOX_CONTROL.words) + this.inboxWords;
    this.feedStride = slot(FEED_START.words) + LINE_WORDS + this.feedWords;

    const region = new Cursor();
    this.row = region.take(slot(ROW.words));
    this.kept = region.take(align(KEPT.words));
    this.memberNotifications = region.take(align(sizes.replicas));
    this.clientNotifications = region.take(align(sizes.clients));
    this.members = region.take(sizes.replicas * this.memberStride);
    this.inboxes = region.take(sizes.clients * this.inboxStride);
    this.feeds = region.take(sizes.replicas * this.feedStride);
    this.settledStride = slot(SETTLED.words);
    this.settledSlots = region.take(sizes.groups * sizes.replicas * this.settledStride);
    this.replicaRegionWords = region.at;

    const replicas = sizes.groups * sizes.replicas;
    this.replyStride = sizes.callsMax * this.replySlotWords;
    this.firstReply = align(replicas);
    this.clientRegionWords = this.firstReply + replicas * this.replyStride;
  }

  /** Changes whenever `member` has written one of its slots: requests, grants, snapshots. */
  memberNotification(member: number): number {
    return this.memberNotifications + member;
  }

  /** Changes whenever `client` has written into its inbox. */
  clientNotification(client: number): number {
    return this.clientNotifications + client;
  }

  leadRequest(member: number): number {
    return this.members + member * this.memberStride + this.offsets.leadRequest;
  }

  leadGrant(member: number): number {
    return this.members + member * this.memberStride + this.offsets.leadGrant;
  }

  snapshotRequest(member: number): number {
    return this.members + member * this.memberStride + this.offsets.snapshotRequest;
  }

  snapshotChunk(member: number): number {
    return this.members + member * this.memberStride + this.offsets.snapshotChunk;
  }

  durable(member: number): number {
    return this.members + member * this.memberStride + this.offsets.durable;
  }

  logControl(writer: number, ringIndex: number): number {
    const logs = this.members + writer * this.memberStride + this.offsets.log;
    return logs + ringIndex * this.logStride;
  }

  /** The salt of a group's log: an entry of another group's log, copied to the same place, fails its check here. */
  logSalt(group: number): Salt {
    const { check, tail } = this.sizes.salt;
    return { check: check ^ (group + 1), tail };
  }

  logRing(writer: number, ringIndex: number): number {
    return this.logControl(writer, ringIndex) + align(LOG_CONTROL.words);
  }

  inboxControl(client: number): number {
    return this.inboxes + client * this.inboxStride;
  }

  inboxRing(client: number): number {
    return this.inboxControl(client) + align(INBOX_CONTROL.words);
  }

  feedStart(parentMember: number): number {
    return this.feeds + parentMember * this.feedStride;
  }

  /** One word: the position up to which the feed is written. */
  feedEnd(parentMember: number): number {
    return this.feedStart(parentMember) + slot(FEED_START.words);
  }

  feedGates(parentMember: number): number {
    return this.feedEnd(parentMember) + GATES_AFTER_END;
  }

  feedRing(parentMember: number): number {
    return this.feedEnd(parentMember) + LINE_WORDS;
  }

  /** Where `member` of a child group tells how much it has settled. */
  settled(childGroup: number, member: number): number {
    return this.settledSlots + (childGroup * this.sizes.replicas + member) * this.settledStride;
  }

  /** In a client's region: changes whenever `replica` has written replies. */
  replyNotification(replica: number): number {
    return replica;
  }

  reply(replica: number, call: number): number {
    return this.firstReply + replica * this.replyStride + call * this.replySlotWords;
  }

  /** Participants are numbered: the replicas of group 0, of group 1, …, then the clients. */
  replicaParticipant(group: number, member: number): number {
    return group * this.sizes.replicas + member;
  }

  clientParticipant(client: number): number {
    return this.sizes.groups * this.sizes.replicas + client;
  }

  /** A client keeps a copy of what it wrote to each group. */
  scratchWords(participant: number): number {
    const { groups, replicas } = this.sizes;
    return participant >= groups * replicas ? groups * this.inboxWords : 0;
  }
}
