/** Finds the command of a request in the table. Names are compared without regard to case. */

import { type Bytes, ErrorReply } from '../resp/reply.js';
import { wrongArity } from './arguments.js';
import type { CommandSpec } from './spec.js';
import { COMMANDS, COMMANDS_BY_NAME } from './table.js';

/** A command that only consists of subcommands, by name. */
export const CONTAINERS: ReadonlyMap<string, readonly CommandSpec[]> = containers();

/** By name, as it is usually written: in lower or upper case. Subcommands have no names of their own. */
const BY_NAME = new Map<Bytes, CommandSpec>(
  COMMANDS.filter(({ name }) => !name.includes('|')).flatMap((command) => [
    [command.name, command],
    [command.name.toUpperCase(), command],
  ]),
);

/** How much of a request is repeated in an error. */
const QUOTED_MAX = 128;

export interface Found {
  readonly command: CommandSpec;
  /** Those of the subcommand, if it is one. */
  readonly args: readonly Bytes[];
}

export function findCommand(name: Bytes): CommandSpec | undefined {
  return BY_NAME.get(name) ?? BY_NAME.get(name.toLowerCase());
}

/** @throws ErrorReply if there is no such command, or it has too few or too many arguments */
export function lookUp(name: Bytes, args: readonly Bytes[]): Found {
  const command = findCommand(name);
  if (command !== undefined && args.length > 0 && CONTAINERS.has(command.name)) {
    return lookUpSubcommand(name, args);
  }
  if (command !== undefined) {
    checkArity(command, args.length + 1);
    return { command, args };
  }
  if (!CONTAINERS.has(name.toLowerCase())) throw unknownCommand(name, args);
  return lookUpSubcommand(name, args);
}

function lookUpSubcommand(name: Bytes, args: readonly Bytes[]): Found {
  if (args.length === 0) throw wrongArity(name.toLowerCase());
  const subcommand = COMMANDS_BY_NAME.get(`${name}|${args[0]}`.toLowerCase());
  if (subcommand === undefined) {
    const quoted = args[0].slice(0, QUOTED_MAX);
    throw new ErrorReply(`ERR unknown subcommand '${quoted}'. Try ${name.toUpperCase()} HELP.`);
  }
  checkArity(subcommand, args.length + 1);
  return { command: subcommand, args: args.slice(1) };
}

function checkArity(command: CommandSpec, words: number): void {
  const { arity } = command;
  if (arity >= 0 ? words !== arity : words < -arity) throw wrongArity(command.name);
}

function unknownCommand(name: Bytes, args: readonly Bytes[]): ErrorReply {
  let quoted = '';
  for (const arg of args) {
    if (quoted.length >= QUOTED_MAX) break;
    quoted += `'${arg.slice(0, QUOTED_MAX - quoted.length)}' `;
  }
  return new ErrorReply(
    `ERR unknown command '${name.slice(0, QUOTED_MAX)}', with args beginning with: ${quoted}`,
  );
}

function containers(): Map<string, CommandSpec[]> {
  const found = new Map<string, CommandSpec[]>();
  for (const command of COMMANDS) {
    const bar = command.name.indexOf('|');
    if (bar < 0) continue;
    const name = command.name.slice(0, bar);
    const subcommands = found.get(name);
    if (subcommands === undefined) found.set(name, [command]);
    else subcommands.push(command);
  }
  return found;
}
