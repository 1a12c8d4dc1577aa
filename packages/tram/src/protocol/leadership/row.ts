/**
 * A row: what a replica tells all others, as one record in its own region. Its owner publishes it (`OwnRow`), others
 * read it with a posted read and decode it (`Peer`). rows.ts decides when.
 *
 * A row is a record, so a torn one is not accepted. Its epoch is the owner's incarnation, its number counts
 * publications.
 *
 * Invariants, for one peer: the incarnation never goes back, and within one incarnation the promise never does.
 */

import {
  copyPart,
  epochAt,
  FRAME_WORDS,
  HEAD_WORDS,
  numberAt,
  seal,
  slotAt,
  type Window,
  wordsOf,
} from '../../memory/record.js';
import { EMPTY } from '../data-path/backlog.js';
import { ROW, ROW_STATE } from '../layout.js';
import { readWide, writeWide } from '../wide.js';
import { NO_BALLOT } from './ballot.js';

export const ROW_RECORD_WORDS = ROW.words + FRAME_WORDS;

/** Another replica, as its row showed it when it was read last. */
export class Peer {
  /** False until its row has been read once in this incarnation of ours. */
  seen = false;
  /** Never goes back. */
  incarnation = 0;
  /** Within one incarnation it changes once per heartbeat interval. */
  heartbeat = 0;
  /** How many different heartbeats, of any incarnation, have been read. */
  beats = 0;
  /** False while it recovers. */
  normal = true;
  /** Does it say that it hears from too few members to lead them? */
  isAlone = false;
  /** Never goes back within one incarnation. */
  promised = NO_BALLOT;
  /** The marker of its log, or NO_BALLOT if it has none: `promised` once the log of that ballot is installed. */
  logBallot = NO_BALLOT;
  /** The ballot it leads, or NO_BALLOT. ledBallot ≤ promised. */
  ledBallot = NO_BALLOT;
  /** It has delivered all entries below this index. */
  delivered: number;
  /** It has decided all that its group is sent from below this index of the parent's log. */
  fromParent: number;
  /** Its group has settled all that it is sent from below this index of the parent's log. */
  settledFromParent: number;
  /** Entries below this index are durable on its host; 0 without a journal. */
  durable = 0;
  /** Everything that its group is sent from below this index of the parent's log is durable in its group. */
  durableFromParent: number;
  /** Entries below this index are stable, as far as it knows. */
  stable: number;
  /** The last mark that its host holds, and one that f+1 members of each group in its subtree hold. */
  heldMark = 0;
  subtreeMark = 0;
  /** Does a journal of its group, or of a group below, wait for marks? */
  awaitsMark = false;
  /** It needs the entries from this index on to serve a snapshot; 0 if it serves none. */
  holdAt = 0;
  /** The first index that it can send to members that lag, or EMPTY. */
  backlog = EMPTY;
  /** `promised` if it hears from that ballot's owner, else NO_BALLOT. */
  hears = NO_BALLOT;
  /** The member that it trusts as leader, or -1. */
  trusts = -1;

  /** The first index of its log, if it has yet to deliver earlier entries; otherwise 0. */
  needs = 0;

  /**
   * How many reads of its row are under way, and when was the last one posted? Reads may never complete if the memory that they
   * go to is lost. So the count begins again with each incarnation that shows.
   */
  readsUnderWay = 0;
  readPostedUs = Number.NEGATIVE_INFINITY;
  /** Where reads of its row go to. */
  readonly buffer: Window;

  constructor(
    readonly participant: number,
    firstIndex: number,
  ) {
    this.delivered = firstIndex;
    this.fromParent = firstIndex;
    this.settledFromParent = firstIndex;
    this.durableFromParent = firstIndex;
    this.stable = firstIndex;
    this.buffer = slotAt(new Int32Array(ROW_RECORD_WORDS), 0);
  }

  /** Decode the row that was read into `buffer`. False if it was torn, or of an earlier incarnation. */
  accept(): boolean {
    const { words } = this.buffer;
    const incarnation = epochAt(this.buffer, 0);
    if (wordsOf(this.buffer, 0, incarnation, numberAt(this.buffer, 0), ROW_RECORD_WORDS) === 0) {
      return false;
    }
    if (incarnation < this.incarnation) return false;
    const isSameIncarnation = incarnation === this.incarnation;
    if (!isSameIncarnation) this.readsUnderWay = 0;
    const heartbeat = words[HEAD_WORDS + ROW.heartbeat];
    if (!isSameIncarnation || heartbeat !== this.heartbeat) this.beats++;
    this.seen = true;
    this.incarnation = incarnation;
    this.heartbeat = heartbeat;
    const state = words[HEAD_WORDS + ROW.state];
    this.normal = state !== ROW_STATE.recovering;
    this.isAlone = state === ROW_STATE.alone;
    const promised = words[HEAD_WORDS + ROW.promised];
    // A lower promise of the same incarnation was read before we heard of the higher one.
    this.promised = isSameIncarnation ? Math.max(this.promised, promised) : promised;
    this.logBallot = words[HEAD_WORDS + ROW.logBallot];
    this.ledBallot = words[HEAD_WORDS + ROW.ledBallot];
    this.delivered = readWide(words, HEAD_WORDS + ROW.delivered);
    this.fromParent = readWide(words, HEAD_WORDS + ROW.fromParent);
    this.settledFromParent = readWide(words, HEAD_WORDS + ROW.settledFromParent);
    this.durable = readWide(words, HEAD_WORDS + ROW.durable);
    this.durableFromParent = readWide(words, HEAD_WORDS + ROW.durableFromParent);
    this.stable = readWide(words, HEAD_WORDS + ROW.stable);
    this.heldMark = words[HEAD_WORDS + ROW.heldMark];
    this.subtreeMark = words[HEAD_WORDS + ROW.subtreeMark];
    this.awaitsMark = words[HEAD_WORDS + ROW.awaitsMark] !== 0;
    this.holdAt = readWide(words, HEAD_WORDS + ROW.holdAt);
    this.hears = words[HEAD_WORDS + ROW.hears];
    this.trusts = words[HEAD_WORDS + ROW.trusts];
    this.backlog = readWide(words, HEAD_WORDS + ROW.backlog);
    this.needs = readWide(words, HEAD_WORDS + ROW.needs);
    return true;
  }

  /** Its request shows that it has promised itself this ballot, whatever its row said when it was read last. */
  noteRequest(ballot: number, incarnation: number): void {
    if (incarnation >= this.incarnation) this.promised = Math.max(this.promised, ballot);
  }
}

/** Our own row. Fields are set one by one; `publish` makes all of them visible in one record. */
export class OwnRow {
  private readonly window: Window;
  private readonly fields = new Int32Array(ROW.words);
  private publications = 0;
  /** Do the fields differ from what is published? */
  hasChanged = true;

  constructor(
    own: Int32Array,
    at: number,
    private readonly incarnation: number,
  ) {
    this.window = slotAt(own, at);
  }

  get(field: number): number {
    return this.fields[field];
  }

  set(field: number, value: number): void {
    if (this.fields[field] === value) return;
    this.fields[field] = value;
    this.hasChanged = true;
  }

  setWide(field: number, value: number): void {
    if (readWide(this.fields, field) === value) return;
    writeWide(this.fields, field, value);
    this.hasChanged = true;
  }

  publish(): void {
    const { window } = this;
    this.hasChanged = false;
    copyPart(this.fields, 0, window.words, window.at + HEAD_WORDS, ROW.words);
    seal(window, 0, ROW.words, this.incarnation, ++this.publications);
  }
}
