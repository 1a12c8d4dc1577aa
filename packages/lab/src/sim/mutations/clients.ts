/** Mutations that break the rules of clients, their sessions, and replies. */
import { CLIENT, COUNTERS, HASH, LAYOUT, LEADER, REPLIES } from './files.js';
import type { Mutation } from './mutation.js';

export const CLIENTS: Readonly<Record<string, Mutation>> = {
  'session-goes-on': {
    title: 'a new session continues the numbers of the session before it',
    caughtBy: { seed: 431, as: 'liveness' },
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
    caughtBy: { seed: 67, as: 'liveness' },
    edits: [
      { file: LEADER, find: 'member.replies.sendAgain(client, inbox.session);', replace: ';' },
      { file: LEADER, find: 'member.replies.sendAgain(client);', replace: ';' },
    ],
  },
  'hashes-again': {
    title: 'a leader that copies a message loads each word again to hash it',
    caughtBy: { script: 'interrupted-steps' },
    edits: [
      {
        file: HASH,
        find: 'hash = mixFour(hash, a, b, c, d);',
        replace:
          'hash = mixFour(hash, source[here], source[here + 1], source[here + 2], source[here + 3]);',
      },
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
  'parent-misses-its-round': {
    title:
      'a leader that looks at clients first does not look at the parent in that round, although there is room',
    caughtBy: { script: 'feed-races' },
    edits: [
      {
        file: LEADER,
        find: 'if (parentWaits && room > 0)',
        replace: 'if (false)',
      },
    ],
  },
  'answered-too-early': {
    title: 'a call counts as answered when the first group has replied',
    caughtBy: { seed: 5, as: 'error' },
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
    caughtBy: { seed: 12, as: 'liveness' },
    edits: [{ file: CLIENT, find: 'this.resend(group, outbox);', replace: '' }],
  },
  'resends-unplanned': {
    title:
      'a client that has no message to write again does not look whether later ones are to be written again',
    caughtBy: { seed: 14, as: 'liveness' },
    edits: [
      {
        file: CLIENT,
        find: 'this.resendsDueUs = nowUs + resendAfterUs;',
        replace: 'this.resendsDueUs = Number.POSITIVE_INFINITY;',
      },
    ],
  },
  'cancel-unposted': {
    title: 'a client does not note to which group it has a cancel to post',
    caughtBy: { seed: 42, as: 'liveness' },
    edits: [{ file: CLIENT, find: 'this.noteUnsent(call.entryGroup, outbox);', replace: '' }],
  },
};
