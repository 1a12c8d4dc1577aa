/** Commands on the connection and its session; and MULTI, DISCARD, WATCH and UNWATCH. */

import { createHash, timingSafeEqual } from 'node:crypto';
import { integer, syntaxError } from '../../commands/arguments.js';
import { copyOf } from '../../resp/parser.js';
import { type Bytes, ErrorReply, MapReply, OK, type Reply, Simple } from '../../resp/reply.js';
import type { Changing, Immediate } from '../carriers.js';
import type { Client } from '../client.js';
import { Transaction } from '../session.js';
import { REDIS_VERSION } from '../version.js';
import { readVersions } from '../versions.js';

const PONG = new Simple('PONG');
const RESET = new Simple('RESET');
const BAD_NAME = 'Client names cannot contain spaces, newlines or special characters.';

export const CONNECTION_HANDLERS: Readonly<Record<string, Immediate>> = {
  auth: (args, client) => {
    if (args.length > 2) throw syntaxError();
    if (args.length === 1 && !client.gateway.settings.needsPassword) {
      throw new ErrorReply(
        'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
      );
    }
    const [user, password] = args.length === 2 ? args : ['default', args[0]];
    authenticate(user, password, client);
    return OK;
  },

  echo: ([text]) => text,

  ping: (args, client) => {
    if (args.length > 1) {
      throw new ErrorReply("ERR wrong number of arguments for 'ping' command");
    }
    const { resp, subscriptions } = client.session;
    if (resp === 2 && subscriptions > 0) return ['pong', args[0] ?? ''];
    return args.length === 0 ? PONG : args[0];
  },

  select: ([index]) => {
    if (integer(index) !== 0) throw new ErrorReply('ERR DB index is out of range');
    return OK;
  },

  multi: (_args, { session }) => {
    if (session.transaction !== undefined) {
      throw new ErrorReply('ERR MULTI calls can not be nested');
    }
    session.transaction = new Transaction();
    return OK;
  },

  discard: (_args, { session }) => {
    if (session.transaction === undefined) throw new ErrorReply('ERR DISCARD without MULTI');
    session.transaction = undefined;
    session.watched = [];
    return OK;
  },

  unwatch: (_args, { session }) => {
    session.watched = [];
    return OK;
  },
};

export const CONNECTION_SESSION_HANDLERS: Readonly<Record<string, Changing>> = {
  hello,

  quit: (_args, client) => {
    client.endAfterReply();
    return OK;
  },

  reset: (_args, client) => {
    const { gateway, session } = client;
    gateway.pubsub.leaveAll(client);
    session.reset(!gateway.settings.needsPassword);
    return RESET;
  },

  watch: (keys, { gateway, session }) => {
    if (session.transaction !== undefined) {
      throw new ErrorReply('ERR WATCH inside MULTI is not allowed');
    }
    const known = new Set(session.watched.map(([key]) => key));
    const added = [...new Set(keys)].filter((key) => !known.has(key)).map(copyOf);
    if (added.length === 0) return OK;
    return readVersions(gateway, added).then((watched) => {
      session.watched.push(...watched);
      return OK;
    });
  },
};

function hello(args: readonly Bytes[], client: Client): Reply {
  const { session } = client;
  let resp: number = session.resp;
  if (args.length > 0) {
    resp = integer(args[0], 'ERR Protocol version is not an integer or out of range');
    if (resp !== 2 && resp !== 3) throw new ErrorReply('NOPROTO unsupported protocol version');
  }
  let credentials: readonly [user: Bytes, password: Bytes] | undefined;
  let name: Bytes | undefined;
  for (let i = 1; i < args.length; i++) {
    const option = args[i].toLowerCase();
    const left = args.length - i - 1;
    if (option === 'auth' && left >= 2) {
      credentials = [args[i + 1], args[i + 2]];
      i += 2;
    } else if (option === 'setname' && left >= 1) {
      name = args[i + 1];
      checkName(name);
      i++;
    } else throw new ErrorReply(`ERR Syntax error in HELLO option '${args[i]}'`);
  }
  if (credentials !== undefined) authenticate(...credentials, client);
  if (!session.isAuthenticated) {
    throw new ErrorReply(
      'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time',
    );
  }
  if (name !== undefined) session.name = copyOf(name);
  session.resp = resp === 3 ? 3 : 2;
  return new MapReply([
    ['server', 'redis'],
    ['version', REDIS_VERSION],
    ['proto', session.resp],
    ['id', client.id],
    ['mode', 'standalone'],
    ['role', 'master'],
    ['modules', []],
  ]);
}

/** There is one user, `default`. Without a password, it has any. */
function authenticate(user: Bytes, password: Bytes, { gateway, session }: Client): void {
  const { settings } = gateway;
  const isRight = !settings.needsPassword || isEqual(password, settings.get('requirepass'));
  if (user !== 'default' || !isRight) {
    throw new ErrorReply('WRONGPASS invalid username-password pair or user is disabled.');
  }
  session.isAuthenticated = true;
}

/** The time that it takes tells nothing of the password. */
function isEqual(given: Bytes, right: Bytes): boolean {
  const digest = (text: Bytes): Buffer => createHash('sha256').update(text, 'latin1').digest();
  return timingSafeEqual(digest(given), digest(right));
}

/** Only visible characters of ASCII. */
export function checkName(name: Bytes): void {
  if (/[^!-~]/.test(name)) throw new ErrorReply(`ERR ${BAD_NAME}`);
}
