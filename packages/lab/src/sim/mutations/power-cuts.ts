/**
 * Mutations that lose or split messages when the power is cut: of when a reply may be sent, when a snapshot may replace
 * entries, how files are written, and what a recovery lets a cluster go on with.
 */
import {
  GROUP_PROGRESS,
  JOURNAL_READER,
  JOURNAL_WRITER,
  RECOVERY_HOST,
  RECOVERY_PLAN,
  REPLAY,
  SEGMENTS,
  SHAPE,
  SNAPSHOT_FILE,
  WHOLE_RECOVERY,
} from './files.js';
import type { Mutation } from './mutation.js';

const ALWAYS = { durability: 'always' } as const;
/** The power is cut again and again. */
const CUTS = { ...ALWAYS, faults: ['power-cut', 'some-power-cuts', 'blackout'] } as const;
/** Syncs fail, and the power is cut later. */
const FAILURES = { ...ALWAYS, replicas: 3, faults: ['failed-sync', 'blackout'] } as const;
/** Recoveries run side by side, and are interrupted. */
const RIVALS = { ...ALWAYS, faults: ['blackout', 'rival-recovery', 'cut-recovery'] } as const;

export const POWER_CUTS: Readonly<Record<string, Mutation>> = {
  'acknowledges-unsynced': {
    title: 'entries are called durable when they are written, before they are synced',
    caughtBy: { seed: 36, as: 'recovery', options: CUTS },
    edits: [
      {
        file: JOURNAL_WRITER,
        find: 'this.unsyncedBytes += words * 4;',
        replace: `this.unsyncedBytes += words * 4;
          for (const progress of this.progress.values()) { progress.sync(); this.publish(progress); }`,
      },
    ],
  },
  'failed-sync-trusted': {
    title: 'a host that starts again after a failed sync relies on what the page cache has',
    caughtBy: { seed: 349, as: 'recovery', options: FAILURES },
    edits: [{ file: JOURNAL_READER, find: 'rewriteEnd(disk, era, identity);', replace: ';' }],
  },
  'recovers-with-f': {
    title: 'a recovery reads the journals of f members of a group, instead of f + 1',
    caughtBy: { seed: 35, as: 'recovery', options: { ...ALWAYS, replicas: 3 } },
    edits: [
      {
        file: SHAPE,
        find: 'return (replicas >> 1) + 1;',
        replace: 'return Math.max(1, replicas >> 1);',
      },
    ],
  },
  'children-not-cut': {
    title: 'a recovery keeps what a group got from its parent and the parent has lost',
    caughtBy: { seed: 58, as: 'recovery', options: CUTS },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: 'askOne(shape, cutAsk(source, parentEnd))',
        replace: 'askOne(shape, cutAsk(source, Number.MAX_SAFE_INTEGER))',
      },
    ],
  },
  'nothing-appended': {
    title: 'a recovery does not give a group what its parent has for it and it lacks',
    caughtBy: { seed: 151, as: 'recovery', options: CUTS },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: '    const append = yield* lackedOf(shape, parent, group, nextFromParent);',
        replace: '    const append = [];',
      },
    ],
  },
  'shortest-journal': {
    title: 'a recovery takes the shortest journal of a group',
    caughtBy: { seed: 5, as: 'recovery', options: CUTS },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: '(other.end > best.end ? other : best)',
        replace: '(other.end < best.end ? other : best)',
      },
    ],
  },
  'era-of-each-group': {
    title: 'a recovery takes the highest era of each group, although other groups may not have it',
    caughtBy: { seed: 58, as: 'recovery', options: RIVALS },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: '(_, group) => candidatesOf(surveys, era, group)',
        replace: `(_, group) => candidatesOf(surveys, Math.max(...[...surveys.values()].flatMap(({ sequences }) =>
          sequences.filter((sequence) => sequence.group === group).map((sequence) => sequence.era))), group)`,
      },
    ],
  },
  'lets-in-early': {
    title: 'clients are let in before f + 1 members of every group have opened the era',
    caughtBy: { seed: 189, as: 'recovery', options: RIVALS },
    edits: [
      {
        file: WHOLE_RECOVERY,
        find: "requireMembers(shape, isFirst, openedAt, 'have made their opening snapshots durable');",
        replace: '',
      },
      {
        file: WHOLE_RECOVERY,
        find: "requireMembers(shape, isFirst, isMarked, 'have marked the era as open');",
        replace: '',
      },
    ],
  },
  'era-not-promised': {
    title:
      'a recovery takes the greatest era that it sees plus one, and hosts promise it more than once',
    caughtBy: { seed: 149, as: 'recovery', options: RIVALS },
    edits: [
      {
        file: RECOVERY_HOST,
        find: 'if (era <= promised || !isOurs)',
        replace: 'if (era < promised || !isOurs)',
      },
    ],
  },
  'counts-before-stable': {
    title: 'a snapshot replaces entries before they are stable',
    caughtBy: { seed: 58, as: 'liveness', options: CUTS },
    edits: [
      {
        file: GROUP_PROGRESS,
        find: 'index <= stable || ',
        replace: 'true || ',
      },
    ],
  },
  'removes-early': {
    title: 'older eras are removed before the next one is open',
    caughtBy: { seed: 2, as: 'error', options: RIVALS },
    edits: [
      {
        file: SNAPSHOT_FILE,
        find: `    draft.rename('snapshot');
    disk.syncFolder(eraFolder(era));`,
        replace: `    draft.rename('snapshot');
    disk.syncFolder(eraFolder(era));
    for (const name of disk.list('')) {
      if (name.startsWith('era-') && name !== eraFolder(era)) disk.remove(name);
    }`,
      },
    ],
  },
  'renames-unsynced': {
    title: 'a snapshot is renamed before it is synced',
    caughtBy: { seed: 6, as: 'recovery', options: CUTS },
    edits: [
      {
        file: JOURNAL_WRITER,
        find: "        draft.sync();\n        yield true;\n        draft.rename('pending');",
        replace: "        draft.rename('pending');",
      },
    ],
  },
  'spare-not-synced': {
    title: 'a segment is written to before its name is durable',
    caughtBy: { seed: 10, as: 'recovery', options: CUTS },
    edits: [
      {
        file: SEGMENTS,
        find: `        disk.syncFolder(eraFolder(options.era));
        yield true;
        this.file = file;`,
        replace: '        this.file = file;',
      },
    ],
  },
  'sessions-go-on': {
    title: 'an era starts with the sessions of the one before it',
    caughtBy: { seed: 5, as: 'reply', options: CUTS },
    edits: [{ file: REPLAY, find: 'delivering.endAllSessions();', replace: '' }],
  },
  'sessions-used-again': {
    title: 'sessions of a new era have the numbers of earlier ones',
    caughtBy: { seed: 4, as: 'reply', options: ALWAYS },
    edits: [
      {
        file: WHOLE_RECOVERY,
        find: 'return Math.max(...opened, ...found) + SESSIONS_APART;',
        replace: 'return 1;',
      },
    ],
  },
  'sessions-of-found-messages': {
    title: 'sessions of a new era are only above those of which a message was found',
    caughtBy: { seed: 36, as: 'integrity', options: ALWAYS },
    edits: [
      {
        file: WHOLE_RECOVERY,
        find: 'return Math.max(...opened, ...found) + SESSIONS_APART;',
        replace: 'return Math.max(0, ...found) + SESSIONS_APART;',
      },
    ],
  },
};
