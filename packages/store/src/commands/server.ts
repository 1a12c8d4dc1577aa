/** Commands about the server. The gateway carries them out. */

import { ofGateway } from './of-gateway.js';
import type { CommandSpec, Flag } from './spec.js';

const ADMIN: readonly Flag[] = ['admin', 'noscript', 'loading', 'stale'];
const OPEN: readonly Flag[] = ['loading', 'stale'];
const NOT_RECORDED = 'nothing is recorded';
const OF_THIS_GATEWAY = 'those of this gateway';

const server = ofGateway('server');

export const SERVER: readonly CommandSpec[] = [
  server('command', -1, OPEN, '2.8.13', 'Describes all commands.'),
  server('command|count', 2, OPEN, '2.8.13', 'Returns the number of commands.'),
  server(
    'command|docs',
    -2,
    OPEN,
    '7.0.0',
    'Returns the documentation of commands.',
    'without arguments and complexity',
  ),
  server('command|getkeys', -4, OPEN, '2.8.13', 'Returns the keys of a command.'),
  server('command|help', 2, OPEN, '5.0.0', 'Lists the subcommands.'),
  server('command|info', -2, OPEN, '2.8.13', 'Describes commands.'),
  server('command|list', -2, OPEN, '7.0.0', 'Lists the names of commands.'),
  server(
    'config|get',
    -3,
    ADMIN,
    '2.0.0',
    'Returns configuration parameters.',
    'those of this gateway; those of memory are of all shards',
  ),
  server('config|help', 2, OPEN, '5.0.0', 'Lists the subcommands.'),
  server('config|resetstat', 2, ADMIN, '2.0.0', 'Resets the statistics.', OF_THIS_GATEWAY),
  server('config|rewrite', 2, ADMIN, '2.8.0', 'Writes the configuration file.', 'always refused'),
  server(
    'config|set',
    -4,
    ADMIN,
    '2.0.0',
    'Sets configuration parameters.',
    'at this gateway; many are kept without effect. Those of memory are set in all shards',
  ),
  server(
    'info',
    -1,
    OPEN,
    '1.0.0',
    'Describes the server.',
    'fewer fields; not within a transaction',
  ),
  server('latency|doctor', 2, ADMIN, '2.8.13', 'Returns a report on latency.', NOT_RECORDED),
  server('latency|help', 2, OPEN, '2.8.13', 'Lists the subcommands.'),
  server(
    'latency|histogram',
    -2,
    ADMIN,
    '7.0.0',
    'Returns latencies of commands.',
    `${OF_THIS_GATEWAY}, with what shards take`,
  ),
  server('latency|history', 3, ADMIN, '2.8.13', 'Returns latencies of an event.', NOT_RECORDED),
  server('latency|latest', 2, ADMIN, '2.8.13', 'Returns the latest latencies.', NOT_RECORDED),
  server('latency|reset', -2, ADMIN, '2.8.13', 'Resets what was recorded.', NOT_RECORDED),
  server('lolwut', -1, ['readonly', 'fast'], '5.0.0', 'Shows the version.'),
  server('memory|doctor', 2, [], '4.0.0', 'Returns a report on memory.', 'always the same'),
  server('memory|help', 2, OPEN, '4.0.0', 'Lists the subcommands.'),
  server('memory|purge', 2, [], '4.0.0', 'Asks the allocator to release memory.', 'has no effect'),
  server(
    'memory|stats',
    2,
    [],
    '4.0.0',
    'Describes the use of memory.',
    'of the gateway; fewer fields',
  ),
  server(
    'shutdown',
    -1,
    [...ADMIN, 'no_multi'],
    '1.0.0',
    'Ends the server.',
    'ends this gateway, and its cluster if it has started one. With journals nothing is lost; without them, SAVE is refused',
  ),
  server(
    'slowlog|get',
    -2,
    ADMIN,
    '2.2.12',
    'Returns slow commands.',
    `${OF_THIS_GATEWAY}; names of commands are in lower case`,
  ),
  server('slowlog|help', 2, OPEN, '6.2.0', 'Lists the subcommands.'),
  server(
    'slowlog|len',
    2,
    ADMIN,
    '2.2.12',
    'Returns the number of slow commands.',
    OF_THIS_GATEWAY,
  ),
  server('slowlog|reset', 2, ADMIN, '2.2.12', 'Forgets slow commands.', OF_THIS_GATEWAY),
  server(
    'time',
    1,
    ['loading', 'stale', 'fast'],
    '2.6.0',
    'Returns the time of the server.',
    'that of the gateway',
  ),
  server(
    'wait',
    3,
    ['noscript'],
    '3.0.0',
    'Waits until writes are replicated.',
    'they always are: replies at once with the replicas that certainly have them',
  ),
  server('waitaof', 4, ['noscript'], '7.2.0', 'Waits until writes are on disk.', 'replies at once'),
];
