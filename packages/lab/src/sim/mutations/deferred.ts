/** Mutations that break the rules of deferred replies, cancels and sessions that end. */

import type { Options } from '../plan.js';
import { CLIENT, DELIVERY, OUTBOX, OWN_ENTRIES, SNAPSHOT, WAITING } from './files.js';
import type { Mutation } from './mutation.js';

const CLIENTS_CRASH: Options = { faults: ['client-crash'] };

/** What a group does with calls that wait. */
const AT_THE_GROUP: Readonly<Record<string, Mutation>> = {
  'waiting-not-in-snapshot': {
    title: 'a member that has restored a snapshot does not know which calls wait',
    caughtBy: { seed: 23, as: 'reply' },
    edits: [{ file: SNAPSHOT, find: 'waiting.rebuild(replies);', replace: '' }],
  },
  'ended-not-in-snapshot': {
    title: 'a member that has restored a snapshot does not know which sessions have ended',
    caughtBy: { seed: 2, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'waiting.firstLive[client] = words[at + CLIENT.firstLive];',
        replace: '',
      },
    ],
  },
  'deferred-reply-of-leader': {
    title: 'only the leader keeps the replies that were deferred',
    caughtBy: { seed: 1, as: 'state' },
    edits: [
      {
        file: DELIVERY,
        find: 'replies.answer(client, call, reply, index);',
        replace: 'if (this.leads) replies.answer(client, call, reply, index);',
      },
    ],
  },
  'deferred-reply-early': {
    title: 'a deferred reply is not held until the gate has passed the entry that produced it',
    caughtBy: { seed: 58, as: 'property' },
    edits: [
      {
        file: DELIVERY,
        find: 'replies.answer(client, call, reply, index);',
        replace: 'replies.answer(client, call, reply, -1);',
      },
    ],
  },
  'cancelled-may-be-answered': {
    title: 'a call that was cancelled still waits',
    caughtBy: { seed: 4, as: 'reply' },
    edits: [
      {
        file: DELIVERY,
        find: `transition('call cancelled');
        member.waiting.remove(id);`,
        replace: `transition('call cancelled');`,
      },
    ],
  },
  'cancel-untold': {
    title: 'the service is not told that a call was cancelled',
    caughtBy: { seed: 4, as: 'reply' },
    edits: [
      {
        file: DELIVERY,
        find: `transition('call cancelled');
        member.waiting.remove(id);
        this.abandon(id);`,
        replace: `transition('call cancelled');
        member.waiting.remove(id);`,
      },
    ],
  },
};

/** Sessions that end while calls wait. */
const SESSIONS: Readonly<Record<string, Mutation>> = {
  'ended-session-waits': {
    title: 'a message of a session that has ended waits, if its reply is deferred',
    caughtBy: { script: 'deferred-replies' },
    edits: [
      {
        file: DELIVERY,
        find: 'const isLive = !member.waiting.hasEnded(client, session);',
        replace: 'const isLive = true;',
      },
    ],
  },
  'later-session-ignored': {
    title: 'a later session of a client slot does not end the earlier ones',
    caughtBy: { seed: 13, as: 'reply', options: CLIENTS_CRASH },
    edits: [
      {
        file: DELIVERY,
        find: 'if (session > member.waiting.firstLive[client])',
        replace: 'if (false)',
      },
    ],
  },
  'plain-in-any-session': {
    title: 'a message counts as plain although its client slot has had another session',
    caughtBy: { seed: 13, as: 'reply', options: CLIENTS_CRASH },
    edits: [{ file: DELIVERY, find: 'session === firstLive[client]', replace: 'true' }],
  },
  'ended-still-kept': {
    title: 'what waited for a session that has ended stays among the kept replies',
    caughtBy: { script: 'deferred-replies' },
    edits: [{ file: WAITING, find: 'replies.drop(client, call);', replace: '' }],
  },
  'ended-one-by-one': {
    title:
      'the service may reply to a call of a session that has ended, while it is told of another one',
    caughtBy: { seed: 173, as: 'reply', options: CLIENTS_CRASH },
    edits: [
      {
        file: WAITING,
        find: 'this.remove(id);\n            replies.drop',
        replace: 'replies.drop',
      },
      {
        file: DELIVERY,
        find: "edges.observer.transition('session ended');",
        replace: "edges.observer.transition('session ended'); waiting.remove(id);",
      },
    ],
  },
  'session-end-unproposed': {
    title: 'no leader proposes the end of a session',
    caughtBy: { seed: 48, as: 'liveness', options: CLIENTS_CRASH },
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'this.propose(OWN_KIND.sessionEnded, client, session);',
        replace: '',
      },
    ],
  },
  'session-end-remembered': {
    title:
      'a leader that leads again believes that the ends of sessions which it has proposed are in the log',
    caughtBy: { script: 'deferred-replies' },
    edits: [{ file: OWN_ENTRIES, find: 'this.endedSessions.fill(0);', replace: '' }],
  },
  'session-end-uncertain': {
    title: 'a leader proposes the end of a session that may not have ended',
    caughtBy: { seed: 4, as: 'reply' },
    edits: [
      { file: OWN_ENTRIES, find: '!edges.hasSessionEnded(client, session)', replace: 'false' },
    ],
  },
  'session-end-reopens': {
    title: 'the end of a session that comes late opens a later one again',
    caughtBy: { script: 'deferred-replies' },
    edits: [
      {
        file: DELIVERY,
        find: 'if (!this.member.waiting.hasEnded(client, session))',
        replace: 'if (true)',
      },
    ],
  },
};

