/**
 * A replica as an agent of its host: the protocol's replica, when it campaigns without being the one to trust, and its
 * statistics.
 *
 * A replica campaigns if an operator chooses it (`cluster.lead`) and if the host of the leader is to end. The first member
 * of a group also campaigns on its own, to return to the lead (`leader-return.ts`). A leader that an operator has chosen
 * asks the first member to wait, for as long as it leads: it changes a word in the first member's line from time to time.
 */
import { PARTICIPANT } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import { isLeftBehind } from '../protocol/data-path/delivery.js';
import type { Application, GroupJournal, Observer } from '../protocol/edges.js';
import type { Identity } from '../protocol/member.js';
import { Replica, type Role } from '../protocol/replica.js';
import { writeWide } from '../protocol/wide.js';
import { wallClockUs } from './clock.js';
import type { ClusterContext } from './cluster-context.js';
import { type Agent, MUCH_WORK } from './duty.js';
import { LeaderReturn, leastWaitUs, type Sight } from './leader-return.js';
import { ROLES, STATISTIC } from './statistics.js';

const FIRST = 0;
/** So often does a replica look whether to return to the lead. */
const LOOK_US = 100_000;
/** A chosen leader asks the first member so many times in the least wait. */
const ASKS_PER_WAIT = 6;
const WATERMARKS = [
  STATISTIC.durable,
  STATISTIC.recoverable,
  STATISTIC.settled,
  STATISTIC.decided,
] as const;
const HASH_FACTOR = 0x01000193;

export class ReplicaAgent implements Agent {
  readonly replica: Replica;
  private readonly words: Int32Array;
  private readonly line: number;
  /** The first member of this group. */
  private readonly first: ParticipantId;
  private readonly statistics: number;
  private readonly leaderReturn: LeaderReturn | undefined;
  private seenChoices: number;
  private seenHandovers: number;
  private seenRole: Role | undefined;
  /** Has an operator chosen this replica, and does it lead or campaign since? */
  private isChosen = false;
  private lookUs: number;
  private askUs: number;
  private seenNext = 0;
  private seenOrderedUs = 0;

  constructor(
    private readonly context: ClusterContext,
    readonly participant: ParticipantId,
    identity: Identity,
    application: Application,
    observer: Observer,
    nowUs: number,
    journal?: GroupJournal,
  ) {
    const { map, arena, config } = context;
    const { group, member } = identity;
    const { suspectAfterUs } = config.timing;
    this.words = arena.words;
    this.line = map.participant(participant);
    this.first = context.layout.replicaParticipant(group, FIRST);
    this.statistics = map.statisticsOf(participant);
    // What an earlier incarnation was says nothing about this one.
    this.words[this.statistics + STATISTIC.role] = ROLES.indexOf('recovering');
    this.noteStateLost(false);
    this.noteOrderedTime(0);
    for (const watermark of WATERMARKS) writeWide(this.words, this.statistics + watermark, 0);
    this.seenChoices = Atomics.load(this.words, this.line + PARTICIPANT.campaignRequests);
    this.seenHandovers = Atomics.load(this.words, this.line + PARTICIPANT.handovers);
    this.lookUs = nowUs;
    this.askUs = nowUs;
    if (member === FIRST) {
      const keptWaitUs = this.words[this.line + PARTICIPANT.returnWaitMs] * 1000;
      this.leaderReturn = new LeaderReturn(group, suspectAfterUs, keptWaitUs, nowUs);
    }
    const edges = context.edges(context.memory(participant), observer, journal);
    this.replica = new Replica(identity, edges, application, nowUs);
  }

  doWork(nowUs: number): number {
    const { replica } = this;
    const work = replica.doWork(nowUs);
    // Not before its step: a follower first delivers what its log says is decided, and a candidate can't any more.
    this.campaignIfAsked(nowUs);
    if (nowUs >= this.lookUs) this.look(nowUs);
    const { role, member } = replica;
    // A new leader has messages waiting, and a candidate must not be late.
    const isUrgent = role !== this.seenRole || (role === 'candidate' && work > 0);
    // A restored snapshot is no work, but it changes how many deliveries the state contains.
    if (work > 0 || isUrgent || member.nextToDeliver !== this.seenNext) this.note();
    if (member.delivered.orderedUs !== this.seenOrderedUs)
      this.noteOrderedTime(member.delivered.orderedUs);
    return isUrgent ? MUCH_WORK : work;
  }

  get dueUs(): number {
    return this.replica.dueUs;
  }

  /** Compares the clock of this host with ordered time, as of a tick that the replica has just delivered. */
  private noteOrderedTime(orderedUs: number): void {
    this.seenOrderedUs = orderedUs;
    const orderedMs = Math.floor(orderedUs / 1000);
    const aheadMs = orderedUs === 0 ? 0 : Math.floor(wallClockUs() / 1000) - orderedMs;
    writeWide(this.words, this.statistics + STATISTIC.orderedMs, orderedMs);
    this.words[this.statistics + STATISTIC.clockAheadMs] = clamped(aheadMs);
  }

