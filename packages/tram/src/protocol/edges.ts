/**
 * Everything that a replica or a client gets from outside. Nothing in `protocol/` reaches past these: there is no clock,
 * no I/O and no randomness. That is why the same code runs in the simulator and in production.
 */
import type { Memory } from '../memory/contract.js';
import type { Layout } from './layout.js';
import type { Overlay } from './overlay.js';

/** @internal A message as the application sees it. The object and its payload are reused after the call. */
export interface Delivery {
  readonly group: number;
  readonly client: number;
  readonly session: number;
  /** Consecutive for one session and entry group. */
  readonly number: number;
  readonly entryGroup: number;
  readonly destinationsLow: number;
  readonly destinationsHigh: number;
  readonly payload: Uint8Array;
}

/** Instead of a reply: it comes later. */
export const DEFERRED = Symbol('deferred');
export type Deferred = typeof DEFERRED;

/** @internal Takes the replies to messages that wait for one. Valid during the calls that it is passed to. */
export interface Replier {
  /** False if no message with this id waits. */
  reply(id: string, reply: Uint8Array | undefined): boolean;
}

/** @internal The replicated service. Deterministic: the same deliveries give the same replies, failures and snapshots. */
export interface Application {
  /** How often its group's leader proposes ticks; without it, never. */
  readonly tickEveryUs?: number | undefined;
  /**
   * If it returns `DEFERRED`, the message waits for its reply. If it throws, the message still counts as delivered, and
   * its client is told that it failed.
   */
  deliver(message: Delivery, replier: Replier): Uint8Array | Deferred | undefined;
  /** Needed only if it defers: a message waits no longer, because its client has given it up or has ended. */
  abandoned?(id: string, replier: Replier): void;
  /** Ordered time has advanced to so many microseconds since 1970. If it throws, the tick still counts. */
  tick(orderedUs: number, replier: Replier): void;
  /**
   * The state as it is at the time of the call: at once, or in pieces. The first piece is asked for at once. Deliveries go
   * on between the others, and none of them may change what the pieces hold. A piece is copied before the next is asked for.
   * If this or a piece throws, a member that has asked for the snapshot asks another member, and one that stops leaves none.
   */
  snapshot(): Uint8Array | Iterable<Uint8Array>;
  /** If it throws, the replica stops: its state may be neither the old one nor the new one. */
  restore(snapshot: Uint8Array, orderedUs: number): void;
}

/** @internal Steps of the protocol that are counted. The simulator demands that every one of them is taken. */
export const TRANSITIONS = [
  'campaigned',
  'granted',
  'refused',
  'answered again',
  'preempted',
  'attempt refused',
  'grant dropped on re-check',
  'adopted own log',
  'adopted a peer log',
  'adoption failed',
  'adopted log started later',
  'led',
  'late member installed',
  'write refused',
  'write lost',
  'outbid a higher promise',
  'stepped down',
  'log truncated',
  'mark delivered',
  'mark proposed',
  'backlog kept',
  'backlog fetched',
  'log full',
  'feed full',
  'feed written again',
  'owed entries posted',
  'stale feed skipped',
  'left behind',
  'snapshot served',
  'snapshot restored',
  'resumed',
  'resumed from a left snapshot',
  'recovering',
  'recovery found a leader',
  'recovered',
  'decided index published idle',
  'ordered time set',
  'ordered time advanced',
  'session replaced',
  'replies sent again',
  'reply held',
  'held reply sent',
  'journal full',
  'journal left out',
  'new journal waits',
  'journal replaced',
  'durable index told',
  'recoverable index told',
  'service failed',
  'reply deferred',
  'call cancelled',
  'session ended',
  'client resent',
  'client nudged',
  'client back-pressured',
] as const;

/** @internal */
export type Transition = (typeof TRANSITIONS)[number];

/** @internal Is told what happens. It must not act on it. */
export interface Observer {
  transition(what: Transition): void;
  led(ballot: number): void;
  /** This group ordered a message that is not addressed to it. */
  relayed(message: Delivery): void;
  /** The state is now the one after the group's first `count` deliveries. */
  restored(fromMember: number, count: number): void;
  /** The service threw this instead of delivering a message. */
  failed(error: unknown): void;
  /** The service threw this instead of taking a snapshot for another member. */
  snapshotFailed(error: unknown): void;
}

/** @internal */
export const NO_OBSERVER: Observer = {
  transition: () => undefined,
  led: () => undefined,
  relayed: () => undefined,
  restored: () => undefined,
  failed: () => undefined,
  snapshotFailed: () => undefined,
};

export const DURABILITIES = ['none', 'everySecond', 'always'] as const;
export type Durability = (typeof DURABILITIES)[number];

/**
 * @internal The part of a host's journal that belongs to one group. Members of the group on the same host share it: each
 * entry is written once. Decided entries are final, so it does not matter which member hands them over.
 */
