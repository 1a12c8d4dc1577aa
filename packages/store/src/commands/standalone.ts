/** What a Redis server without cluster mode, replicas, users and debugging says to commands about them. The gateway carries them out. */

import type { CommandSpec, Flag } from './spec.js';

const ADMIN: readonly Flag[] = ['admin', 'noscript', 'loading', 'stale'];
const OPEN: readonly Flag[] = ['noscript', 'loading', 'stale'];
const REFUSED = 'always refused, as Redis without cluster mode does';

function standalone(
  category: 'cluster' | 'server',
  name: string,
  arity: number,
  flags: readonly Flag[],
  since: string,
  summary: string,
  differs?: string,
): CommandSpec {
  return { name, arity, flags, category, since, summary, ...(differs && { differs }) };
}

export const STANDALONE: readonly CommandSpec[] = [
  standalone('cluster', 'asking', 1, ['fast'], '3.0.0', 'Announces a redirected command.', REFUSED),
  standalone('cluster', 'cluster', -2, [], '3.0.0', 'Describes or changes a cluster.', REFUSED),
  standalone(
    'cluster',
    'readonly',
    1,
    ['fast', 'loading', 'stale'],
    '3.0.0',
    'Allows reads from a replica.',
    REFUSED,
  ),
  standalone(
    'cluster',
    'readwrite',
    1,
    ['fast', 'loading', 'stale'],
    '3.0.0',
    'Forbids reads from a replica.',
    REFUSED,
  ),

  standalone('server', 'acl|cat', -2, OPEN, '6.0.0', 'Lists categories, or the commands of one.'),
  standalone('server', 'acl|genpass', -2, OPEN, '6.0.0', 'Returns a random password.'),
  standalone('server', 'acl|getuser', 3, ADMIN, '6.0.0', 'Describes a user.'),
  standalone('server', 'acl|help', 2, ['loading', 'stale'], '6.0.0', 'Lists the subcommands.'),
  standalone('server', 'acl|list', 2, ADMIN, '6.0.0', 'Describes all users.'),
  standalone('server', 'acl|users', 2, ADMIN, '6.0.0', 'Lists the names of all users.'),
  standalone('server', 'acl|whoami', 2, OPEN, '6.0.0', 'Returns the name of the user.'),

  standalone(
    'server',
    'debug',
    -2,
    ADMIN,
    '1.0.0',
    'Helps to debug the server.',
    'always refused, as Redis does by default',
  ),
  standalone(
    'server',
    'role',
    1,
    ['noscript', 'loading', 'stale', 'fast', 'admin'],
    '2.8.12',
    'Tells the role in replication.',
    'always a master without replicas of Redis',
  ),
];