  noteStateLost(isLost: boolean): void {
    this.words[this.statistics + STATISTIC.stateLost] = Number(isLost);
  }

  /** They never go back in an era, so those of a leader stay true when it leads no more. */
  private noteWatermarks(): void {
    const { replica, words, statistics } = this;
    const { journal, order } = replica.member.edges;
    const leads = replica.role === 'leader';
    if (journal !== undefined) {
      writeWide(words, statistics + STATISTIC.durable, journal.durable);
      if (leads)
        writeWide(words, statistics + STATISTIC.recoverable, replica.leader.recoverable.index);
    }
    if (order === 'strict' && leads)
      writeWide(words, statistics + STATISTIC.settled, replica.leader.settling.gate);
    if (leads) this.noteRings();
  }

  private noteRings(): void {
    const { replica, words, statistics } = this;
    const { replication, leader } = replica;
    const { feedWords } = this.context.layout;
    writeWide(words, statistics + STATISTIC.decided, replication.decided);
    words[statistics + STATISTIC.logUsedWords] = replication.usedWords;
    let used = 0;
    for (const feed of leader.forwarding.feeds)
      used = Math.max(used, feed.isFull ? feedWords : feed.usedWords);
    words[statistics + STATISTIC.feedUsedWords] = used;
  }

  private campaignIfAsked(nowUs: number): void {
    const { words, line } = this;
    const choices = words[line + PARTICIPANT.campaignRequests];
    const handovers = words[line + PARTICIPANT.handovers];
    if (choices === this.seenChoices && handovers === this.seenHandovers) return;
    this.isChosen ||= choices !== this.seenChoices;
    this.seenChoices = choices;
    this.seenHandovers = handovers;
    this.replica.campaign(nowUs);
  }

  private look(nowUs: number): void {
    this.lookUs = nowUs + LOOK_US;
    this.noteWatermarks();
    const { role } = this.replica;
    this.isChosen &&= role === 'leader' || role === 'candidate';
    if (this.leaderReturn !== undefined) this.returnToLead(this.leaderReturn, nowUs);
    else if (this.isChosen && role === 'leader' && nowUs >= this.askUs) this.askToWait(nowUs);
  }

  private returnToLead(leaderReturn: LeaderReturn, nowUs: number): void {
    const shouldAsk = leaderReturn.look(this.sight(), nowUs);
    this.words[this.line + PARTICIPANT.returnWaitMs] = Math.round(leaderReturn.waitUs / 1000);
    if (shouldAsk) this.replica.campaign(nowUs);
  }

  private sight(): Sight {
    const { replica, words, line } = this;
    const { member, rows, suspicion } = replica;
    let situation = words[line + PARTICIPANT.returnLater];
    const note = (value: number): void => {
      situation = (Math.imul(situation, HASH_FACTOR) + value) | 0;
    };
    note(member.promised);
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const { incarnation, normal } = rows.peer(other);
      note(incarnation);
      note(Number(normal && suspicion.isLive(other)));
    }
    const leads = replica.role === 'leader';
    return { leads, canReplaceLeader: this.canReplaceLeader(), situation };
  }

  private canReplaceLeader(): boolean {
    const { member, rows, suspicion, role } = this.replica;
    const { promised, promisedMember } = member;
    if (role !== 'follower' || !suspicion.hears(promised)) return false;
    if (rows.peer(promisedMember).ledBallot !== promised) return false;
    const log = member.log.under(promised, promisedMember);
    return log !== undefined && !isLeftBehind(member, log);
  }

  private askToWait(nowUs: number): void {
    const { context, words, first } = this;
    this.askUs = nowUs + leastWaitUs(context.config.timing.suspectAfterUs) / ASKS_PER_WAIT;
    const at = context.map.participant(first) + PARTICIPANT.returnLater;
    const asks = Atomics.add(words, at, 1) + 1;
    // On another machine it has an arena of its own.
    context.network?.linkOf[first]?.writeWords(at, Int32Array.of(asks));
  }

  private note(): void {
    const { role, member } = this.replica;
    if (role !== this.seenRole) {
      this.seenRole = role;
      this.words[this.statistics + STATISTIC.role] = ROLES.indexOf(role);
    }
    this.seenNext = member.nextToDeliver;
    this.words[this.statistics + STATISTIC.messages] = member.deliveries | 0;
    this.words[this.statistics + STATISTIC.relayed] = member.relayed | 0;
  }
}

/** What a word can hold: 24 days. */
function clamped(value: number): number {
  return Math.max(-(2 ** 31), Math.min(value, 2 ** 31 - 1));
}
