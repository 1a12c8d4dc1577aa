/**
 * Adopting a log: copying it, as its member sealed it, from our own region or out of another member's memory. Takeover
 * chooses the log and begins with the copy.
 *
 * Entries, base and row of another member are read in this order, so that the row is the newest: if the member still has
 * the incarnation and the promise of its grant, nothing was written there by a later leader before the entries were read.
 *
 * Invariant: the copy that is handed out is whole, from its base to the end that was sealed.
 */
import { copyWords, distance, extend, numberAt, readRange } from '../../memory/record.js';
import { assert } from '../assert.js';
import { type Extent, LogRing } from '../data-path/log.js';
import { LOG_CONTROL } from '../layout.js';
import type { Member } from '../member.js';
import { KIND, tagOf } from '../tags.js';
import { Peer } from './row.js';

export class Adoption {
  /** A private copy of a member's ring: same shape, other memory. */
  readonly copy: LogRing;
  /** Completions of earlier attempts do not count. */
  private attempt = 0;
  private readonly base = new Int32Array(1);
  private readonly row: Peer;

  constructor(private readonly member: Member) {
    const { layout } = member;
    const words = new Int32Array(layout.logRing(0, 0) + layout.logWords);
    this.copy = new LogRing(words, layout, member.group, 0, 0);
    this.row = new Peer(member.participantOf(member.index), layout.sizes.firstIndex);
  }

  /** Copy our own log. Returns its extent. */
  copyOwn(sealed: Extent): Extent {
    this.attempt++;
    const ring = this.member.log.ring(sealed.writer, sealed.ringIndex);
    const count = distance(sealed.endPosition, sealed.basePosition);
    copyWords(ring, sealed.basePosition, this.copy, sealed.basePosition, count);
    this.member.edges.memory.readFence();
    const log = this.trimmed(sealed, ring.base);
    assert(log !== undefined, 'a sealed log stays whole, except that its start may be dropped');
    return log;
  }

  /** Post reads of another member's log. */
  read(from: number, sealed: Extent): void {
    const { memory, layout } = this.member.edges;
    const peer = this.member.participantOf(from);
    const tag = tagOf(KIND.adopt, ++this.attempt);
    const { basePosition, endPosition } = sealed;
    const ring = layout.logRing(sealed.writer, sealed.ringIndex);
    readRange(memory, peer, ring, this.copy, basePosition, endPosition, tag);
    const control = layout.logControl(sealed.writer, sealed.ringIndex);
    memory.read(peer, control + LOG_CONTROL.base, 1, this.base, 0, tag);
    const { words } = this.row.buffer;
    const last = tagOf(KIND.adoptLast, this.attempt);
    memory.read(peer, layout.row, words.length, words, 0, last);
  }

  isCurrent(attempt: number): boolean {
    return attempt === this.attempt;
  }

  abandon(): void {
    this.attempt++;
  }

  /**
   * All has been read. Returns the extent of the copy, or undefined if the member is no longer in the incarnation that
   * sealed it, has promised another ballot, or the copy is not whole.
   */
  finish(sealed: Extent, incarnation: number, ballot: number): Extent | undefined {
    const { row } = this;
    row.incarnation = 0;
    if (!row.accept() || row.incarnation !== incarnation || row.promised !== ballot) {
      return undefined;
    }
    return this.trimmed(sealed, this.base[0]);
  }

  /**
   * The copy of a sealed log from its base as it was after copying: a deposed leader's late writes may have dropped
   * entries since the seal. It could only drop entries that f+1 members have delivered and all children have decided, so
   * starting later is right.
   */
  private trimmed(sealed: Extent, basePosition: number): Extent | undefined {
    const log = { ...sealed };
    if (log.basePosition === log.endPosition) return log;
    if (distance(basePosition, log.basePosition) > 0) {
      log.basePosition = basePosition;
      this.member.edges.observer.transition('adopted log started later');
    }
    let position = log.basePosition;
    for (let index = this.baseIndexOf(log); index < log.endIndex; index++) {
      const words = this.copy.entryWords(position, log.ballot, index);
      if (words === 0) return undefined;
      position = (position + words) | 0;
    }
    return position === log.endPosition ? log : undefined;
  }

  /** The index of the copy's first entry. */
  baseIndexOf(log: Extent): number {
    if (log.basePosition === log.endPosition) return log.endIndex;
    return extend(log.endIndex, numberAt(this.copy, log.basePosition));
  }
}
