/**
 * Mutations that break the rules of strict order: which replies are held, and until when (settling.ts). Most of them send a
 * reply too early, and the judge finds a violation of real-time order. Others never send a held reply.
 */
import { DELIVERY, FEED, GATE, LEADER, REPLIES, SETTLING } from './files.js';
import type { Mutation } from './mutation.js';

const STRICT = { order: 'strict' } as const;

export const GATES: Readonly<Record<string, Mutation>> = {
  'no-gate': {
    title: 'replies do not wait',
    caughtBy: { seed: 14, as: 'property', options: STRICT },
    edits: [
      { file: REPLIES, find: 'if (this.indices[slot] < this.gate) {', replace: 'if (true) {' },
    ],
  },
  'subtree-alone': {
    title: 'the gate passes entries from the parent before the gate of the parent has passed them',
    caughtBy: { seed: 14, as: 'property', options: STRICT },
    edits: [
      {
        file: SETTLING,
        find: 'this.gate = Math.min(this.settled, this.passed.index);',
        replace: 'this.gate = this.settled;',
      },
    ],
  },
  'no-prefix': {
    title: 'a reply to a message to one group alone does not wait for the messages before it',
    caughtBy: { seed: 18, as: 'property', options: STRICT },
    edits: [
      {
        file: DELIVERY,
        find: `replies.keep(client, call, session, series, numberLow, outcome, reply, index);
            if (leads)`,
        replace: `replies.keep(client, call, session, series, numberLow, outcome, reply, index);
        const isAlone = message.entryGroup === message.group &&
          (message.destinationsLow & (message.destinationsLow - 1)) === 0 && message.destinationsHigh === 0;
        if (leads && isAlone)
            replies.send(client, call);
        else if (leads)`,
      },
    ],
  },
  'gate-without-prefix': {
    title: 'the gate passes an entry although one before it waits for the gate of the parent',
    caughtBy: { seed: 6, as: 'property', options: STRICT },
    edits: [
      {
        file: GATE,
        find: `        while (this.index < replication.endIndex) {
            if (indexAtParent(replication.ring, this.position) >= parentGate)
                return;
            this.position = (this.position + replication.wordsAt(this.position)) | 0;
            this.index++;
        }`,
        replace: `        let { index, position } = this;
        while (index < replication.endIndex) {
            const waits = indexAtParent(replication.ring, position) >= parentGate;
            position = (position + replication.wordsAt(position)) | 0;
            index++;
            if (waits) continue;
            this.index = index;
            this.position = position;
        }`,
      },
    ],
  },
  'settled-when-decided': {
    title:
      'a group tells its parent that an entry is settled once it is decided in the group itself',
    caughtBy: { seed: 14, as: 'property', options: STRICT },
    edits: [
      {
        file: SETTLING,
        find: 'const fromParent = this.fromParent.below(this.settled);',
        replace: 'const fromParent = this.member.delivered.nextFromParent;',
      },
    ],
  },
  'settled-undecided': {
    title: 'an entry counts as settled before it is decided',
    caughtBy: { script: 'real-time-order' },
    edits: [
      {
        file: SETTLING,
        find: 'this.settled = this.replication.decided;',
        replace: 'this.settled = this.replication.endIndex;',
      },
    ],
  },
  'settled-one-too-high': {
    title: 'a group tells its parent that it has settled one entry more than it has',
    caughtBy: { seed: 15, as: 'property', options: STRICT },
    edits: [
      {
        file: SETTLING,
        find: 'const fromParent = this.fromParent.below(this.settled);',
        replace: 'const fromParent = this.fromParent.below(this.settled) + 1;',
      },
    ],
  },
  'settled-one-too-low': {
    title: 'a group tells its parent that it has settled one entry less than it has',
    caughtBy: { seed: 4, as: 'liveness', options: STRICT },
    edits: [
      {
        file: SETTLING,
        find: 'const fromParent = this.fromParent.below(this.settled);',
        replace: 'const fromParent = this.fromParent.below(this.settled) - 1;',
      },
    ],
  },
  'drops-unsettled': {
    title: 'a leader drops entries that are not settled, and the next one takes them for settled',
    caughtBy: { seed: 6, as: 'property', options: STRICT },
    edits: [
      {
        file: SETTLING,
        find: 'return isFull ? this.settled : this.gate;',
        replace: 'return Number.POSITIVE_INFINITY;',
      },
    ],
  },
  'full-log-waits-for-gate': {
    title: 'a full log drops only entries that the gate has passed',
    caughtBy: { script: 'real-time-order' },
    edits: [
      {
        file: SETTLING,
        find: 'return isFull ? this.settled : this.gate;',
        replace: 'return this.gate;',
      },
    ],
  },
  'base-is-gate': {
    title: "a new leader takes its log's base for its gate",
    caughtBy: { script: 'real-time-order' },
    edits: [
      {
        file: GATE,
        find: 'this.index = this.firstIndex;',
        replace: 'this.index = this.replication.baseIndex;',
      },
    ],
  },
  'old-position': {
    title:
      'a new leader looks for the entries that wait for its gate where an earlier leadership stopped',
    caughtBy: { seed: 353, as: 'property', options: { ...STRICT, replicas: 3 } },
    edits: [
      {
        file: GATE,
        find: 'this.position = this.replication.ring.base;\n        this.droppedFromParent',
        replace: 'this.droppedFromParent',
      },
    ],
  },
  'forgets-dropped': {
    title:
      'a leader whose gate is below the base of its log forgets what it has dropped since it leads',
    caughtBy: { seed: 306, as: 'property', options: STRICT },
    edits: [
      {
        file: GATE,
        find: 'this.droppedFromParent = Math.max(this.droppedFromParent, from + 1);',
        replace: ';',
      },
    ],
  },
  'sends-all-when-leading': {
    title: 'a new leader sends all kept replies at once',
    caughtBy: { seed: 495, as: 'property', options: STRICT },
    edits: [
      {
        file: LEADER,
        find: 'member.replies.holdFrom(this.gate);',
        replace: 'member.replies.holdFrom(Number.POSITIVE_INFINITY);',
      },
    ],
  },
  'sends-all-when-nudged': {
    title: 'a leader that is nudged sends replies that it holds',
    caughtBy: { seed: 202, as: 'property', options: STRICT },
    edits: [
      {
        file: REPLIES,
        find: 'if (this.indices[client * this.callsMax + call] >= this.gate)',
        replace:
          'if (session === undefined && this.indices[client * this.callsMax + call] >= this.gate)',
      },
    ],
  },
  'held-never-sent': {
    title: 'replies that are held are sent only when the client asks again',
    caughtBy: { script: 'real-time-order' },
    edits: [
      {
        file: REPLIES,
        find: 'this.send(Math.floor(slot / callsMax), slot % callsMax);',
        replace: '',
      },
    ],
  },
  'held-lost-when-leading': {
    title:
      'a new leader forgets the replies that the gate has not passed, until the client asks again',
    caughtBy: { script: 'real-time-order' },
    edits: [
      { file: REPLIES, find: 'for (const slot of slots)', replace: 'for (const slot of [])' },
    ],
  },
  'settled-not-in-rows': {
    title: 'a leader does not learn from the rows of its children what they have settled',
    caughtBy: { seed: 60, as: 'liveness', options: STRICT },
    edits: [
      {
        file: FEED,
        find: 'this.settledByChild = Math.max(this.settledByChild, peer.settledFromParent);',
        replace: '',
      },
    ],
  },
  'gate-not-told-again': {
    title:
      'a leader does not tell its gate to a child member that has come back, if its feed is empty',
    caughtBy: { seed: 201, as: 'liveness', options: STRICT },
    edits: [
      {
        file: FEED,
        find: 'this.endPosition === this.oldestPosition && !this.writer.tellsGates',
        replace: 'this.endPosition === this.oldestPosition',
      },
    ],
  },
  'gate-told-with-entries': {
    title: 'a leader tells a child its gate only together with new entries',
    caughtBy: { seed: 4, as: 'liveness', options: STRICT },
    edits: [
      {
        file: FEED,
        find: 'const isNews = this.isStrict && gate > this.toldGate',
        replace: 'const isNews = false && gate > this.toldGate',
      },
    ],
  },
  'adopted-is-settled': {
    title: 'a new leader tells its parent that all entries that it has adopted are settled',
    caughtBy: { script: 'real-time-order' },
    edits: [
      {
        file: SETTLING,
        find: 'this.tellParent(dropped);',
        replace: 'this.tellParent(this.proposed.nextFromParent);',
      },
    ],
  },
  'unsent-is-settled': {
    title: 'entries that wait for room in a feed count as settled by the child',
    caughtBy: { seed: 6, as: 'property', options: STRICT },
    edits: [
      {
        file: FEED,
        find: 'return this.settledIndex;',
        replace:
          'return this.settledIndex === this.logIndex ? this.replication.decided : this.settledIndex;',
      },
    ],
  },
  'tells-settled-for-gate': {
    title: 'a leader tells its children what it has settled, not how far its gate has come',
    caughtBy: { seed: 82, as: 'property', options: STRICT },
    edits: [
      {
        file: LEADER,
        find: 'this.forwarding.tell(this.settling.gate,',
        replace: 'this.forwarding.tell(this.settling.settled,',
      },
    ],
  },
  'restores-no-indices': {
    title: 'a member that restores a snapshot does not restore which entries produced the replies',
    caughtBy: { seed: 9, as: 'state', options: STRICT },
    edits: [{ file: REPLIES, find: 'this.indexWords.set(indexWords);', replace: '' }],
  },
};
