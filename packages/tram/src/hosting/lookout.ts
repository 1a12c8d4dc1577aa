/**
 * Looks, for a host, whether a group of one of its replicas has lost its state for good, and tells so: in words, and in the
 * statistics of the replica, where `status.ts` finds it. A host on a machine does not see the memory of other hosts, so it
 * judges by what its replicas have read of each other.
 */
import { NO_BALLOT } from '../protocol/leadership/ballot.js';
import { type Standing, StateLoss } from '../protocol/leadership/state-loss.js';
import type { Replica } from '../protocol/replica.js';
import { nowUs } from './clock.js';
import { describeStateLoss } from './status.js';

const LOOK_US = 1_000_000;
const TELL_AGAIN_US = 60_000_000;

/** The part of a `ReplicaAgent` that it uses. */
export interface Observed {
  readonly replica: Pick<Replica, 'member' | 'rows' | 'suspicion'>;
  noteStateLost(isLost: boolean): void;
}

export class Lookout {
  private nextUs = 0;
  /** By group, one of our replicas looks: several of them would see the same. */
  private readonly watches = new Map<
    number,
    { readonly agent: Observed; readonly loss: StateLoss }
  >();
  /** The groups that have lost their state, and when to tell it again. */
  private readonly lost = new Map<number, number>();

  constructor(
    agents: readonly Observed[],
    private readonly tell: (text: string) => void,
  ) {
    for (const agent of agents) {
      const { group } = agent.replica.member;
      if (!this.watches.has(group)) this.watches.set(group, { agent, loss: new StateLoss() });
    }
  }

  /** The groups that have lost their state, ascending. */
  get lostGroups(): number[] {
    return [...this.lost.keys()].sort((a, b) => a - b);
  }

  look(now = nowUs()): void {
    if (now < this.nextUs) return;
    this.nextUs = now + LOOK_US;
    for (const [group, { agent, loss }] of this.watches) {
      const isLost = loss.look(standings(agent.replica, now));
      agent.noteStateLost(isLost);
      if (!isLost) {
        this.lost.delete(group);
      } else if (now >= (this.lost.get(group) ?? 0)) {
        this.lost.set(group, now + TELL_AGAIN_US);
        this.tell(describeStateLoss([group]));
      }
    }
  }
}

/** What a replica knows of the members of its group. */
function standings(
  { member, rows, suspicion }: Observed['replica'],
  now: number,
): (Standing | undefined)[] {
  return Array.from({ length: member.replicas }, (_, other) => {
    if (other === member.index) return standingOf(member, now);
    const peer = rows.peer(other);
    return peer.seen && suspicion.isLive(other) ? peer : undefined;
  });
}

function standingOf(member: Observed['replica']['member'], now: number): Standing {
  const { incarnation, normal, promised, nextToDeliver, needs } = member;
  const logBallot = member.log.current()?.marker ?? NO_BALLOT;
  // It is heard from all the time.
  return { incarnation, beats: now, normal, promised, logBallot, delivered: nextToDeliver, needs };
}
