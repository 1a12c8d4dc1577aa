/**
 * The vocabulary of a history: what a run, simulated or real, writes down, one event a line.
 *
 * `deliver` events of one replica stand in its own delivery order, and a `multicast` stands before
 * the first delivery of its message. Nothing else is assumed about how the events of different
 * processes are interleaved.
 */

/** The groups and their members. Comes first, once. */
export interface GroupsEvent {
  readonly event: 'groups';
  /** From a group's number to the names of its replicas. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
  /** The overlay tree: `parents[g]` is the parent of group g, -1 at the root. */
  readonly parents?: readonly number[];
}

/** A client hands over a message. */
export interface MulticastEvent {
  readonly event: 'multicast';
  readonly id: string;
  readonly client: string;
  readonly destinations: readonly number[];
  /** The group at which the message enters the tree, where the trace knows it. */
  readonly entry?: number;
}

/** A replica hands a message to its application. */
export interface DeliverEvent {
  readonly event: 'deliver';
  readonly id: string;
  readonly group: number;
  readonly replica: string;
}

/** A group that is not a destination ordered the message, as a relay on its way down the tree. */
export interface TouchEvent {
  readonly event: 'touch';
  readonly id: string;
  readonly group: number;
}

/** A replica starts to lead its group. Kept for readers: no property depends on it. */
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

/** The replica comes back with empty memory: a new life begins, with nothing delivered. */
export interface RestartEvent {
  readonly event: 'restart';
  readonly replica: string;
}

/** The replica took over a snapshot: the first `count` deliveries of its group are now its own. */
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
  /** True only if the run was drained: whatever was going to be delivered has been. */
  readonly quiescent: boolean;
}

export type TraceEvent =
  | GroupsEvent
  | MulticastEvent
  | DeliverEvent
  | TouchEvent
  | LeaderEvent
  | CrashEvent
  | RestartEvent
  | RestoreEvent
  | ClientCrashEvent
  | EndEvent;

/** An event that can't be part of any history: a defect of the trace, not of the system traced. */
export class MalformedTraceError extends Error {
  override readonly name = 'MalformedTraceError';

  /**
   * @param reason  one sentence, without the line number
   * @param line    1-based line of the file, or ordinal of the event where there is no file
   * @param text    the offending line as it stands in the file, if there is a file
   */
  constructor(
    readonly reason: string,
    readonly line: number,
    readonly text?: string,
  ) {
    super(`line ${line}: ${reason}`);
  }
}
