/**
 * Mutations that break further rules of the protocol and of its memory, besides the holes: errors that our design must
 * not contain.
 */
import {
  ADOPTION,
  BACKLOG,
  CLIENT,
  COUNTERS,
  DELIVERY,
  FEED,
  FOLLOWER,
  KEY,
  LAYOUT,
  LEADER,
  MEMBER,
  RECOVERY,
  REPLICA,
  REPLICATION,
  REPLIES,
  ROW,
  ROWS,
  SHARED,
  SNAPSHOT,
  SNAPSHOTS,
  STATE_LOSS,
  SUSPICION,
  TAKEOVER,
  TRUNCATION,
} from './files.js';
import type { Mutation } from './mutation.js';

/** What goes down the tree. */
const FEEDS: Readonly<Record<string, Mutation>> = {
  'feed-end-first': {
    title: 'the end of a feed is published before its entries are written',
    caughtBy: { seed: 6, as: 'integrity' },
    edits: [
      {
        file: FEED,
        find: 'const words = (this.endPosition - this.sentPosition) | 0;',
        replace: `const words = (this.endPosition - this.sentPosition) | 0;
          if (words > 0) for (let other = 0; other < this.member.replicas; other++) if (this.isCurrent(other)) this.tellEnd(other, this.endPosition);`,
      },
    ],
  },
  'feed-old-start-stays': {
    title: 'a feed that starts again keeps its old start valid while it is written',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: FEED, find: 'this.writeStart(other, NO_BALLOT);', replace: '' }],
  },
  'feed-old-end-stays': {
    title: 'a feed that starts again keeps its old end valid while it is written',
    caughtBy: { seed: 51, as: 'integrity' },
    edits: [{ file: FEED, find: 'this.tellEnd(other, this.oldestPosition);', replace: '' }],
  },
  'feed-copy-unchecked': {
    title: 'entries copied from a feed count although the feed has started again meanwhile',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: LEADER, find: '!parent.isCurrent()', replace: '!parent.isCurrent() && false' }],
  },
  'feed-dropped-undecided': {
    title: 'a feed drops entries that the child has not decided',
    caughtBy: { seed: 6, as: 'liveness' },
    edits: [
      {
        file: FEED,
        find: 'this.dropBelow(this.decidedByChild);',
        replace: 'this.dropBelow(this.logIndex);',
      },
    ],
  },
  'feed-loss-ignored': {
    title: 'entries that were lost on their way to a feed are not written again',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: FEED, find: 'this.incarnations[other] = UNKNOWN;', replace: '' }],
  },
  'truncates-owed': {
    title: 'a leader drops entries that a child has not decided',
    caughtBy: { seed: 6, as: 'liveness' },
    edits: [
      {
        file: TRUNCATION,
        find: 'index < decidedByAll || !this.isOwed(index, position)',
        replace: 'true',
      },
    ],
  },
  'same-salt': {
    title: 'the checksums of all logs have the same salt',
    caughtBy: { script: 'salted-checks' },
    edits: [{ file: LAYOUT, find: 'check: check ^ (group + 1)', replace: 'check' }],
  },
};

