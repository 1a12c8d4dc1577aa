/** Mutations that break the contract of the memory of threads and processes. */
import { SHARED } from './files.js';
import type { Mutation } from './mutation.js';

export const SHARED_MEMORY: Readonly<Record<string, Mutation>> = {
  'permission-ignored': {
    title: 'a write to shared memory succeeds whatever its target permits',
    caughtBy: { seed: 205, as: 'assertion', options: { memory: 'shared' } },
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
      seed: 50,
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
        find: `this.store(peer, to, source, from, count);
        this.add(peer, guard, tag);`,
        replace: `this.isPermitted = this.words[this.permissions[peer]] === guard;
          this.store(peer, to, source, from, count);
          this.add(peer, guard, tag);`,
      },
      {
        file: SHARED,
        find: 'this.publish(this.regions[peer] + to, value);',
        replace: `this.isPermitted = this.words[this.permissions[peer]] === guard;
          this.publish(this.regions[peer] + to, value);`,
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
  'at-once-unpermitted': {
    title: 'a write to shared memory that succeeds at once does so whatever its target permits',
    caughtBy: { seed: 30, as: 'divergence', options: { memory: 'shared' } },
    edits: [
      { file: SHARED, find: 'if (this.words[this.permissions[peer]] === guard)', replace: '' },
    ],
  },
  'at-once-permission-first': {
    title: 'the permission of a write that succeeds at once is read before its words are stored',
    caughtBy: { script: 'interrupted-steps' },
    edits: [
      {
        file: SHARED,
        find: `this.store(peer, to, source, from, count);
        fence();
        if (this.words[this.permissions[peer]] === guard)`,
        replace: `const isPermitted = this.words[this.permissions[peer]] === guard;
        this.store(peer, to, source, from, count);
        if (isPermitted)`,
      },
    ],
  },
};
