/**
 * What the coordinator of a recovery asks of the hosts, and what they answer: plain data, so that it can be posted to threads
 * and sent to machines. Every ask may be repeated: the answer and the effect are those of the first time, except that an era
 * is promised only once. Answers are bounded in size; the coordinator or a host that asks for entries or a snapshot asks again for the rest.
 */

/** @internal The coordinator answers `undefined` itself for a host that can't be reached, or that refuses. */
export type Ask = PromiseAsk | SurveyAsk | CutAsk | EntriesAsk | SnapshotAsk | OpenAsk | OpenedAsk;

/** @internal */
export type AnswerTo<A extends Ask> = Answers[A['what']];

/** @internal */
export type Answer = Answers[Ask['what']];

interface Answers {
  readonly promise: Promised;
  readonly survey: Survey;
  readonly cut: Cut;
  readonly entries: Entries;
  readonly snapshot: SnapshotPiece;
  readonly open: Opening;
  readonly opened: Marked;
}

/**
 * @internal Accept nothing of lower eras from now on, durably. A host that runs replicas stops them first, and its journal
 * gets all that they have delivered. A host that has promised this era or a higher one refuses; so one coordinator at most
 * gets the promises of a quorum for an era. Era 0 asks what the host has promised.
 */
export interface PromiseAsk {
  readonly what: 'promise';
  readonly host: number;
  readonly era: number;
  /** For a host that has no journal yet. */
  readonly clusterId: string;
}

/** @internal */
export interface Promised {
  readonly isAccepted: boolean;
  /** The highest era that the host has promised; 0 if it has no journal. */
  readonly promised: number;
  /** Undefined if it has no journal. */
  readonly clusterId: string | undefined;
  /** An operator has accepted that messages get lost: `tram recover --accept-loss`. */
  readonly acceptsLoss: boolean;
}

/** @internal What does the host's journal have? */
export interface SurveyAsk {
  readonly what: 'survey';
  readonly host: number;
}

/** @internal */
export interface Survey {
  /** The highest era that it has promised; 0 if it has no journal. */
  readonly promised: number;
  readonly sequences: readonly SurveyedSequence[];
  /** Sessions of clients in the last era that it has marked as open start here; 0 if there is none. */
  readonly firstSession: number;
  /** An era was marked as open here. */
  readonly hasOpened: boolean;
}

/**
 * @internal What a host has of one group in one era: see `JournalSequence`. If it has several, their snapshots differ, and exactly one
 * of these counts.
 */
export interface SurveyedSequence {
  readonly group: number;
  readonly era: number;
  /** It was marked as open here. */
  readonly isOpened: boolean;
  readonly isFirst: boolean;
  readonly snapshotIndex: number;
  readonly snapshotFromParent: number;
  readonly end: number;
  readonly mark: number;
  readonly lastMark: number;
}

/** Which sequence of a host is meant: that of the snapshot at this index. */
interface OfSequence {
  readonly host: number;
  readonly group: number;
  readonly era: number;
  readonly snapshotIndex: number;
}

/** @internal Where does the first entry lie that has come from the parent's entry `parentEnd` or a later one? */
export interface CutAsk extends OfSequence {
  readonly what: 'cut';
  readonly parentEnd: number;
}

/** @internal */
export interface Cut {
  /** The index of that entry, or the end of the sequence. */
  readonly end: number;
  /** One more than the parent's index of the last entry below `end` that has come from the parent. */
  readonly nextFromParent: number;
}

/** @internal The entries `from` to `below - 1`; with `reach`, only those that have a destination in it. */
export interface EntriesAsk extends OfSequence {
  readonly what: 'entries';
  readonly from: number;
  readonly below: number;
  readonly reach?: { readonly low: number; readonly high: number } | undefined;
}

/** @internal */
export interface Entries {
  readonly entries: readonly { readonly index: number; readonly body: Int32Array }[];
  /** Where to ask on: all that was asked for below this index is in the answer. At the end, `below`. */
  readonly next: number;
}

/** @internal A piece of the snapshot that the sequence starts with, from this word on. */
export interface SnapshotAsk extends OfSequence {
  readonly what: 'snapshot';
  readonly offset: number;
}

/** @internal */
export interface SnapshotPiece {
  /** Empty if the sequence `isFirst`. */
  readonly words: Int32Array;
  readonly totalWords: number;
}

/**
 * @internal Replay what the plan says, and make the opening snapshot of each group durable. A host that has promised a higher
 * era refuses.
 */
export interface OpenAsk {
  readonly what: 'open';
  readonly host: number;
  readonly plan: EraPlan;
}

/** @internal How an era begins, for one host. */
export interface EraPlan {
  readonly era: number;
  readonly clusterId: string;
  /** Those that have members on the host. */
  readonly groups: readonly GroupPlan[];
}

/**
 * @internal What a group begins with: what `source` has of it in `fromEra`, a snapshot at `keepFrom` and the entries from there
 * to `keepBelow - 1`; then the entries of `append`, which are numbered on.
 */
export interface GroupPlan {
  readonly group: number;
  /** NO_ERA: the group begins without state. */
  readonly fromEra: number;
  readonly source: number;
  readonly keepFrom: number;
  readonly keepBelow: number;
  /** Bodies of entries. */
  readonly append: readonly Int32Array[];
}

/** @internal Eras start at 1. */
export const FIRST_ERA = 1;
/** @internal */
export const NO_ERA = 0;

/** @internal */
export interface Opening {
  /** The groups whose opening snapshot is durable on the host. */
  readonly groups: readonly number[];
  /** The highest session in what was replayed; 0 if there is none. */
  readonly lastSession: number;
}

/**
 * @internal The era is open: mark it, durably, then remove older ones. A host that has promised a higher era, or that has not
 * opened this one, refuses.
 */
export interface OpenedAsk {
  readonly what: 'opened';
  readonly host: number;
  readonly era: number;
  /** Sessions of clients start here. */
  readonly firstSession: number;
}

/** @internal */
export interface Marked {
  readonly isMarked: boolean;
}
