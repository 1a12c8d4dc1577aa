/** Transactions. The gateway queues their commands, and carries them out. */

import { ofGateway } from './of-gateway.js';
import type { CommandSpec, Flag } from './spec.js';

const SESSION: readonly Flag[] = ['noscript', 'loading', 'stale', 'fast'];
const EXEC: readonly Flag[] = ['noscript', 'loading', 'stale'];

const transactions = ofGateway('transactions');

export const TRANSACTIONS: readonly CommandSpec[] = [
  transactions('discard', 1, SESSION, '2.0.0', 'Gives up a transaction.'),
  transactions('exec', 1, EXEC, '1.2.0', 'Runs all commands of a transaction.'),
  transactions('multi', 1, SESSION, '1.2.0', 'Begins a transaction.'),
  transactions('unwatch', 1, SESSION, '2.2.0', 'Forgets about watched keys.'),
  {
    ...transactions(
      'watch',
      -2,
      SESSION,
      '2.2.0',
      'Watches keys: the next transaction only runs if they do not change before.',
      'Notices what happens to groups of streams, too.',
    ),
    keys: { first: 1, last: -1, step: 1 },
  },
];
