/** Mutations that break the rules of own entries and of ordered time. */
import { COUNTERS, LEADER, ORDERED_CLOCK, OWN_ENTRIES, REPLICA, SNAPSHOT } from './files.js';
import type { Mutation } from './mutation.js';

export const TICKS: Readonly<Record<string, Mutation>> = {
  'tick-of-wall-clock': {
    title:
      'a tick has the stamp that the wall clock of its leader shows, even if an earlier one is later',
    caughtBy: { seed: 2, as: 'assertion', options: { ticks: true } },
    edits: [
      {
        file: ORDERED_CLOCK,
        find: 'return Math.min(Math.max(this.wallUs(), leastUs), mostUs);',
        replace: 'return this.wallUs();',
      },
    ],
  },
  'tick-unbounded': {
    title: 'a wall clock that is ahead takes ordered time along at once',
    caughtBy: { seed: 12, as: 'time', options: { ticks: true } },
    edits: [
      {
        file: ORDERED_CLOCK,
        find: 'return Math.min(Math.max(this.wallUs(), leastUs), mostUs);',
        replace: 'return Math.max(this.wallUs(), leastUs);',
      },
    ],
  },
  'tick-waits-for-clock': {
    title: 'ordered time stands still while the wall clock is behind it',
    caughtBy: { seed: 2, as: 'time', options: { ticks: true } },
    edits: [
      {
        file: ORDERED_CLOCK,
        find: 'return Math.min(Math.max(this.wallUs(), leastUs), mostUs);',
        replace: 'return Math.min(Math.max(this.wallUs(), orderedUs + 1), mostUs);',
      },
    ],
  },
  'tick-set-by-successor': {
    title: 'a leader that has followed others takes its wall clock as it is',
    caughtBy: { seed: 12, as: 'time', options: { ticks: true } },
    edits: [
      {
        file: ORDERED_CLOCK,
        find: 'return current !== undefined && current.writer !== index && current.marker !== this.keptBallot;',
        replace: 'return false;',
      },
    ],
  },
  'tick-of-kept-log': {
    title: 'a member that resumes takes the ticks of the log that it has kept for new ones',
    caughtBy: { script: 'ordered-time' },
    edits: [
      {
        file: ORDERED_CLOCK,
        find: ' && current.marker !== this.keptBallot;',
        replace: ';',
      },
    ],
  },
  'tick-age-overestimated': {
    title: 'a member counts the age of a tick from the beginning of the step that delivered it',
    caughtBy: {
      seed: 352,
      as: 'time',
      options: {
        ticks: true,
        memory: 'shared',
        groups: 1,
        faults: ['suspicion', 'rivals', 'interruptions', 'wrong-clocks'],
      },
    },
    edits: [
      {
        file: REPLICA,
        find: "if (this.role === 'follower')\n            this.clock?.follow();",
        replace: "if (this.role === 'follower')\n            this.clock?.follow(nowUs);",
      },
      {
        file: REPLICA,
        find: 'this.follower.followLog(nowUs);\n        this.clock?.follow();',
        replace: 'this.follower.followLog(nowUs);\n        this.clock?.follow(nowUs);',
      },
      { file: ORDERED_CLOCK, find: 'follow() {', replace: 'follow(nowUs) {' },
      {
        file: ORDERED_CLOCK,
        find: 'if (this.followsAnother())\n            this.learn(orderedUs);',
        replace: `if (this.followsAnother()) {
            this.latestUs = orderedUs;
            this.sinceUs = nowUs;
        }`,
      },
    ],
  },
  'ticks-pile-up': {
    title: 'a leader proposes a tick while another is undecided',
    caughtBy: { seed: 10, as: 'time', options: { ticks: true } },
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'return this.proposed.orderedUs !== this.member.delivered.orderedUs;',
        replace: 'return false;',
      },
    ],
  },
  'tick-needs-no-room': {
    title: 'a tick that finds no room in the log does not count as a sign that the log is full',
    caughtBy: { script: 'ordered-time' },
    edits: [
      {
        file: OWN_ENTRIES,
        find: `if (!this.hasRoom())
            return false;
        const stampUs`,
        replace: `if (!this.hasRoom())
            return true;
        const stampUs`,
      },
    ],
  },
  'ticks-always-first': {
    title: 'a leader whose log ends with a tick proposes the next one before it takes messages',
    caughtBy: { script: 'ordered-time' },
    edits: [
      {
        file: LEADER,
        find: 'const hasTick = logEndsWithTick || ownEntries.proposeTick(nowUs);',
        replace: 'const hasTick = ownEntries.proposeTick(nowUs);',
      },
    ],
  },
  'tick-undecided': {
    title: 'a leader gives a tick to its service before it is decided',
    caughtBy: { seed: 4, as: 'state', options: { ticks: true } },
    edits: [
      {
        file: LEADER,
        find: 'const hasEnds = ownEntries.proposeSessionEnds(nowUs);',
        replace: `const hasEnds = ownEntries.proposeSessionEnds(nowUs);
          const { orderedUs } = this.proposed;
          if (orderedUs > this.member.delivered.orderedUs) this.delivering.application.tick(orderedUs);`,
      },
    ],
  },
  'ordered-time-not-restored': {
    title: 'a snapshot is restored without ordered time',
    caughtBy: { seed: 248, as: 'state', options: { ticks: true } },
    edits: [
      {
        file: SNAPSHOT,
        find: 'delivered.orderedUs = readWide(words, FIXED.orderedUs);',
        replace: '',
      },
    ],
  },
  'ordered-time-not-taken-over': {
    title: 'a new leader begins without the ordered time of what it has delivered',
    caughtBy: { seed: 4, as: 'liveness', options: { ticks: true } },
    edits: [{ file: COUNTERS, find: 'this.orderedUs = other.orderedUs;', replace: '' }],
  },
  'own-entry-forwarded': {
    title: 'an own entry goes to the child groups',
    caughtBy: { seed: 2, as: 'integrity', options: { ticks: true, groups: 3 } },
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'this.set(MESSAGE.client, first);',
        replace: `this.set(MESSAGE.client, first);
          this.set(MESSAGE.destinationsLow, ~(1 << this.member.group));`,
      },
    ],
  },
  'own-entry-delivered': {
    title: 'an own entry is delivered as a message',
    caughtBy: { seed: 4, as: 'integrity', options: { ticks: true } },
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'this.set(MESSAGE.client, first);',
        replace: `this.set(MESSAGE.client, first);
          this.set(MESSAGE.destinationsLow, 1 << this.member.group);`,
      },
    ],
  },
};
