/**
 * The holes of docs/paper-errata.md, put back: H1 to H19 are errors of the paper's pseudo-code, the others are errors
 * that our own design could have. H10 and H14 are missing: the design leaves no place for them.
 */
import {
  FOLLOWER,
  FORWARDING,
  GRANTS,
  INBOX,
  LEADER,
  LOG,
  MEMBER,
  REPLICA,
  REPLICATION,
  ROWS,
  TAKEOVER,
  TRUNCATION,
} from './files.js';
import type { Mutation } from './mutation.js';

/** Go back to the place in a client's inbox that an earlier leadership of this member had reached. */
const keepOldPlaceUnless = (isKnown: string): string => `
  const before = member.newCounters();
  before.copyFrom(this.proposed);
  this.recoverCounters();
  const { session, nextNumber, nextPosition } = this.proposed;
  for (let client = 0; client < session.length; client++) {
    if (${isKnown}) continue;
    session[client] = before.session[client];
    nextNumber[client] = before.nextNumber[client];
    nextPosition[client] = before.nextPosition[client];
  }`;

export const HOLES: Readonly<Record<string, Mutation>> = {
  H1: {
    title: 'a new leader does not deliver the first entry that it adopted',
    caughtBy: { seed: 12, as: 'divergence' },
    edits: [
      {
        file: LEADER,
        find: 'replication.decided = replication.endIndex;',
        replace: `replication.decided = replication.endIndex;
          if (member.nextToDeliver < replication.decided) {
            member.delivered.note(replication.ring, member.nextPosition, member.layout.sizes.firstIndex);
            member.nextPosition = (member.nextPosition + replication.wordsAt(member.nextPosition)) | 0;
            member.nextToDeliver++;
          }`,
      },
    ],
  },
  H2: {
    title: 'a follower delivers an entry once its log has the next one',
    caughtBy: { seed: 1, as: 'liveness' },
    edits: [
      {
        file: FOLLOWER,
        find: 'decidedIndex(member, log)',
        replace: 'member.log.extentOf(log, member.nextToDeliver).endIndex - 1',
      },
    ],
  },
  H3: {
    title: 'a leader does not install its log at a member that grants late',
    caughtBy: { seed: 90, as: 'liveness' },
    edits: [
      {
        file: TAKEOVER,
        find: 'const known = this.grants[answer.member];',
        replace: 'continue;',
      },
    ],
  },
  H4: {
    title: 'a new leader forwards only entries that it has not delivered itself',
    caughtBy: { seed: 4, as: 'liveness' },
    edits: [
      {
        file: FORWARDING,
        find: 'this.index = replication.baseIndex;\n        this.position = replication.ring.base;',
        replace: `this.index = replication.member.nextToDeliver;
          this.position = replication.member.nextPosition;`,
      },
    ],
  },
  H5: {
    title:
      'a new leader finds its place in an inbox by searching there for the last logged message',
    caughtBy: { seed: 39, as: 'liveness' },
    edits: [
      {
        file: LEADER,
        find: 'this.recoverCounters();',
        // The record before the next one ends where that one starts, so the word before that start is its tail.
        replace: keepOldPlaceUnless(
          'session[client] !== 0 && word(this.clients[client].window, nextPosition[client] - 1) === ' +
            'tailOf(this.clients[client].window.salt, session[client], (nextNumber[client] - 1) | 0)',
        ),
      },
      {
        file: LEADER,
        find: 'isChecked, numberAt, ',
        replace: 'isChecked, numberAt, tailOf, ',
      },
    ],
  },
  H6: {
    title: 'a new leader keeps its old place in an inbox if the log has no entry from it',
    caughtBy: { seed: 2, as: 'assertion' },
    edits: [
      {
        file: LEADER,
        find: 'this.recoverCounters();',
        replace: `const logged = new Set();
          for (let position = replication.ring.base, words; position !== replication.endPosition; position = (position + words) | 0) {
            words = word(replication.ring, position);
            logged.add(word(replication.ring, position + sourceIn(words) + SOURCE.id));
          }${keepOldPlaceUnless('logged.has(client)')}`,
      },
    ],
  },
  H7: {
    title: 'a candidate does not count itself',
    caughtBy: { seed: 4, as: 'liveness' },
    edits: [{ file: TAKEOVER, find: 'let count = 1;', replace: 'let count = 0;' }],
  },
  H8: {
    title: 'one variable holds the ballot that a member proposes and the one that it has promised',
    caughtBy: { seed: 134, as: 'liveness' },
    edits: [
      { file: TAKEOVER, find: 'member.promised !== this.ballot', replace: 'false' },
      {
        file: GRANTS,
        find: 'slot.body(GRANT.ballot) !== this.ballot',
        replace: 'slot.body(GRANT.ballot) !== this.member.promised',
      },
    ],
  },
  H9: {
    title: 'a request is cleared when it is read, and is never sent again',
    caughtBy: { seed: 416, as: 'liveness' },
    edits: [
      {
        file: GRANTS,
        find: 'nowUs - this.askedUs < edges.timing.askAgainUs * (1 << doublings)',
        replace: 'this.timesAsked > 0',
      },
      {
        file: GRANTS,
        find: 'const incarnation = slot.body(REQUEST.incarnation);',
        replace: `const incarnation = slot.body(REQUEST.incarnation);
          slot.slot.words.fill(0, slot.slot.at, slot.slot.at + 4);`,
      },
    ],
  },
  H11: {
    title: 'a grant does not revoke the permission that an earlier grant gave',
    caughtBy: { seed: 145, as: 'divergence' },
    edits: [{ file: REPLICATION, find: 'copy.guard = key;', replace: 'copy.guard = OPEN;' }],
  },
  H12: {
    title: 'a leader that has promised another candidate still counts its own copy',
    caughtBy: { seed: 421, as: 'divergence' },
    edits: [
      {
        file: REPLICA,
        find: 'this.member.promised !== this.replication.ballot',
        replace: 'false',
      },
    ],
  },
  H13: {
    title: 'a leader ignores refusals while a quorum remains',
    caughtBy: { seed: 416, as: 'liveness' },
    edits: [
      { file: REPLICA, find: '(isNotified || hasNews) && this.mustOutbid()', replace: 'false' },
    ],
  },
  H15: {
    title: 'the decided index is sent only with the next entry',
    caughtBy: { seed: 1, as: 'liveness' },
    edits: [
      {
        file: LEADER,
        find: 'replication.publishDecided()',
        replace: 'replication.decided === replication.endIndex ? 0 : replication.publishDecided()',
      },
    ],
  },
  H16: {
    title: 'a leader waits for every member',
    caughtBy: { seed: 1, as: 'liveness' },
    edits: [
      {
        file: REPLICATION,
        find: 'const { quorum } = this.member;',
        replace: 'const quorum = this.member.replicas;',
      },
    ],
  },
  H17: {
    title: 'ballots are compared by member first, then by round',
    caughtBy: { seed: 4, as: 'assertion' },
    edits: [
      {
        file: TAKEOVER,
        find: 'export class Takeover {',
        replace: 'export class Takeover {\n attempts = 0;',
      },
      {
        file: TAKEOVER,
        find: 'makeBallot(roundOf(above) + 1, member.index)',
        replace: 'makeBallot(member.index * 65536 + ++this.attempts, member.index)',
      },
    ],
  },
  H18: {
    title: 'clients are always served in the same order',
    caughtBy: {
      seed: 68,
      as: 'fairness',
      options: { faults: ['tiny-rings'], groups: 1, replicas: 3, clients: 6, messages: 600 },
    },
    edits: [{ file: LEADER, find: '(this.turn + i) % clients', replace: 'i' }],
  },
  H19: {
    title: 'a record counts as complete once its head has landed',
    caughtBy: { seed: 4, as: 'integrity' },
    edits: [
      { file: INBOX, find: 'framedWords, ', replace: 'epochAt, word, ' },
      {
        file: INBOX,
        find: 'export class ClientInbox {',
        replace: `function framedWords(window, position, epoch, number, wordsMax) {
            if (epochAt(window, position) !== epoch || numberAt(window, position) !== (number | 0)) return 0;
            return Math.min(word(window, position), wordsMax);
          }
          export class ClientInbox {`,
      },
      {
        file: LEADER,
        find: '!isChecked(window, position, words, proposed.session[client], number, hash)',
        replace: 'false',
      },
    ],
  },
  H20: {
    title: 'the longest log is adopted, whatever its ballot',
    caughtBy: {
      seed: 23,
      as: 'reply',
      options: {
        faults: ['slow-link', 'restart', 'pause', 'suspicion', 'bursts'],
        groups: 1,
        replicas: 3,
        clients: 6,
        messages: 600,
        ringBytes: 65536,
      },
    },
    edits: [
      {
        file: LOG,
        find: 'a.ballot > b.ballot || (a.ballot === b.ballot && a.endIndex > b.endIndex)',
        replace: 'a.endIndex > b.endIndex',
      },
    ],
  },
  H21: {
    title: 'a member that has lost its memory, and its promises with it, takes part at once',
    caughtBy: {
      seed: 3,
      as: 'divergence',
      options: {
        faults: ['restart', 'pause'],
        groups: 1,
        replicas: 3,
        clients: 5,
        messages: 600,
        ringBytes: 65536,
      },
    },
    edits: [
      {
        file: REPLICA,
        find: "const recovers = member.past === 'lost';",
        replace: 'const recovers = false;\n member.normal = true;',
      },
    ],
  },
  H22: {
    title: 'a leader always writes the same ring',
    caughtBy: {
      seed: 158,
      as: 'assertion',
      options: {
        faults: ['slow-link', 'suspicion', 'kill'],
        triggers: ['adopted own log'],
        groups: 1,
        replicas: 3,
        messages: 600,
      },
    },
    edits: [
      {
        file: LOG,
        find: 'log.ballot !== NO_BALLOT && log.writer === writer ? 1 - log.ringIndex : 0',
        replace: '0',
      },
    ],
  },
  H23: {
    title: 'a member seals the log that it last followed, not the one in its memory',
    caughtBy: {
      seed: 23,
      as: 'divergence',
      options: {
        faults: ['suspicion', 'pause', 'restart'],
        triggers: ['granted', 'adopted own log'],
        groups: 1,
        replicas: 3,
        messages: 600,
      },
    },
    edits: [
      {
        file: FOLLOWER,
        find: 'const followed = member.log.under(member.promised, member.promisedMember);',
        replace: `const followed = member.log.under(member.promised, member.promisedMember);
          member.followed = followed ?? member.followed;`,
      },
      {
        file: MEMBER,
        find: 'export class Member {',
        replace: 'export class Member {\n followed;',
      },
      {
        file: MEMBER,
        find: 'this.log.current()',
        replace: '(this.log.current()?.writer === this.index ? this.log.current() : this.followed)',
      },
    ],
  },
  H24: {
    title: 'a grant counts even if the incarnation that made it has ended',
    caughtBy: {
      seed: 29,
      as: 'divergence',
      options: {
        faults: ['suspicion', 'restart', 'pause'],
        groups: 1,
        replicas: 5,
        clients: 5,
        messages: 600,
        ringBytes: 1048576,
      },
    },
    edits: [
      { file: TAKEOVER, find: 'grant.confirmed = false;', replace: 'grant.confirmed = true;' },
    ],
  },
  H25: {
    title:
      'a leader drops entries that all live members have delivered, even if these are fewer than f+1',
    caughtBy: {
      seed: 51,
      as: 'liveness',
      options: {
        faults: ['restart', 'pause'],
        triggers: ['log truncated', 'left behind', 'snapshot served'],
        groups: 1,
        replicas: 3,
        messages: 900,
        ringBytes: 2048,
      },
    },
    edits: [
      {
        file: TRUNCATION,
        find: 'Math.min(byQuorum, this.deliveredByLive())',
        replace: 'this.deliveredByLive()',
      },
    ],
  },
  H26: {
    title: 'a child reports entries that its leader has taken, even if they are not decided',
    caughtBy: { seed: 180, as: 'liveness' },
    edits: [
      {
        file: LEADER,
        find: 'this.proposed = member.newCounters();',
        replace: 'this.proposed = member.proposed = member.newCounters();',
      },
      {
        file: ROWS,
        find: 'member.delivered.nextFromParent',
        replace: 'Math.max(member.delivered.nextFromParent, member.proposed.nextFromParent)',
      },
    ],
  },
  H27: {
    title: 'a leader sends a granter only the entries that it lacks',
    caughtBy: { seed: 18, as: 'assertion' },
    edits: [
      {
        file: REPLICATION,
        find: 'copy.sentIndex = this.baseIndex;',
        replace: `const hasSome = log.endIndex > this.baseIndex && log.endIndex <= this.endIndex;
          copy.sentIndex = hasSome ? log.endIndex : this.baseIndex;`,
      },
      {
        file: REPLICATION,
        find: 'copy.sentPosition = this.basePosition;',
        replace: 'copy.sentPosition = hasSome ? log.endPosition : this.basePosition;',
      },
    ],
  },
  H28: {
    title: 'a leader notices a higher promise only when it writes',
    caughtBy: { seed: 176, as: 'liveness' },
    edits: [
      {
        file: REPLICA,
        find: '(isNotified || hasNews) && this.mustOutbid()',
        replace: '(isNotified || hasNews) && this.writeWasRefused && this.mustOutbid()',
      },
      {
        file: REPLICA,
        find: 'export class Replica {',
        replace: 'export class Replica {\n writeWasRefused = false;',
      },
      {
        file: REPLICA,
        find: "this.role = 'leader';",
        replace: "this.role = 'leader';\n this.writeWasRefused = false;",
      },
      {
        file: REPLICA,
        find: "const isRefused = outcome === 'refused';",
        replace: "const isRefused = outcome === 'refused';\n this.writeWasRefused ||= isRefused;",
      },
    ],
  },
  H29: {
    title: 'a member that resumes has lost its promise',
    caughtBy: { seed: 14, as: 'assertion' },
    edits: [{ file: MEMBER, find: 'this.promised = this.kept.promised;', replace: '' }],
  },
  H30: {
    title: 'a member that resumes grants the ballot that it had promised a second time',
    caughtBy: { seed: 483, as: 'liveness' },
    edits: [
      {
        file: GRANTS,
        find: 'incarnation === this.member.promisedIncarnation',
        replace: '[0, incarnation].includes(this.member.promisedIncarnation)',
      },
    ],
  },
  H31: {
    title: 'a member that was killed while it recovered resumes as if it had recovered',
    caughtBy: {
      seed: 82,
      as: 'divergence',
      options: {
        faults: ['restart', 'kill', 'pause'],
        groups: 1,
        replicas: 3,
        clients: 5,
        messages: 600,
        ringBytes: 65536,
      },
    },
    edits: [
      {
        file: MEMBER,
        find: 'this.kept.isMember && permitted !== RETIRED',
        replace: 'permitted !== RETIRED',
      },
    ],
  },
};
