/** Commands on the connection and its session. The gateway carries them out. */

import { ofGateway } from './of-gateway.js';
import type { CommandSpec, Flag } from './spec.js';

const SESSION: readonly Flag[] = ['noscript', 'loading', 'stale', 'fast'];
const CLIENT: readonly Flag[] = ['noscript', 'loading', 'stale'];
const CLIENT_ADMIN: readonly Flag[] = ['admin', ...CLIENT];
const HELP: readonly Flag[] = ['loading', 'stale'];
const OF_THIS_GATEWAY = 'concerns the clients of this gateway';

const connection = ofGateway('connection');

export const CONNECTION: readonly CommandSpec[] = [
  connection(
    'auth',
    -2,
    [...SESSION, 'no_auth'],
    '1.0.0',
    'Authenticates the connection.',
    'the only user is `default`',
  ),
  connection('echo', 2, ['loading', 'stale', 'fast'], '1.0.0', 'Returns the given string.'),
  connection(
    'hello',
    -1,
    [...SESSION, 'no_auth'],
    '6.0.0',
    'Begins with another protocol version.',
    'not within a transaction',
  ),
  connection('ping', -1, ['fast'], '1.0.0', 'Returns PONG, or the given string.'),
  connection('quit', -1, [...SESSION, 'no_auth'], '1.0.0', 'Closes the connection.'),
  connection(
    'reset',
    1,
    [...SESSION, 'no_auth'],
    '6.2.0',
    'Makes the connection as it was at its beginning.',
  ),
  connection(
    'select',
    2,
    ['loading', 'stale', 'fast'],
    '1.0.0',
    'Selects a database.',
    'there is only database 0',
  ),
  connection(
    'client|caching',
    3,
    CLIENT,
    '6.0.0',
    'Tells the server what to track.',
    'tracking is not there',
  ),
  connection('client|getname', 2, CLIENT, '2.6.9', 'Returns the name of the connection.'),
  connection(
    'client|getredir',
    2,
    CLIENT,
    '6.0.0',
    'Returns the client that notices of tracking go to.',
    'always -1',
  ),
  connection('client|help', 2, HELP, '5.0.0', 'Lists the subcommands.'),
  connection(
    'client|id',
    2,
    CLIENT,
    '5.0.0',
    'Returns the id of the connection.',
    'unique within the gateway',
  ),
  connection('client|info', 2, CLIENT, '6.2.0', 'Describes the connection.'),
  connection('client|kill', -3, CLIENT_ADMIN, '2.4.0', 'Closes connections.', OF_THIS_GATEWAY),
  connection('client|list', -2, CLIENT_ADMIN, '2.4.0', 'Lists connections.', OF_THIS_GATEWAY),
  connection(
    'client|no-evict',
    3,
    CLIENT_ADMIN,
    '7.0.0',
    'Keeps the connection when memory is short.',
    'has no effect: connections are not closed to free memory',
  ),
  connection(
    'client|no-touch',
    3,
    CLIENT,
    '7.2.0',
    'Commands do not count as uses of keys.',
    'has no effect',
  ),
  connection(
    'client|pause',
    -3,
    CLIENT_ADMIN,
    '3.0.0',
    'Holds commands back.',
    `${OF_THIS_GATEWAY}; with WRITE, also holds back scripts and functions with the flag no-writes, but not PFCOUNT`,
  ),
  connection(
    'client|reply',
    3,
    CLIENT,
    '3.2.0',
    'Switches replies off or on.',
    'not within a transaction',
  ),
  connection('client|setinfo', 4, CLIENT, '7.2.0', 'Sets what is known of the client library.'),
  connection('client|setname', 3, CLIENT, '2.6.9', 'Sets the name of the connection.'),
  connection(
    'client|tracking',
    -3,
    CLIENT,
    '6.0.0',
    'Tells the client of changes of what it has read.',
    'only OFF',
  ),
  connection('client|trackinginfo', 2, CLIENT, '6.2.0', 'Tells what is tracked.', 'always off'),
  connection(
    'client|unblock',
    -3,
    CLIENT_ADMIN,
    '5.0.0',
    'Ends the wait of a blocked client.',
    OF_THIS_GATEWAY,
  ),
  connection('client|unpause', 2, CLIENT_ADMIN, '6.2.0', 'Ends a pause.', OF_THIS_GATEWAY),
];
