/**
 * Looks, for a host, whether a group of one of its replicas has lost its state for good, and tells so. A host on a machine
 * does not see the memory of other hosts, so it judges by what its replicas have read of each other.
 */
import { NO_BALLOT } from '../protocol/leadership/ballot.js';
import { nowUs } from './clock.js';
import type { ReplicaAgent } from './replica-agent.js';
import { describeStateLoss, isStateLost, type MemberState } from './status.js';

/** What one look finds may be passing; what two of them find is not. */
const LOOK_US = 1_000_000;
const TELL_AGAIN_US = 60_000_000;

export class Lookout {
  private nextUs = 0;
  /** The groups that had lost their state at the last look, and when to tell it. */
  private readonly lost = new Map<number, number>();

  constructor(private readonly tell: (text: string) => void) {}

  /** The groups that have lost their state, ascending. */
  get lostGroups(): number[] {
    return [...this.lost.keys()].sort((a, b) => a - b);
  }

  look(agents: readonly ReplicaAgent[]): void {
    const now = nowUs();
    if (now < this.nextUs) return;
    this.nextUs = now + LOOK_US;
    for (const { replica } of agents) {
      const { group } = replica.member;
      const tellUs = this.lost.get(group);
      if (!isLost(replica)) {
        this.lost.delete(group);
      } else if (tellUs === undefined) {
        this.lost.set(group, now);
      } else if (now >= tellUs) {
        this.lost.set(group, now + TELL_AGAIN_US);
        this.tell(describeStateLoss([group]));
      }
    }
  }
}

function isLost({ member, rows, suspicion, role }: ReplicaAgent['replica']): boolean {
  let hasLeader = role === 'leader';
  const members: MemberState[] = [];
  for (let other = 0; other < member.replicas; other++) {
    if (other === member.index) {
      const { normal, nextToDeliver, needs } = member;
      members.push({ isUp: true, isRecovering: !normal, delivered: nextToDeliver, needs });
      continue;
    }
    const { seen, normal, delivered, needs, ledBallot } = rows.peer(other);
    const isUp = seen && suspicion.isLive(other);
    hasLeader ||= isUp && ledBallot !== NO_BALLOT;
    members.push({ isUp, isRecovering: !normal, delivered, needs });
  }
  return isStateLost(members, hasLeader);
}
