/**
 * The entries of a log that do not come from a client or from the parent: ticks of ordered time, ends of sessions, and marks.
 * Their leader proposes them, at the beginning of a round. At most one tick is undecided, and at most one mark is undelivered.
 */
import { hashWords, NO_WORDS, placeOf } from '../../memory/record.js';
import { MARK, MESSAGE, messageWords, NO_CLIENT, OWN_ENTRY_WORDS, OWN_KIND } from '../layout.js';
import type { Member } from '../member.js';
import { WIDE } from '../wide.js';
import type { Counters } from './counters.js';
import type { OrderedClock } from './ordered-clock.js';
import type { Replication } from './replication.js';

const NEVER = Number.POSITIVE_INFINITY;
/** The words of an own entry as a message. */
const OWN_MESSAGE_WORDS = messageWords(0);
/** The least time between two marks, as a multiple of the time after which members are suspected. */
const SUSPICIONS_PER_MARK = 2;
/**
 * Only the last mark can get complete. As long as it does not, because disks are slow, the leader doubles the time that the next one
 * waits. The limit is so many times the least time. It is at least `MARK_WAIT_US`, because a short time of suspicion makes no disk faster.
 */
const MARK_PATIENCE_MAX = 64;
const MARK_WAIT_US = 10_000_000;

/** Makes the own message that lies behind the log's end, and has this hash, the log's next entry. */
export type AppendOwn = (messageWords: number, hash: number, kind: number) => void;

export class OwnEntries {
  /** When to look again whether sessions have ended, and per client slot, the one whose end this leader has proposed. */
  private sessionsDueUs = 0;
  private readonly endedSessions: Int32Array;
  /** The index behind the last tick that was proposed. */
  private endOfTick = -1;
  /** When the last mark was proposed, how long the next one waits for it to get complete, and the index behind it. */
  private markedUs = Number.NEGATIVE_INFINITY;
  private markWaitUs = 0;
  private endOfMark = -1;

  constructor(
    private readonly member: Member,
    private readonly replication: Replication,
    /** Over all entries of the log, decided or not. */
    private readonly proposed: Counters,
    /** Absent if the service wants no ticks. */
    private readonly clock: OrderedClock | undefined,
    private readonly append: AppendOwn,
  ) {
    this.endedSessions = new Int32Array(member.layout.sizes.clients);
  }

  /** This member begins to lead, with the log as it is. */
  start(): void {
    this.endedSessions.fill(0);
    // The log may have a mark that is not delivered here.
    this.endOfMark = this.replication.endIndex;
  }

  /** Is a tick the last entry of the log? */
  get logEndsWithTick(): boolean {
    return this.endOfTick === this.replication.endIndex;
  }

  /** When a tick is to be proposed: infinite if there are none, or while one is undecided. */
  get tickDueUs(): number {
    if (this.clock === undefined || this.hasUndecidedTick) return NEVER;
    return this.clock.dueUs;
  }

  private get hasUndecidedTick(): boolean {
    return this.proposed.orderedUs !== this.member.delivered.orderedUs;
  }

  /**
   * Advance ordered time, if that is due. One tick at a time is undecided: if none gets decided, they do not pile up. Returns false
   * if a tick that is due finds no room in the log.
   */
  proposeTick(nowUs: number): boolean {
    const { clock } = this;
    if (clock === undefined || this.hasUndecidedTick) return true;
    const { orderedUs } = this.proposed;
    if (!clock.isDue(orderedUs, nowUs)) return true;
    if (!this.hasRoom()) return false;
    const stampUs = clock.advance(orderedUs);
    this.propose(OWN_KIND.tick, stampUs | 0, Math.floor(stampUs / WIDE));
    this.endOfTick = this.replication.endIndex;
    return true;
  }

  /** If the client of a call that waits has ended, let the group know. Returns false if an end finds no room in the log. */
  proposeSessionEnds(nowUs: number): boolean {
    const { waiting, edges } = this.member;
    if (waiting.total === 0 || nowUs < this.sessionsDueUs) return true;
    this.sessionsDueUs = nowUs + edges.timing.suspectAfterUs;
    for (let client = 0; client < waiting.counts.length; client++) {
      const session = waiting.firstLive[client];
      if (waiting.counts[client] === 0 || this.endedSessions[client] === session) continue;
      if (!edges.hasSessionEnded(client, session)) continue;
      if (!this.hasRoom()) {
        this.sessionsDueUs = nowUs;
        return false;
      }
      this.endedSessions[client] = session;
      this.propose(OWN_KIND.sessionEnded, client, session);
    }
    return true;
  }

  /**
   * If a journal waits for a mark, give all groups the next one, which says also which one is complete. Returns false if it finds no
   * room in the log.
   */
  proposeMark(nowUs: number): boolean {
    if (!this.awaitsMark()) return true;
    const { member, replication } = this;
    const { timing, observer, overlay } = member.edges;
    const isComplete = member.subtreeMark === member.marks;
    const leastUs = SUSPICIONS_PER_MARK * timing.suspectAfterUs;
    const waitUs = isComplete ? leastUs : Math.max(leastUs, this.markWaitUs);
    if (nowUs < this.markedUs + waitUs || this.endOfMark > member.nextToDeliver) return true;
    if (!this.hasRoom()) return false;
    const mostUs = Math.max(MARK_PATIENCE_MAX * leastUs, MARK_WAIT_US);
    this.markWaitUs = isComplete ? 0 : Math.min(2 * waitUs, mostUs);
    this.markedUs = nowUs;
    this.clear();
    this.set(MESSAGE.number, isComplete ? member.marks : member.completeMark);
    this.set(MESSAGE.destinationsLow, overlay.reachLow[member.group]);
    this.set(MESSAGE.destinationsHigh, overlay.reachHigh[member.group]);
    this.set(MESSAGE.payloadBytes, MARK);
    this.complete(OWN_KIND.mark, NO_CLIENT, member.marks + 1);
    this.endOfMark = replication.endIndex;
    observer.transition('mark proposed');
    return true;
  }

  /** Does this group lead the tree, and does a journal wait for a mark? */
  private awaitsMark(): boolean {
    const { journal, overlay } = this.member.edges;
    if (journal === undefined || this.member.group !== overlay.root) return false;
    return journal.awaitsMark || this.member.awaitsMark;
  }

  private hasRoom(): boolean {
    return OWN_ENTRY_WORDS <= this.replication.roomWords;
  }

  private propose(kind: number, first: number, second: number): void {
    this.clear();
    this.complete(kind, first, second);
  }

  /** The message behind the log's end has only zeros now. */
  private clear(): void {
    for (let field = 0; field < OWN_MESSAGE_WORDS; field++) this.set(field, 0);
  }

  private complete(kind: number, first: number, second: number): void {
    const { ring, nextBody } = this.replication;
    this.set(MESSAGE.client, first);
    this.set(MESSAGE.session, second);
    this.append(OWN_MESSAGE_WORDS, hashWords(ring, nextBody, OWN_MESSAGE_WORDS, NO_WORDS), kind);
  }

  private set(field: number, value: number): void {
    const { ring, nextBody } = this.replication;
    ring.words[placeOf(ring, nextBody + field)] = value;
  }
}