/** What a client does with calls that wait. */
const AT_THE_CLIENT: Readonly<Record<string, Mutation>> = {
  'deferred-keeps-place': {
    title: 'a message whose reply is deferred keeps its place in the ring',
    caughtBy: { seed: 4, as: 'liveness' },
    edits: [
      {
        file: OUTBOX,
        find: '(oldest.unheardLow | oldest.unheardHigh) !== 0',
        replace: 'oldest.isOpen',
      },
    ],
  },
  'deferred-frees-place-early': {
    title: 'a message leaves its place in the ring once one of its groups has deferred its reply',
    caughtBy: { seed: 316, as: 'liveness' },
    edits: [
      {
        file: OUTBOX,
        find: '(oldest.unheardLow | oldest.unheardHigh) !== 0',
        replace: `(oldest.unheardLow | oldest.unheardHigh) !== 0 &&
          oldest.unheardLow === oldest.pendingLow && oldest.unheardHigh === oldest.pendingHigh`,
      },
    ],
  },
  'deferred-frees-slot': {
    title: 'a call slot is used again while the call in it waits',
    caughtBy: { seed: 1, as: 'reply' },
    edits: [{ file: OUTBOX, find: 'if (!oldest.isOpen)', replace: 'if (true)' }],
  },
  'cancel-in-outbox': {
    title: 'a call is cancelled while its message is still in the outbox',
    caughtBy: { seed: 21, as: 'reply' },
    edits: [{ file: CLIENT, find: '|| call.isInOutbox ||', replace: '||' }],
  },
  'cancels-after-others': {
    title: 'cancels get only the room in the ring that other messages leave',
    caughtBy: { script: 'deferred-replies' },
    edits: [
      {
        file: CLIENT,
        find: `        let work = this.flush();
        work += this.pollReplies();
        if (this.waiting.length > 0)
            this.cancelGivenUp();`,
        replace: `        if (this.waiting.length > 0)
            this.cancelGivenUp();
        let work = this.flush();
        work += this.pollReplies();`,
      },
    ],
  },
  'taken-in-order-only': {
    title: 'a client never takes a reply before those to its earlier messages',
    caughtBy: { script: 'deferred-replies' },
    edits: [
      {
        file: CLIENT,
        find: 'this.collectFrom(replica, true)',
        replace: 'this.collectFrom(replica)',
      },
    ],
  },
  'overtaking-awaits-resend': {
    title: 'a client looks for replies that have overtaken others only when it sends again',
    caughtBy: { script: 'deferred-replies' },
    edits: [{ file: CLIENT, find: 'work += this.collectOvertaking();', replace: ';' }],
  },
  'waiting-not-nudged': {
    title: 'a client never asks again for a deferred reply that was lost',
    caughtBy: { script: 'deferred-replies' },
    edits: [{ file: CLIENT, find: 'work += this.nudgeWaiting();', replace: '' }],
  },
};

export const DEFERRED: Readonly<Record<string, Mutation>> = {
  ...AT_THE_GROUP,
  ...SESSIONS,
  ...AT_THE_CLIENT,
};
