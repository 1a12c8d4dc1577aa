/** What the server of the page sends to browsers, as JSON. The page imports these types. */
import type { ClusterState, GroupHealth } from '../hosting/status.js';

/** The first event of a stream, named `hello`. */
export interface Hello {
  /** May this page crash and restart hosts, and choose leaders? */
  readonly hasControl: boolean;
  readonly history: readonly Sample[];
  readonly news: readonly News[];
  readonly shown: Shown;
}

/** Each further event, named `tick`. */
export interface Tick {
  readonly sample: Sample;
  /** Since the last event of this stream. */
  readonly news: readonly News[];
  readonly shown: Shown;
}

/** One point of the plots. */
export interface Sample {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly answeredPerSecond: number;
  /** Of the messages that were answered in the last seconds; null if there were none. */
  readonly latency: Latency | null;
}

export interface Latency {
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly p999Ns: number;
}

/** Something that has happened. */
export interface News {
  /** Consecutive, from 0. */
  readonly id: number;
  readonly atMs: number;
  readonly kind: 'good' | 'bad' | 'change';
  readonly text: string;
}

/** What a cluster looks like. */
export interface Shown {
  readonly name: string;
  readonly state: ClusterState;
  readonly memory: string;
  readonly order: string;
  readonly durability: string;
  readonly era: number | null;
  readonly isSupervised: boolean | null;
  readonly answered: number;
  readonly clients: { readonly connected: number; readonly most: number };
  readonly hosts: readonly ShownHost[];
  readonly groups: readonly ShownGroup[];
  readonly troubles: readonly Trouble[];
}

export interface Trouble {
  readonly what: string;
  /** The cause, and what to do. */
  readonly advice: string;
}

export interface ShownHost {
  readonly host: number;
  /** Its name in the configuration, or its number. */
  readonly title: string;
  /** As `tram status` has it: `up`, `starting`, `down`, `stopped`, `unreachable`. */
  readonly state: string;
  /** The address, the process, or why it can't be reached. */
  readonly details: string;
}

export interface ShownGroup {
  readonly group: number;
  /** -1 at the root. */
  readonly parent: number;
  readonly leader: number | null;
  readonly ballot: string | null;
  readonly health: GroupHealth;
  readonly messagesPerSecond: number;
  readonly relayedPerSecond: number;
  /** Log entries below these indices are decided, settled (strict order), and recoverable (with a journal). */
  readonly decided: number;
  readonly settled: number | null;
  readonly recoverable: number | null;
  /** 0 to 1, of the leader; null without one. */
  readonly logFill: number | null;
  /** Null without a leader, and in a group without children. */
  readonly feedFill: number | null;
  readonly replicas: readonly ShownReplica[];
}

export interface ShownReplica {
  /** `g2/0` */
  readonly name: string;
  readonly member: number;
  readonly host: number;
  /** That of its host. */
  readonly state: string;
  /** `leader`, `follower`, `candidate` or `recovering`. */
  readonly role: string;
  readonly promised: string | null;
  readonly incarnation: number;
  readonly timesLed: number;
  readonly delivered: number;
  /** How many entries it has yet to deliver that its group has decided. */
  readonly behind: number;
  readonly durable: number | null;
}

/** What a page asks for, as the body of `POST api/control`. */
export type ControlRequest =
  | { readonly action: 'crash' | 'restart'; readonly host: number }
  | { readonly action: 'lead'; readonly group: number; readonly member: number };

/** The answer: without an error, it was done. */
export interface ControlAnswer {
  readonly error?: { readonly message: string; readonly hint: string | null };
}