/** Who suspects whom, and who may campaign. */
const CAMPAIGNING: Readonly<Record<string, Mutation>> = {
  'campaigns-against-followed': {
    title: 'a member campaigns although enough others report that they hear the leader',
    caughtBy: { script: 'suspicion' },
    edits: [{ file: SUSPICION, find: '!hasEnded && this.isFollowed(ballot)', replace: 'false' }],
  },
  'campaigns-alone': {
    title: 'a member campaigns although it hears from too few members to lead',
    caughtBy: { script: 'suspicion' },
    edits: [
      { file: SUSPICION, find: 'this.countHeard(true) >= this.member.quorum', replace: 'true' },
    ],
  },
  'waits-for-patient': {
    title: 'a patient member does not give up a leader that the others no longer trust',
    caughtBy: { script: 'suspicion' },
    edits: [{ file: SUSPICION, find: '!this.isGivenUp(member)', replace: 'true' }],
  },
  'waits-for-lonely': {
    title: 'members wait for a leader that hears from too few members to lead',
    caughtBy: { script: 'suspicion' },
    edits: [
      { file: SUSPICION, find: '!this.monitors[member].isAlone(this.nowUs)', replace: 'true' },
    ],
  },
  'tells-its-patience': {
    title: 'a member reports that it hears the leader as long as it does not suspect it',
    caughtBy: { script: 'suspicion' },
    edits: [
      {
        file: SUSPICION,
        find: 'return this.monitors[owner].isBeating(this.nowUs)',
        replace: 'return true',
      },
    ],
  },
  'first-before-highest': {
    title: 'members trust the first member, not the owner of the highest ballot that is pursued',
    caughtBy: { script: 'lateness' },
    edits: [
      { file: SUSPICION, find: 'promised > highest && this.isTaken(promised)', replace: 'false' },
    ],
  },
  'forgets-request': {
    title: 'a member that grants a ballot does not remember that its owner pursues it',
    caughtBy: { script: 'lateness' },
    edits: [{ file: ROW, find: 'this.promised = Math.max(this.promised, ballot);', replace: ';' }],
  },
  'lateness-excuses-all': {
    title: 'a member that is late with every step never suspects another member',
    caughtBy: { seed: 42, as: 'liveness' },
    edits: [
      {
        file: SUSPICION,
        find: 'nowUs - this.nowUs - this.member.edges.timing.restUs',
        replace: 'nowUs - this.nowUs',
      },
    ],
  },
  'resumes-impatiently': {
    title: 'a member that resumes campaigns before it has heard from any other member',
    caughtBy: { script: 'resume' },
    edits: [
      {
        file: REPLICA,
        find: 'this.follower.backOff(nowUs);\n        }\n        rows.publish();',
        replace: '}\n rows.publish();',
      },
    ],
  },
};

/** Promises, grants, and the log that a new leader adopts and installs. */
const TAKING_OVER: Readonly<Record<string, Mutation>> = {
  'permits-before-storing': {
    title: 'a member changes its permission before it stores its promise',
    caughtBy: { script: 'resume' },
    edits: [
      {
        file: MEMBER,
        find: 'this.kept.promised = ballot;',
        replace: 'this.edges.memory.permit(this.key);\n this.kept.promised = ballot;',
      },
    ],
  },
  'waits-for-dead-source': {
    title: 'a candidate waits for a log whose owner has restarted',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: "this.phase === 'adopt' && !this.sourceIsCurrent()",
        replace: 'false',
      },
    ],
  },
  'never-asks-next-incarnation': {
    title: 'a candidate does not ask a granter again when the granter has restarted',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: 'this.rows.peer(other).incarnation <= grant.incarnation',
        replace: 'true',
      },
    ],
  },
  'taken-ballot-kept': {
    title: 'a leader keeps its ballot although a member that had promised it now refuses it',
    caughtBy: { seed: 5, as: 'liveness' },
    edits: [{ file: TAKEOVER, find: 'this.ballotIsTaken = true;', replace: ';' }],
  },
  'unreachable-ballot-kept': {
    title: 'a candidate keeps a ballot under which it can no longer write to a member',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: 'isNews && incarnation === grant.incarnation && promised === this.ballot',
        replace: 'false',
      },
    ],
  },
  'installs-twice': {
    title: 'a leader installs its log twice at one incarnation of a member under one ballot',
    caughtBy: { seed: 28, as: 'liveness' },
    edits: [{ file: TAKEOVER, find: 'known.incarnation === answer.incarnation', replace: 'false' }],
  },
  'marker-first': {
    title: 'the marker of a log is written before its entries',
    caughtBy: { seed: 114, as: 'assertion' },
    edits: [
      {
        file: REPLICATION,
        find: 'const to = copy.controlAt + base;',
        replace: `const to = copy.controlAt + base;
          this.writeControl(copy, LOG_CONTROL.marker, this.ballot);`,
      },
    ],
  },
  'marker-of-any-incarnation': {
    title: 'a marker counts although its ring was written for an earlier incarnation of the member',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: KEY,
        find: 'key !== OPEN && (key - first + KEYS) % KEYS < KEYS / 2',
        replace: 'true',
      },
    ],
  },
  'unkeyed-marker': {
    title: 'a marker counts in a ring without a key',
    caughtBy: { script: 'takeover-races' },
    edits: [{ file: KEY, find: 'key !== OPEN && ', replace: '' }],
  },
  'same-keys': {
    title: 'a member that has lost its region makes the keys of its earlier incarnations again',
    caughtBy: { script: 'takeover-races' },
    edits: [{ file: MEMBER, find: 'identity.firstKey', replace: '1' }],
  },
  'few-keys': {
    title: 'a member makes the same keys again after a few promises',
    caughtBy: { script: 'takeover-races' },
    edits: [
      { file: KEY, find: '(key + count - 1) % KEYS', replace: '(key + (count % 2) - 1) % KEYS' },
    ],
  },
  'adopts-overwritten': {
    title: 'a candidate adopts entries that were dropped and overwritten while it copied its log',
    caughtBy: { script: 'interrupted-steps' },
    edits: [
      {
        file: ADOPTION,
        find: 'distance(basePosition, log.basePosition) > 0',
        replace: 'false',
      },
    ],
  },
  'old-completions-count': {
    title: 'completions of a much earlier installation count',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: REPLICATION,
        find: "if (copy.phase === 'absent' || guard !== copy.guard)\n            return true;",
        replace: '',
      },
    ],
  },
};

