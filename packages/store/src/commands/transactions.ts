/** Transactions. The gateway queues their commands, and carries them out. */

import type { CommandSpec } from './spec.js';

export const TRANSACTIONS: readonly CommandSpec[] = [
  {
    name: 'discard',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    category: 'transactions',
    since: '2.0.0',
    summary: 'Gives up a transaction.',
  },
  {
    name: 'exec',
    arity: 1,
    flags: ['noscript', 'loading', 'stale'],
    category: 'transactions',
    since: '1.2.0',
    summary: 'Runs all commands of a transaction.',
  },
  {
    name: 'multi',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    category: 'transactions',
    since: '1.2.0',
    summary: 'Begins a transaction.',
  },
  {
    name: 'unwatch',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    category: 'transactions',
    since: '2.2.0',
    summary: 'Forgets about watched keys.',
  },
  {
    name: 'watch',
    arity: -2,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    category: 'transactions',
    since: '2.2.0',
    summary: 'Watches keys: the next transaction only runs if they do not change before.',
    differs: 'Notices what happens to groups of streams, too.',
    keys: { first: 1, last: -1, step: 1 },
  },
];
