/** What a Redis server without cluster mode, replicas, users and debugging says to commands about them. The gateway carries them out. */

import { ofGateway } from './of-gateway.js';
import type { CommandSpec, Flag } from './spec.js';

const ADMIN: readonly Flag[] = ['admin', 'noscript', 'loading', 'stale'];
const OPEN: readonly Flag[] = ['noscript', 'loading', 'stale'];
const REFUSED = 'always refused, as Redis without cluster mode does';

const cluster = ofGateway('cluster');
const server = ofGateway('server');

export const STANDALONE: readonly CommandSpec[] = [
  cluster('asking', 1, ['fast'], '3.0.0', 'Announces a redirected command.', REFUSED),
  cluster('cluster', -2, [], '3.0.0', 'Describes or changes a cluster.', REFUSED),
  cluster(
    'readonly',
    1,
    ['fast', 'loading', 'stale'],
    '3.0.0',
    'Allows reads from a replica.',
    REFUSED,
  ),
  cluster(
    'readwrite',
    1,
    ['fast', 'loading', 'stale'],
    '3.0.0',
    'Forbids reads from a replica.',
    REFUSED,
  ),

  server('acl|cat', -2, OPEN, '6.0.0', 'Lists categories, or the commands of one.'),
  server('acl|genpass', -2, OPEN, '6.0.0', 'Returns a random password.'),
  server('acl|getuser', 3, ADMIN, '6.0.0', 'Describes a user.'),
  server('acl|help', 2, ['loading', 'stale'], '6.0.0', 'Lists the subcommands.'),
  server('acl|list', 2, ADMIN, '6.0.0', 'Describes all users.'),
  server('acl|users', 2, ADMIN, '6.0.0', 'Lists the names of all users.'),
  server('acl|whoami', 2, OPEN, '6.0.0', 'Returns the name of the user.'),

  server(
    'debug',
    -2,
    ADMIN,
    '1.0.0',
    'Helps to debug the server.',
    'always refused, as Redis does by default',
  ),
  server(
    'role',
    1,
    ['noscript', 'loading', 'stale', 'fast', 'admin'],
    '2.8.12',
    'Tells the role in replication.',
    'always a master without replicas of Redis',
  ),
];