/** Deciding, dropping and catching up. */
const DELIVERING: Readonly<Record<string, Mutation>> = {
  'decided-before-held': {
    title: 'followers are told that entries are decided before f+1 members hold them',
    caughtBy: { seed: 116, as: 'divergence' },
    edits: [
      {
        file: REPLICATION,
        find: 'const { decided, memory } = this;',
        replace: 'const { endIndex: decided, memory } = this;',
      },
    ],
  },
  'truncates-last': {
    title: 'a leader drops the last decided entry',
    caughtBy: { seed: 1, as: 'assertion' },
    edits: [
      {
        file: TRUNCATION,
        find: 'Math.min(deliveredIndex, replication.decided - 1)',
        replace: 'deliveredIndex',
      },
    ],
  },
  'old-incarnation-delivered': {
    title: 'a leader drops entries that only an earlier incarnation of a member has delivered',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: TRUNCATION,
        find: 'replication.incarnationOf(other) > peer.incarnation',
        replace: 'false',
      },
    ],
  },
  'recovers-too-early': {
    title: 'a recovering member becomes a full member before it has delivered what is decided',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: RECOVERY,
        find: 'this.delivering.deliver(log, log.marker, decided, false);',
        replace: '',
      },
      { file: RECOVERY, find: 'member.nextToDeliver < decided', replace: 'false' },
    ],
  },
  'mixed-snapshot': {
    title: 'a snapshot is assembled from chunks of two incarnations of its server',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: SNAPSHOTS,
        find: '(this.received === undefined || this.isOfSame(slot))',
        replace: 'true',
      },
    ],
  },
  'snapshot-failure-stops': {
    title: 'a member stops if its service fails to take a snapshot',
    caughtBy: { script: 'service' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'if (error instanceof InvariantError)',
        replace: 'if (true)',
      },
    ],
  },
  'waits-for-lagging': {
    title: 'a leader whose log is full waits until a member that lags has delivered',
    caughtBy: { seed: 425, as: 'availability' },
    edits: [{ file: TRUNCATION, find: 'this.waitUs > 0', replace: 'true' }],
  },
  'forgets-waiting': {
    title: 'a leader forgets how much longer its log has waited for members that lag than it may',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: TRUNCATION, find: '-this.waitUsMax', replace: '0' }],
  },
  'believes-old-rows': {
    title:
      'a member that lags does not ask its leader for more than the last row that it has read says',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: SNAPSHOTS, find: '&& !isOurLeader', replace: '' }],
  },
  'no-backlog': {
    title: 'a leader drops entries that a member that lags has not delivered, and keeps no copy',
    caughtBy: { script: 'left-behind' },
    edits: [
      { file: TRUNCATION, find: '!hasEnded && deliveredBy[other] >= oldest', replace: 'false' },
    ],
  },
  'snapshot-not-continued': {
    title: 'a leader does not keep the entries after a snapshot that is being fetched',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: TRUNCATION, find: 'holdAt < oldest || holdAt === 0', replace: 'true' }],
  },
  'backlog-of-any-ballot': {
    title: 'a piece of the backlog has entries of several ballots',
    caughtBy: { seed: 287, as: 'assertion' },
    edits: [{ file: BACKLOG, find: 'piece?.ballot !== ballot', replace: 'piece === undefined' }],
  },
  'fetches-from-any': {
    title: 'a member that needs a snapshot fetches it from one that has not delivered more',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: SNAPSHOTS, find: 'delivered <= member.nextToDeliver', replace: 'false' }],
  },
  'never-left-behind': {
    title: 'a follower does not notice that it was left behind',
    caughtBy: { seed: 2, as: 'liveness' },
    edits: [{ file: DELIVERY, find: 'return isBehind ? first : 0;', replace: 'return 0;' }],
  },
  'delivers-while-overwritten': {
    title: 'a follower delivers entries that may have been overwritten while it copied them',
    caughtBy: { script: 'interrupted-steps' },
    edits: [{ file: DELIVERY, find: '!leads && this.mayBeOverwritten(log)', replace: 'false' }],
  },
  'looks-at-base-once': {
    title:
      'a follower checks only once whether it was left behind, although the base may move meanwhile',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: DELIVERY, find: 'log.base === base', replace: 'true' }],
  },
};