export interface GroupJournal {
  /** With `always`: replies wait until their entries are recoverable. */
  readonly isAwaited: boolean;
  /** The index of the entry that it takes next. */
  readonly next: number;
  /** Entries below this index are durable on this host. Never goes back, and wakes the host's replicas when it advances. */
  readonly durable: number;
  /** Has it grown so much that it wants a snapshot? False while it takes one. */
  readonly wantsSnapshot: boolean;
  /**
   * Has it left out entries, so that it goes on only from a snapshot right after a mark? False while it takes one, and if it
   * can't begin another one now.
   */
  readonly wantsMark: boolean;
  /** Is the disk behind, so that a snapshot would delay entries of other groups? */
  readonly isBusy: boolean;
  /** Does it want a mark, or does a snapshot at a mark wait until that is complete? */
  readonly awaitsMark: boolean;
  /** The last mark that this host holds; 0 if there is none. Only grows. */
  readonly heldMark: number;
  /**
   * Is there room for so many words of entries; and of a piece of a snapshot? If not, ask again until there is: what becomes
   * free is kept for those that have asked.
   */
  hasRoom(words: number): boolean;
  hasRoomForPiece(words: number): boolean;
  /**
   * Take delivered entries, which lie side by side as in the log: `words` words from `at` on, the first one with this index.
   * Those below `next` are ignored. There must be room.
   */
  add(index: number, entries: Int32Array, at: number, words: number): void;
  /** Entries from `next` on will not come: go on from a snapshot. Until one begins, entries that come are ignored. */
  leaveOut(): void;
  /**
   * Take a snapshot, in pieces, of the state before the entry `index`; entries may be added between the pieces. From now
   * on, `next` is at least `index`. One snapshot at a time. There must be room for each piece.
   * @param marks  how many marks the state has seen
   * @param isAtMark  is the entry before `index` a mark?
   */
  beginSnapshot(index: number, marks: number, isAtMark: boolean): void;
  addPiece(words: Int32Array): void;
  endSnapshot(): void;
  /** The service has failed to go on with the snapshot: forget it. */
  dropSnapshot(): void;
  /** No recovery will cut entries below this index, or ask for them: a snapshot at or below it may replace what is older. */
  stable(index: number): void;
  /** The entry before `index`, which was added or left out, is this mark. */
  mark(index: number, number: number): void;
  /** All groups hold this mark: a snapshot at it or at an earlier one may replace what is older. */
  complete(number: number): void;
}

/** @internal All in microseconds of the injected clock. */
export interface Timing {
  /** The time between two heartbeats of a replica, and between two reads of another's. */
  readonly heartbeatUs: number;
  /** How long a replica that has nothing to do may rest between two steps. */
  readonly restUs: number;
  /**
   * For at most so long after a full step does a leader take quick ones (replica.ts). A follower takes them until rows are due.
   * 0: all steps of all replicas are full.
   */
  readonly quickUs: number;
  readonly suspectAfterUs: number;
  /** How long to wait for an answer before asking again. */
  readonly askAgainUs: number;
  readonly backOffUs: number;
  /** How long a client waits for replies before it writes its messages again. */
  readonly resendAfterUs: number;
}

/** @internal How much a leader does at a time, and for those that lag. */
export interface Pace {
  /** How many entries one step takes, so that no source waits long for its turn. */
  readonly batchEntries: number;
  /** At most so many of them from the parent, and from one client at a time. */
  readonly parentEntries: number;
  readonly clientEntries: number;
  /** How much a leader keeps, in private memory, for members that lag. (More while one of them fetches.) */
  readonly backlogBytesMax: number;
}

/** @internal */
export const PACE: Pace = {
  batchEntries: 256,
  parentEntries: 128,
  clientEntries: 64,
  backlogBytesMax: 2 ** 25,
};

/**
 * What a reply promises. `multicast`: the order of deliveries, as in the paper. `strict`: also real-time order. Once a reply
 * has shown the effect of a message, every message that is sent later finds the effect, at every group (settling.ts).
 */
export const ORDERS = ['strict', 'multicast'] as const;

export type Order = (typeof ORDERS)[number];

/** @internal */
export interface Edges {
  readonly memory: Memory;
  /** Of a replica: where its group's entries become durable on its host. Absent with `durability: 'none'`. */
  readonly journal?: GroupJournal | undefined;
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly timing: Timing;
  readonly pace: Pace;
  readonly order: Order;
  readonly observer: Observer;
  /** The time of day, in microseconds since 1970. It may jump, stand still, and differ between participants. */
  readonly wallClockUs: () => number;
  /** The clock of the times that are passed to steps, read now: a step may take long. */
  readonly monotonicUs: () => number;
  /** Of a replica: has this session of a client slot ended? True only if its client certainly takes no more replies. */
  readonly hasSessionEnded: (client: number, session: number) => boolean;
}
