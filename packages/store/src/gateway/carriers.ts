/** Who carries out a command: shards, or a function of the gateway. */

import type { CommandSpec } from '../commands/spec.js';
import { COMMANDS } from '../commands/table.js';
import type { Bytes, Reply } from '../resp/reply.js';
import type { Client } from './client.js';
import { CLIENT_HANDLERS, CLIENT_SESSION_HANDLERS } from './handlers/client.js';
import { COMMAND_HANDLERS } from './handlers/command.js';
import { CONNECTION_HANDLERS, CONNECTION_SESSION_HANDLERS } from './handlers/connection.js';
import { HELP_HANDLERS } from './handlers/help.js';
import { INFO_HANDLERS } from './handlers/info.js';
import { CHANNEL_HANDLERS } from './handlers/pubsub.js';
import { CONFIG_HANDLERS, SERVER_HANDLERS, SERVER_SESSION_HANDLERS } from './handlers/server.js';
import { STANDALONE_HANDLERS } from './handlers/standalone.js';

/** A handler that replies at once, and does not affect other requests. */
export type Immediate = (args: readonly Bytes[], client: Client) => Reply;

/** A handler that changes how requests are read or answered, or replies later. @returns undefined if there is no reply */
export type Changing = (
  args: readonly Bytes[],
  client: Client,
) => Reply | undefined | Promise<Reply | undefined>;

export type Carrier = { readonly command: CommandSpec } & (
  | { readonly kind: 'shards' | 'blocking' | 'exec' }
  | { readonly kind: 'immediate'; readonly handle: Immediate }
  | { readonly kind: 'session'; readonly handle: Changing }
);

const IMMEDIATE: Readonly<Record<string, Immediate>> = {
  ...CLIENT_HANDLERS,
  ...COMMAND_HANDLERS,
  ...CONNECTION_HANDLERS,
  ...HELP_HANDLERS,
  ...SERVER_HANDLERS,
  ...STANDALONE_HANDLERS,
};

const CHANGING: Readonly<Record<string, Changing>> = {
  ...CHANNEL_HANDLERS,
  ...CLIENT_SESSION_HANDLERS,
  ...CONFIG_HANDLERS,
  ...CONNECTION_SESSION_HANDLERS,
  ...INFO_HANDLERS,
  ...SERVER_SESSION_HANDLERS,
};

const CARRIERS = new Map(COMMANDS.map((command) => [command, newCarrier(command)]));

export function carrierOf(command: CommandSpec): Carrier {
  return CARRIERS.get(command)!;
}

function newCarrier(command: CommandSpec): Carrier {
  const { name, run, flags } = command;
  if (run !== undefined)
    return { command, kind: flags.includes('blocking') ? 'blocking' : 'shards' };
  if (name === 'exec') return { command, kind: name };
  if (IMMEDIATE[name] !== undefined) {
    return { command, kind: 'immediate', handle: IMMEDIATE[name] };
  }
  if (CHANGING[name] === undefined) throw new Error(`nobody carries out '${name}'`);
  return { command, kind: 'session', handle: CHANGING[name] };
}