/** What a snapshot carries, and how it is put together. */
const RESTORING: Readonly<Record<string, Mutation>> = {
  'restores-other-state': {
    title: 'one bit of the state of the service changes when a snapshot is restored',
    caughtBy: { seed: 2, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'at = end;',
        replace: `at = end;
          words[at + (words[FIXED.stateBytes] >> 2) - 1] ^= 1;`,
      },
    ],
  },
  'restores-other-counters': {
    title: "a snapshot restores the clients' numbers, but not their places in the inboxes",
    caughtBy: { seed: 2, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'delivered.nextPosition[client] = words[at + CLIENT.nextPosition];',
        replace: '',
      },
    ],
  },
  'restores-no-replies': {
    title: 'a snapshot does not restore the kept replies',
    caughtBy: { seed: 2, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'replies.load(words.subarray(at, indexAt), words.subarray(indexAt, end));',
        replace: '',
      },
    ],
  },
  'forgets-left-snapshot': {
    title: 'a member that resumes ignores the snapshot that it left',
    caughtBy: { seed: 25, as: 'liveness' },
    edits: [{ file: REPLICA, find: 'this.snapshots.resumeFrom(left);', replace: '{}' }],
  },
  'restores-needlessly': {
    title: 'a member restores the snapshot that it left although its log still has its beginning',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: REPLICA, find: '!hasAllOf(left, member)', replace: 'true' }],
  },
  'ignores-kept-log': {
    title: 'a member without the log of the ballot that it has promised delivers nothing',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: FOLLOWER, find: 'followed ?? member.log.current()', replace: 'followed' }],
  },
  'ignores-own-entries': {
    title: 'a candidate does not deliver from its own log what the adopted log has dropped',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: TAKEOVER, find: 'this.deliverDropped();', replace: '' }],
  },
  'calls-fetching-lost': {
    title: 'the state of a group is called lost although a member is about to fetch it',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: STATE_LOSS, find: ' && member.promised === NO_BALLOT', replace: '' }],
  },
  'hides-its-need': {
    title:
      'a member does not tell which entries it lacks, so that nobody knows that a state is lost',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: ROWS, find: 'row.setWide(ROW.needs, member.needs);', replace: '' }],
  },
  'chunk-misplaced': {
    title: 'the last chunk of a snapshot is put one word before its place',
    caughtBy: { seed: 1, as: 'assertion' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'slot.copy.subarray(data, data + count), start)',
        replace: `slot.copy.subarray(data, data + count),
          start > 0 && start + count === total ? start - 1 : start)`,
      },
    ],
  },
  'chunks-of-two-members': {
    title: 'a snapshot is assembled from chunks of two members',
    caughtBy: { seed: 99, as: 'assertion' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'this.stop();\n        this.source = this.bestSource();',
        replace: 'this.source = this.bestSource();',
      },
      {
        file: SNAPSHOTS,
        find: 'this.wanted = 0;\n        this.nextIndex',
        replace: 'if (this.received === undefined) this.wanted = 0;\n this.nextIndex',
      },
      {
        file: SNAPSHOTS,
        find: '(this.received === undefined || this.isOfSame(slot))',
        replace: 'true',
      },
    ],
  },
};

