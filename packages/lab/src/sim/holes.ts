/**
 * Holes, put back: each replaces one rule of the protocol by what the paper does, or by a mistake
 * that our own design could make. `tram sim --holes H5` opens one; a test shows that the simulator
 * notices every one of them. What is wrong with each is told in docs/paper-errata.md.
 */
import { OPEN, RETIRED } from 'tram-multicast/internal/memory/contract.js';
import {
  epochAt,
  HEAD_WORDS,
  numberAt,
  tailOf,
  word,
} from 'tram-multicast/internal/memory/record.js';
import type { Counters } from 'tram-multicast/internal/protocol/data-path/counters.js';
import type { LogRing } from 'tram-multicast/internal/protocol/data-path/log.js';
import { ORIGIN, originIn } from 'tram-multicast/internal/protocol/layout.js';
import { makeBallot, NO_BALLOT } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import type { Member } from 'tram-multicast/internal/protocol/member.js';
import { Rules } from 'tram-multicast/internal/protocol/rules.js';
import type { Options } from './plan.js';

export interface Hole {
  readonly title: string;
  /** The first seed, with these options, whose run the simulator finds broken. */
  readonly caughtBy: number;
  /** Which runs show it best. */
  readonly options?: Options;
  open(rules: Rules): void;
}

export const HOLES: Readonly<Record<string, Hole>> = {
  H1: {
    title: 'a new leader skips the first entry it adopted',
    caughtBy: 1,
    open: (rules) => {
      rules.beforeFirstDelivery = (member, replication) => {
        if (member.nextToDeliver >= replication.decided) return;
        member.delivered.note(replication.ring, member.nextPosition, member.layout.sizes.origin);
        member.nextPosition = (member.nextPosition + replication.wordsAt(member.nextPosition)) | 0;
        member.nextToDeliver++;
      };
    },
  },
  H2: {
    title: 'a follower delivers an entry once the next one stands in its log',
    caughtBy: 1,
    open: (rules) => {
      rules.followedLog = (member) => member.log.current();
      rules.decidedIndex = (member, log) =>
        member.log.extentOf(log, member.nextToDeliver).endIndex - 1;
    },
  },
  H3: {
    title: 'a member that grants late is not brought up',
    caughtBy: 1,
    open: (rules) => {
      rules.bringsUpLateMembers = () => false;
    },
  },
  H4: {
    title: 'a new leader forwards only what it had not delivered before',
    caughtBy: 7,
    open: (rules) => {
      rules.forwardFrom = (_replication, member) => ({
        index: member.nextToDeliver,
        position: member.nextPosition,
      });
    },
  },
  H5: {
    title: 'a new leader finds its place in an inbox by searching it for the last logged message',
    caughtBy: 38,
    open: (rules) => {
      const taken = rememberTaken(rules);
      rules.sourcesRecovered = (member) => {
        const before = taken.get(member)!;
        for (let client = 0; client < before.session.length; client++) {
          if (!lastLoggedIsInInbox(member, client)) restoreTaken(member.proposed, before, client);
        }
      };
    },
  },
  H6: {
    title: 'a new leader keeps its old place in an inbox of which the log has no entry',
    caughtBy: 1,
    open: (rules) => {
      const taken = rememberTaken(rules);
      rules.sourcesRecovered = (member) => {
        const before = taken.get(member)!;
        for (let client = 0; client < before.session.length; client++) {
          if (!logHasEntryOf(member, client)) restoreTaken(member.proposed, before, client);
        }
      };
    },
  },
  H7: {
    title: 'a candidate does not count itself',
    caughtBy: 2,
    open: (rules) => {
      rules.ownVote = () => 0;
    },
  },
  H8: {
    title: 'what a member proposes and what it has promised are one variable',
    caughtBy: 3,
    open: (rules) => {
      rules.isPreempted = () => false;
      rules.answeredBallot = (member) => member.promised;
    },
  },
  H9: {
    title: 'a request is cleared when it is read, and never made again',
    caughtBy: 13,
    open: (rules) => {
      rules.asksAgain = () => false;
      rules.requestRead = (member, slot) => {
        member.edges.memory.own.fill(0, slot.at, slot.at + HEAD_WORDS);
      };
    },
  },
  H11: {
    title: 'a grant does not revoke what another was granted before',
    caughtBy: 367,
    open: (rules) => {
      rules.logGuard = () => OPEN;
    },
  },
  H12: {
    title: 'a leader that has promised somebody else still counts its own copy',
    caughtBy: 1,
    open: (rules) => {
      rules.stepsDown = () => false;
    },
  },
  H13: {
    title: 'a leader ignores refusals while a quorum remains',
    caughtBy: 13,
    open: (rules) => {
      rules.outbids = () => false;
    },
  },
  H15: {
    title: 'the decided index travels only with the next entry',
    caughtBy: 1,
    open: (rules) => {
      rules.publishesWhenIdle = () => false;
    },
  },
  H16: {
    title: 'a leader waits for every member',
    caughtBy: 5,
    open: (rules) => {
      rules.decisionQuorum = (member) => member.replicas;
    },
  },
  H17: {
    title: 'ballots compare the member before the round',
    caughtBy: 1,
    open: (rules) => {
      const attempts = new Map<number, number>();
      rules.ballot = (_round, member) => {
        const attempt = (attempts.get(member) ?? 0) + 1;
        attempts.set(member, attempt);
        return makeBallot(member * 65536 + attempt, member);
      };
    },
  },
  H18: {
    title: 'clients are always served in the same order',
    caughtBy: 71,
    options: { faults: ['tiny-rings'], groups: 1, replicas: 3, clients: 6, messages: 600 },
    open: (rules) => {
      rules.nextTurn = () => 0;
    },
  },
  H19: {
    title: 'a record counts as soon as its head stands',
    caughtBy: 1,
    open: (rules) => {
      rules.recordWords = (window, position, epoch, number, wordsMax) => {
        if (epochAt(window, position) !== epoch) return 0;
        if (numberAt(window, position) !== (number | 0)) return 0;
        return Math.min(word(window, position), wordsMax);
      };
      rules.isWhole = () => true;
    },
  },
  H20: {
    title: 'the longest log is adopted, whatever its ballot',
    caughtBy: 30,
    options: {
      faults: ['slow-link', 'restart', 'pause', 'suspicion', 'bursts'],
      groups: 1,
      replicas: 3,
      clients: 5,
      messages: 1000,
      ringBytes: 65536,
    },
    open: (rules) => {
      rules.isFurther = (a, b) => a.endIndex > b.endIndex;
    },
  },
  H21: {
    title: 'a restarted member takes part at once, having forgotten its promises',
    caughtBy: 9,
    options: {
      faults: ['restart', 'pause'],
      groups: 1,
      replicas: 3,
      clients: 5,
      messages: 600,
      ringBytes: 65536,
    },
    open: (rules) => {
      rules.recoversBeforeGranting = () => false;
    },
  },
  H22: {
    title: 'a leader always writes the same ring',
    caughtBy: 51,
    options: {
      faults: ['slow-link', 'suspicion', 'kill'],
      triggers: ['adopted own log'],
      groups: 1,
      replicas: 3,
      messages: 600,
    },
    open: (rules) => {
      rules.spareRing = () => 0;
    },
  },
  H23: {
    title: 'a member seals the log that it last followed, not the one in its memory',
    caughtBy: 8,
    options: {
      faults: ['suspicion', 'pause', 'restart'],
      triggers: ['granted', 'adopted own log'],
      groups: 1,
      replicas: 3,
      messages: 600,
    },
    open: (rules) => {
      const followed = new WeakMap<Member, LogRing>();
      const { followedLog } = rules;
      rules.followedLog = (member) => {
        const log = followedLog.call(rules, member);
        if (log !== undefined) followed.set(member, log);
        return log;
      };
      rules.sealedLog = (member) => {
        const current = member.log.current();
        return current?.writer === member.index ? current : followed.get(member);
      };
    },
  },
  H24: {
    title: 'grants count as they come, even from a life that has ended',
    caughtBy: 22,
    options: {
      faults: ['suspicion', 'restart', 'pause'],
      groups: 1,
      replicas: 5,
      clients: 5,
      messages: 600,
      ringBytes: 1048576,
    },
    open: (rules) => {
      rules.trustsGrantsAsTheyCome = () => true;
    },
  },
  H25: {
    title: 'a leader drops what all members that seem alive have delivered',
    caughtBy: 183,
    options: {
      faults: ['restart', 'pause'],
      triggers: ['log truncated', 'left behind', 'snapshot served'],
      groups: 1,
      replicas: 3,
      messages: 900,
      ringBytes: 2048,
    },
    open: (rules) => {
      rules.truncationLimit = (liveMinimum) => liveMinimum;
    },
  },
  H26: {
    title: 'a child reports what its leader has taken, not what is decided',
    caughtBy: 80,
    open: (rules) => {
      rules.countFromParent = (member) =>
        Math.max(member.delivered.nextFromParent, member.proposed.nextFromParent);
    },
  },
  H27: {
    title: 'a member gets only the entries that it lacks',
    caughtBy: 1,
    open: (rules) => {
      rules.installFrom = (replication, log) =>
        log.endIndex > replication.baseIndex && log.endIndex <= replication.endIndex
          ? { index: log.endIndex, position: log.endPosition }
          : { index: replication.baseIndex, position: replication.ring.base };
    },
  },
  H28: {
    title: 'a leader notices a higher promise only when it writes',
    caughtBy: 37,
    open: (rules) => {
      rules.outbids = (refused) => refused;
    },
  },
  H29: {
    title: 'a member that resumes has forgotten its promise',
    caughtBy: 35,
    open: (rules) => {
      rules.keptPromise = () => NO_BALLOT;
    },
  },
  H30: {
    title: 'a member that resumes grants the ballot it had promised once more',
    caughtBy: 35,
    open: (rules) => {
      const { tellsAgain } = rules;
      rules.tellsAgain = (member, candidateIncarnation) =>
        member.promisedIncarnation === 0 || tellsAgain.call(rules, member, candidateIncarnation);
    },
  },
  H31: {
    title: 'a member that is killed while it recovers resumes as if it had',
    caughtBy: 18,
    options: {
      faults: ['restart', 'kill', 'pause'],
      groups: 1,
      replicas: 3,
      clients: 5,
      messages: 600,
      ringBytes: 65536,
    },
    open: (rules) => {
      rules.isKept = (_wasMember, permitted) => permitted !== RETIRED;
    },
  },
};

