/** A replica as an agent of its host: the protocol's replica, requests that it lead, and its statistics. */
import { PARTICIPANT } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import type { Application, Observer } from '../protocol/edges.js';
import type { Identity } from '../protocol/member.js';
import { Replica, type Role } from '../protocol/replica.js';
import type { ClusterContext } from './cluster-context.js';
import { type Agent, MUCH_WORK } from './duty.js';
import { STATISTIC } from './statistics.js';

/** In the order of their numbers in `STATISTIC.role`. */
export const ROLES: readonly Role[] = ['recovering', 'follower', 'candidate', 'leader'];

export class ReplicaAgent implements Agent {
  readonly replica: Replica;
  private readonly words: Int32Array;
  private readonly campaignRequests: number;
  private readonly statistics: number;
  private seenStandRequests: number;
  private seenRole: Role | undefined;

  constructor(
    context: ClusterContext,
    participant: ParticipantId,
    identity: Identity,
    application: Application,
    observer: Observer,
    nowUs: number,
  ) {
    this.words = context.arena.words;
    this.campaignRequests = context.map.participant(participant) + PARTICIPANT.campaignRequests;
    this.statistics = context.map.statisticsOf(participant);
    this.seenStandRequests = Atomics.load(this.words, this.campaignRequests);
    // What an earlier incarnation was says nothing about this one.
    this.words[this.statistics + STATISTIC.role] = ROLES.indexOf('recovering');
    const edges = context.edges(context.memory(participant), observer);
    this.replica = new Replica(identity, edges, application, nowUs);
  }

  doWork(nowUs: number): number {
    const requests = this.words[this.campaignRequests];
    if (requests !== this.seenStandRequests) {
      this.seenStandRequests = requests;
      this.replica.campaign(nowUs);
    }
    const work = this.replica.doWork(nowUs);
    const { role } = this.replica;
    // A new leader has messages waiting, and a candidate must not be late.
    const isUrgent = role !== this.seenRole || (role === 'candidate' && work > 0);
    if (work > 0 || isUrgent) this.note();
    return isUrgent ? MUCH_WORK : work;
  }

  private note(): void {
    this.seenRole = this.replica.role;
    this.words[this.statistics + STATISTIC.role] = ROLES.indexOf(this.seenRole);
    this.words[this.statistics + STATISTIC.messages] = this.replica.member.deliveries | 0;
  }
}
