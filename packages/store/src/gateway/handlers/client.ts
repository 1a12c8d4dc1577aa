/** CLIENT: this connection, and the others of this gateway. */

import { badSubcommand, integer, syntaxError } from '../../commands/arguments.js';
import { copyOf } from '../../resp/parser.js';
import {
  type Bytes,
  ErrorReply,
  MapReply,
  OK,
  type Reply,
  SetReply,
  Verbatim,
} from '../../resp/reply.js';
import type { Changing, Immediate } from '../carriers.js';
import type { Client } from '../client.js';
import { checkName } from './connection.js';

const TYPES = ['normal', 'master', 'replica', 'slave', 'pubsub'];

/** What CLIENT PAUSE holds back. */
const HOLDS = new Map<Bytes, 'all' | 'writes'>([
  ['all', 'all'],
  ['write', 'writes'],
]);

export const CLIENT_HANDLERS: Readonly<Record<string, Immediate>> = {
  'client|caching': () => {
    throw new ErrorReply(
      'ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled',
    );
  },
  'client|getname': (_args, { session }) => (session.name === '' ? null : session.name),
  'client|getredir': () => -1,
  'client|id': (_args, { id }) => id,
  'client|info': (_args, client) => lines([client]),
  'client|list': list,
  'client|no-evict': ([value], { session }) => {
    session.isExemptFromEviction = isOn(value);
    return OK;
  },
  'client|no-touch': ([value]) => {
    isOn(value);
    return OK;
  },
  'client|pause': ([timeout, mode = 'all', ...rest], { gateway }) => {
    if (rest.length > 0) throw badSubcommand('CLIENT', 'pause');
    const held = HOLDS.get(mode.toLowerCase());
    if (held === undefined) throw new ErrorReply('ERR CLIENT PAUSE mode must be WRITE or ALL');
    const ms = integer(timeout, 'ERR timeout is not an integer or out of range');
    if (ms < 0) throw new ErrorReply('ERR timeout is negative');
    gateway.pause.start(held, ms, Date.now());
    return OK;
  },
  'client|unpause': (_args, { gateway }) => {
    gateway.pause.end();
    return OK;
  },
  'client|setinfo': ([attribute, value], { session }) => {
    const name = attribute.toLowerCase();
    if (name !== 'lib-name' && name !== 'lib-ver') {
      throw new ErrorReply(`ERR Unrecognized option '${attribute}'`);
    }
    if (/[^!-~]/.test(value)) {
      throw new ErrorReply(`ERR ${name} cannot contain spaces, newlines or special characters.`);
    }
    if (name === 'lib-name') session.libraryName = copyOf(value);
    else session.libraryVersion = copyOf(value);
    return OK;
  },
  'client|setname': ([name], { session }) => {
    checkName(name);
    session.name = copyOf(name);
    return OK;
  },
  'client|tracking': ([value]) => {
    if (isOn(value)) throw new ErrorReply('ERR client tracking is not supported');
    return OK;
  },
  'client|trackinginfo': () =>
    new MapReply([
      ['flags', new SetReply(['off'])],
      ['redirect', -1],
      ['prefixes', []],
    ]),
  'client|unblock': ([id, reason = 'timeout', ...rest], { gateway }) => {
    const word = reason.toLowerCase();
    if ((word !== 'timeout' && word !== 'error') || rest.length > 0) {
      throw new ErrorReply('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
    }
    const error = new ErrorReply('UNBLOCKED client unblocked via CLIENT UNBLOCK');
    const blocked = gateway.clients.get(integer(id))?.conversation;
    return blocked?.unblock(word === 'error' ? error : undefined) ? 1 : 0;
  },
};

export const CLIENT_SESSION_HANDLERS: Readonly<Record<string, Changing>> = {
  'client|kill': kill,
  'client|reply': ([mode], { session }) => {
    const word = mode.toLowerCase();
    if (word === 'on') {
      session.silence = 'none';
      return OK;
    }
    if (word === 'off') session.silence = 'all';
    else if (word !== 'skip') throw syntaxError();
    else if (session.silence === 'none') session.silence = 'next';
    return undefined;
  },
};

function isOn(value: Bytes): boolean {
  const word = value.toLowerCase();
  if (word !== 'on' && word !== 'off') throw syntaxError();
  return word === 'on';
}

function typeOf({ session }: Client): string {
  return session.subscriptions > 0 ? 'pubsub' : 'normal';
}

function checkType(type: Bytes): string {
  if (!TYPES.includes(type.toLowerCase())) {
    throw new ErrorReply(`ERR Unknown client type '${type}'`);
  }
  return type.toLowerCase();
}

function list(args: readonly Bytes[], { gateway }: Client): Reply {
  const clients = [...gateway.clients.values()];
  const option = args[0]?.toLowerCase();
  if (option === undefined) return lines(clients);
  if (option === 'type' && args.length === 2) {
    const type = checkType(args[1]);
    return lines(clients.filter((client) => typeOf(client) === type));
  }
  if (option !== 'id' || args.length < 2) throw syntaxError();
  const ids = args.slice(1).map((arg) => integer(arg, 'ERR Invalid client ID'));
  return lines(ids.flatMap((id) => gateway.clients.get(id) ?? []));
}

function lines(clients: readonly Client[]): Verbatim {
  return new Verbatim(clients.map((client) => `${describe(client)}\n`).join(''));
}

function describe(client: Client): Bytes {
  const { session, conversation } = client;
  const { subscribed, transaction } = session;
  const nowMs = Date.now();
  const seconds = (ms: number): number => Math.max(0, Math.floor((nowMs - ms) / 1000));
  const flags =
    (session.subscriptions > 0 ? 'P' : '') +
    (transaction !== undefined ? 'x' : '') +
    (conversation.isBlocked ? 'b' : '') +
    (session.isExemptFromEviction ? 'e' : '') +
    (client.isLocal ? 'U' : '');
  const fields: readonly (readonly [string, string | number])[] = [
    ['id', client.id],
    ['addr', client.address],
    ['laddr', client.localAddress],
    ['fd', -1],
    ['name', session.name],
    ['age', seconds(client.beganMs)],
    ['idle', seconds(client.lastActiveMs)],
    ['flags', flags === '' ? 'N' : flags],
    ['db', 0],
    ['sub', subscribed.channel.size],
    ['psub', subscribed.pattern.size],
    ['ssub', subscribed.shard.size],
    ['multi', transaction?.commands.length ?? -1],
    ['qbuf', conversation.heldBytes],
    ['qbuf-free', 0],
    ['argv-mem', 0],
    ['multi-mem', transaction?.bytes ?? 0],
    ['rbs', 0],
    ['rbp', 0],
    ['obl', 0],
    ['oll', 0],
    ['omem', client.outputBytes],
    ['tot-mem', conversation.heldBytes + client.outputBytes],
    ['events', 'r'],
    ['cmd', conversation.lastCommand],
    ['user', 'default'],
    ['redir', -1],
    ['resp', session.resp],
    ['lib-name', session.libraryName],
    ['lib-ver', session.libraryVersion],
  ];
  return fields.map(([name, value]) => `${name}=${value}`).join(' ');
}

type Condition = (client: Client) => boolean;

function kill(args: readonly Bytes[], self: Client): Reply {
  const { gateway } = self;
  if (args.length === 1) {
    const found = [...gateway.clients.values()].find(({ address }) => address === args[0]);
    if (found === undefined) throw new ErrorReply('ERR No such client');
    end(found, self);
    return OK;
  }
  if (args.length % 2 !== 0) throw syntaxError();
  const conditions: Condition[] = [];
  let skipsSelf = true;
  for (let i = 0; i < args.length; i += 2) {
    const [option, value] = [args[i].toLowerCase(), args[i + 1]];
    if (option === 'skipme') {
      if (!/^(yes|no)$/i.test(value)) throw syntaxError();
      skipsSelf = value.toLowerCase() === 'yes';
    } else conditions.push(conditionOf(option, value));
  }
  const killed = [...gateway.clients.values()].filter(
    (client) => !(skipsSelf && client === self) && conditions.every((holds) => holds(client)),
  );
  for (const client of killed) end(client, self);
  return killed.length;
}

function conditionOf(option: string, value: Bytes): Condition {
  if (option === 'id') {
    const id = integer(value, 'ERR client-id should be greater than 0');
    if (id < 1) throw new ErrorReply('ERR client-id should be greater than 0');
    return (client) => client.id === id;
  }
  if (option === 'addr') return (client) => client.address === value;
  if (option === 'laddr') return (client) => client.localAddress === value;
  if (option === 'type') {
    const type = checkType(value);
    return (client) => typeOf(client) === type;
  }
  if (option !== 'user') throw syntaxError();
  if (value !== 'default') throw new ErrorReply(`ERR No such user '${value}'`);
  return () => true;
}

/** A client that ends itself gets the reply first. */
function end(client: Client, self: Client): void {
  if (client === self) client.endAfterReply();
  else client.kill();
}
