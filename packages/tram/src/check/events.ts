/**
 * The events of a history. A run, simulated or real, records one event per line.
 *
 * The `deliver` events of one replica are in its delivery order. The `multicast` and `answered` events
 * of one client are in the order in which they happened to it. A `multicast` precedes the first delivery
 * of its message. Otherwise the events of different participants may be interleaved in any way.
 *
 * A time (`timeUs`) is in microseconds of its client's clock, with any fraction that the clock has. A
 * client never reads a lower time than before. It reads the time of a `multicast` before it writes the
 * message anywhere, and that of an `answered` after it has read the reply. Either all of a client's
 * events have a time or none has.
 */

/**
 * What a run promises. `strict`: all properties. `multicast`: all but real-time order, which the paper's
 * protocol does not have.
 */
export type PromisedOrder = 'strict' | 'multicast';

/** What a power cut of the whole cluster may undo. `none` promises nothing; the property `durability` defines the others. */
export type PromisedDurability = 'none' | 'everySecond' | 'always';

/** The groups and their members. The first event; it occurs once. */
export interface GroupsEvent {
  readonly event: 'groups';
  /** From a group's number to the names of its replicas. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
  /** The overlay tree: `parents[g]` is the parent of group g, -1 at the root. */
  readonly parents?: readonly number[];
  /** `multicast` if it is missing. */
  readonly order?: PromisedOrder;
}

/**
 * An era begins: the first start of a cluster with a journal, or its recovery after a power cut. Every replica restarts, and all
 * clients of earlier eras have ended. Without this event, the run is one era that promises no durability.
 *
 * Recovery of a group begins with a snapshot or with nothing, and delivers again what the journals have. It ends with an
 * `opened` event. An era that no member of a group has opened does not count for that group: its recovery was cut short, and
 * another era follows.
 */
export interface EraEvent {
  readonly event: 'era';
  /** Greater than those of the eras before. */
  readonly era: number;
  readonly durability: PromisedDurability;
}

/** A client starts. Without this event, its times are those of the one clock that all such clients share. */
export interface ClientStartEvent {
  readonly event: 'client-start';
  readonly client: string;
  /** The name of its clock: times of different clocks can't be compared. */
  readonly clock: string;
  /** If it is missing: the era that was the last to begin when the client first occurs. */
  readonly era?: number;
}

/** A client multicasts a message. */
export interface MulticastEvent {
  readonly event: 'multicast';
  readonly id: string;
  readonly client: string;
  readonly destinations: readonly number[];
  /** The entry group: the group at which the message enters the tree. */
  readonly entryGroup?: number;
  readonly timeUs?: number;
}

/** The client that multicast the message has received the reply of one destination. */
export interface AnsweredEvent {
  readonly event: 'answered';
  readonly id: string;
  readonly group: number;
  readonly timeUs?: number;
}

/** A replica delivers a message: it passes it to its service. */
export interface DeliverEvent {
  readonly event: 'deliver';
  readonly id: string;
  readonly group: number;
  readonly replica: string;
}

/** A group that is not a destination orders the message and forwards it down the tree. */
export interface TouchEvent {
  readonly event: 'touch';
  readonly id: string;
  readonly group: number;
}

/** A replica starts to lead its group. For information only: no property depends on it. */
export interface LeaderEvent {
  readonly event: 'leader';
  readonly group: number;
  readonly replica: string;
  readonly ballot: string;
}

export interface CrashEvent {
  readonly event: 'crash';
  readonly replica: string;
}

/** The replica starts a new incarnation, in which it has delivered nothing. */
export interface RestartEvent {
  readonly event: 'restart';
  readonly replica: string;
  /** If it is missing: the era that was the last to begin. The first incarnation belongs to the first era. */
  readonly era?: number;
}

/**
 * The replica has recovered: what it has delivered so far in this incarnation is what its group has of earlier eras. What
 * members have delivered beyond that in earlier eras is undone.
 */
export interface OpenedEvent {
  readonly event: 'opened';
  readonly replica: string;
}

/** The replica installs a snapshot, which covers the first `count` deliveries of its group. */
export interface RestoreEvent {
  readonly event: 'restore';
  readonly replica: string;
  readonly from: string;
  readonly count: number;
}

export interface ClientCrashEvent {
  readonly event: 'client-crash';
  readonly client: string;
}

/** The last event. */
export interface EndEvent {
  readonly event: 'end';
  /** True only if the run was drained: no delivery was outstanding. */
  readonly quiescent: boolean;
}

export type TraceEvent =
  | GroupsEvent
  | EraEvent
  | ClientStartEvent
  | MulticastEvent
  | AnsweredEvent
  | DeliverEvent
  | TouchEvent
  | LeaderEvent
  | CrashEvent
  | RestartEvent
  | OpenedEvent
  | RestoreEvent
  | ClientCrashEvent
  | EndEvent;

/** An event that no history can contain: a defect of the trace, not of the system traced. */
export class MalformedTraceError extends Error {
  override readonly name = 'MalformedTraceError';

  /**
   * @param reason  one sentence, without the line number
   * @param line    1-based line number in the file; without a file, the ordinal of the event
   * @param text    the offending line, if there is a file
   */
  constructor(
    readonly reason: string,
    readonly line: number,
    readonly text?: string,
  ) {
    super(`line ${line}: ${reason}`);
  }
}
