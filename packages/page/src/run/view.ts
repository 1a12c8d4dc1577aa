/** What the page shows of a run at one moment: plain data. `describe-*.ts` make it, the views in `src/sim` draw it. */

/** The place of an entry in its life at one replica. */
export type CellState = 'undecided' | 'decided' | 'delivered';

export interface Cell {
  readonly index: number;
  /** The id of the message in the history; undefined for entries that a leader proposes itself. */
  readonly id: string | undefined;
  readonly label: string;
  readonly destinations: readonly number[];
  readonly state: CellState;
}

export interface LogView {
  /** The ballot under which it was installed. */
  readonly ballot: string;
  /** How many entries were dropped from it. */
  readonly truncated: number;
  readonly cells: readonly Cell[];
}

/** Messages that lie in an inbox or a feed of a replica, and which it has not delivered. */
export interface QueueView {
  readonly from: string;
  readonly labels: readonly string[];
}

export interface ReplicaView {
  readonly name: string;
  readonly participant: number;
  readonly group: number;
  readonly member: number;
  readonly state: 'up' | 'paused' | 'down';
  /** Is it down while its memory is still there? */
  readonly leavesMemory: boolean;
  readonly role: string;
  /** While it campaigns. */
  readonly phase: string | undefined;
  readonly incarnation: number;
  readonly promised: string;
  /** What its memory permits, in words. */
  readonly permits: string;
  /** The members whose logs it may write, because they permit a key that they have given to it. */
  readonly holds: readonly string[];
  /** The next index to deliver, and how many messages it has delivered. */
  readonly next: number;
  readonly deliveries: number;
  readonly log: LogView | undefined;
  readonly inboxes: readonly QueueView[];
  readonly feeds: readonly QueueView[];
  /** What others read of it. */
  readonly row: readonly (readonly [name: string, value: string])[];
}

export interface ClientView {
  readonly name: string;
  /** As the history names it. */
  readonly session: string;
  readonly participant: number;
  readonly state: 'up' | 'paused' | 'down';
  readonly unsent: number;
  readonly unanswered: number;
}

/** An operation on its way from one participant to another. */
export interface Flight {
  readonly from: number;
  readonly to: number;
  readonly kind: FlightKind;
  readonly arrivesUs: number;
  /** Has a part of it landed? */
  readonly isTorn: boolean;
}

export type FlightKind = 'message' | 'log' | 'feed' | 'reply' | 'request' | 'grant' | 'snapshot';

export interface LinkView {
  readonly from: string;
  readonly to: string;
  readonly state: string;
}

export interface View {
  readonly events: number;
  readonly timeUs: number;
  readonly parents: readonly number[];
  readonly replicasPerGroup: number;
  /** Shared memory has no links that could be cut. */
  readonly hasLinks: boolean;
  /** Replicas that share a host and its disk do not end one by one. */
  readonly mayEnd: boolean;
  /** The share of writes that land in pieces. */
  readonly tornPercent: number;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly replicas: readonly ReplicaView[];
  readonly clients: readonly ClientView[];
  readonly flights: readonly Flight[];
  /** Those that are cut, slow or held. */
  readonly links: readonly LinkView[];
}