/** The rules with these holes in them; none gives the protocol as it is. */
export function rulesWith(holes: readonly string[]): Rules {
  const rules = new Rules();
  for (const name of holes) HOLES[name]!.open(rules);
  return rules;
}

/** Remember what each member had taken from its inboxes when it last led. */
function rememberTaken(rules: Rules): WeakMap<Member, Counters> {
  const taken = new WeakMap<Member, Counters>();
  rules.resumeSources = (proposed, delivered, member) => {
    const before = member.newCounters();
    before.copyFrom(proposed);
    taken.set(member, before);
    proposed.copyFrom(delivered);
  };
  return taken;
}

function restoreTaken(proposed: Counters, before: Counters, client: number): void {
  proposed.session[client] = before.session[client]!;
  proposed.nextNumber[client] = before.nextNumber[client]!;
  proposed.nextPosition[client] = before.nextPosition[client]!;
}

function logHasEntryOf(member: Member, client: number): boolean {
  const ring = member.log.under(member.promised, member.index)!;
  const { endPosition } = member.log.extentOf(ring, member.nextToDeliver);
  let position = ring.base;
  while (position !== endPosition) {
    const words = word(ring, position);
    if (word(ring, position + originIn(words) + ORIGIN.source) === client) return true;
    position = (position + words) | 0;
  }
  return false;
}

/** The record before the next one: it ends where that one starts, so its tail stands just there. */
function lastLoggedIsInInbox(member: Member, client: number): boolean {
  const { layout, memory } = member.edges;
  const { session, nextNumber, nextPosition } = member.proposed;
  if (session[client] === 0) return false;
  const at = layout.inboxRing(client);
  const place = (nextPosition[client]! - 1) & (layout.inboxWords - 1);
  return memory.own[at + place] === tailOf(session[client]!, (nextNumber[client]! - 1) | 0);
}