/** Clients, their sessions, and replies. */
const CLIENTS: Readonly<Record<string, Mutation>> = {
  'session-goes-on': {
    title: 'a new session continues the numbers of the session before it',
    caughtBy: { seed: 8, as: 'liveness' },
    edits: [
      {
        file: COUNTERS,
        find: 'this.session[client] = session;',
        replace: 'const isFirst = this.session[client] === 0;\n this.session[client] = session;',
      },
      {
        file: COUNTERS,
        find: 'this.nextNumber[client] = firstIndex;',
        replace: 'if (isFirst) this.nextNumber[client] = firstIndex;',
      },
    ],
  },
  'replies-sent-once': {
    title: 'replies are not sent again, neither by a new leader nor when the client asks',
    caughtBy: { seed: 14, as: 'liveness' },
    edits: [
      { file: LEADER, find: 'member.replies.sendAgain(client, inbox.session);', replace: ';' },
      { file: LEADER, find: 'member.replies.sendAgain(client);', replace: ';' },
    ],
  },
  'same-notification': {
    title: 'a member that returns counts its notifications from zero again',
    caughtBy: { script: 'resume' },
    edits: [{ file: REPLIES, find: '.fill(member.incarnation << 16)', replace: '' }],
  },
  'parent-starves': {
    title: 'a client that met a full log always comes before the parent in the next round',
    caughtBy: { script: 'feed-races' },
    edits: [
      {
        file: LEADER,
        find: 'this.clientsFirst = !parentWaits;',
        replace: 'this.clientsFirst = true;',
      },
    ],
  },
  'answered-too-early': {
    title: 'a call counts as answered when the first group has replied',
    caughtBy: { seed: 18, as: 'liveness' },
    edits: [{ file: CLIENT, find: '(call.pendingLow | call.pendingHigh) === 0', replace: 'true' }],
  },
  'reply-of-any-entry-group': {
    title: 'a client accepts a reply to a message with the same number in another entry group',
    caughtBy: { seed: 6, as: 'reply' },
    edits: [
      {
        file: CLIENT,
        find: 'reply.words[HEAD_WORDS + REPLY.series] !== series',
        replace: 'false',
      },
    ],
  },
  'reply-of-any-series': {
    title: 'a client accepts a reply to the message that it sent 2³² messages earlier',
    caughtBy: { script: 'client' },
    edits: [
      {
        file: CLIENT,
        find: 'reply.words[HEAD_WORDS + REPLY.series] !== series',
        replace: '(reply.words[HEAD_WORDS + REPLY.series] & 0xff) !== call.entryGroup',
      },
    ],
  },
  'short-numbers': {
    title: 'numbers of messages start again after 2³²',
    caughtBy: { script: 'client' },
    edits: [{ file: LAYOUT, find: 'Math.floor(number / WIDE) << ENTRY_GROUP_BITS', replace: '0' }],
  },
  'client-never-resends': {
    title: 'a client writes each message only once',
    caughtBy: { seed: 22, as: 'liveness' },
    edits: [{ file: CLIENT, find: 'this.resend(group, outbox);', replace: '' }],
  },
};

/** The memory of threads and processes. */
const SHARED_MEMORY: Readonly<Record<string, Mutation>> = {
  'permission-ignored': {
    title: 'a write to shared memory succeeds whatever its target permits',
    caughtBy: { seed: 21, as: 'divergence', options: { memory: 'shared' } },
    edits: [
      {
        file: SHARED,
        find: 'guard === OPEN || words[permissions[peers[place]]] === guard ? 1 : 0',
        replace: '1',
      },
    ],
  },
  'permission-read-first': {
    title: 'the permission of a write to shared memory is read before its words are stored',
    caughtBy: {
      seed: 423,
      as: 'divergence',
      options: {
        memory: 'shared',
        groups: 1,
        faults: ['suspicion', 'rivals', 'pause', 'interruptions'],
      },
    },
    edits: [
      {
        file: SHARED,
        find: 'let left = count;',
        replace: `let left = count;
          this.isPermitted = words[this.permissions[peer]] === guard;`,
      },
      {
        file: SHARED,
        find: 'this.publish(peer, this.regions[peer] + to, value, guard, tag);',
        replace: `this.isPermitted = this.words[this.permissions[peer]] === guard;
          this.publish(peer, this.regions[peer] + to, value, guard, tag);`,
      },
      {
        file: SHARED,
        find: 'this.posted.add(peer, tag, guard);',
        replace: `{
          this.posted.add(peer, tag, guard);
          this.posted.oks[this.posted.end - 1] = this.isPermitted ? 1 : 0;
        }`,
      },
      {
        file: SHARED,
        find: 'oks[place] = guard === OPEN || words[permissions[peers[place]]] === guard ? 1 : 0;',
        replace: 'if (guard === OPEN) oks[place] = 1;',
      },
    ],
  },
};

export const FURTHER: Readonly<Record<string, Mutation>> = {
  ...FEEDS,
  ...CAMPAIGNING,
  ...TAKING_OVER,
  ...DELIVERING,
  ...RESTORING,
  ...CLIENTS,
  ...SHARED_MEMORY,
};
