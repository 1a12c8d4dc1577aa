/** What a Redis server without cluster mode, replicas, users and debugging says to commands about them. */

import { createHash, randomBytes } from 'node:crypto';
import { badSubcommand, integer } from '../../commands/arguments.js';
import { type Bytes, ErrorReply, MapReply, SetReply } from '../../resp/reply.js';
import type { Immediate } from '../carriers.js';
import type { Settings } from '../settings.js';
import { categories, namesOfCategory } from './command.js';

const PASSWORD_BITS = 256;
const PASSWORD_BITS_MAX = 4096;

export const STANDALONE_HANDLERS: Readonly<Record<string, Immediate>> = {
  asking: refuseClusters,
  cluster: refuseClusters,
  readonly: refuseClusters,
  readwrite: refuseClusters,

  'acl|cat': (args) => {
    if (args.length > 1) throw badSubcommand('ACL', 'cat');
    if (args.length === 0) return categories();
    const names = namesOfCategory(args[0].toLowerCase());
    if (names.length === 0) throw new ErrorReply(`ERR Unknown category '${args[0]}'`);
    return names;
  },
  'acl|genpass': (args) => {
    if (args.length > 1) throw badSubcommand('ACL', 'genpass');
    const bits = args.length === 0 ? PASSWORD_BITS : Number(integer(args[0]));
    if (bits <= 0 || bits > PASSWORD_BITS_MAX) {
      throw new ErrorReply(
        `ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to ${PASSWORD_BITS_MAX}`,
      );
    }
    const digits = Math.ceil(bits / 4);
    return randomBytes(Math.ceil(digits / 2))
      .toString('hex')
      .slice(0, digits);
  },
  'acl|getuser': ([user], { gateway }) => {
    if (user !== 'default') return null;
    const hash = passwordHash(gateway.settings);
    const flags = hash === undefined ? ['on', 'nopass'] : ['on'];
    return new MapReply([
      ['flags', new SetReply(flags)],
      ['passwords', hash === undefined ? [] : [hash]],
      ['commands', '+@all'],
      ['keys', '~*'],
      ['channels', '&*'],
      ['selectors', []],
    ]);
  },
  'acl|list': (_args, { gateway }) => {
    const hash = passwordHash(gateway.settings);
    return [`user default on ${hash === undefined ? 'nopass' : `#${hash}`} ~* &* +@all`];
  },
  'acl|users': () => ['default'],
  'acl|whoami': () => 'default',

  debug: () => {
    throw new ErrorReply(
      'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.',
    );
  },

  role: () => ['master', 0, []],
};

function refuseClusters(): never {
  throw new ErrorReply('ERR This instance has cluster support disabled');
}

/** Undefined if clients need no password. */
function passwordHash(settings: Settings): Bytes | undefined {
  if (!settings.needsPassword) return undefined;
  return createHash('sha256').update(settings.get('requirepass'), 'latin1').digest('hex');
}
