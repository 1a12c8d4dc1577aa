/** COMMAND: what the table says. */

import { syntaxError } from '../../commands/arguments.js';
import { CONTAINERS, lookUp } from '../../commands/lookup.js';
import type { CommandSpec } from '../../commands/spec.js';
import { COMMANDS, COMMANDS_BY_NAME, keyPositions } from '../../commands/table.js';
import { matchesGlob } from '../../engine/glob.js';
import {
  type Bytes,
  ErrorReply,
  MapReply,
  type Reply,
  SetReply,
  Simple,
} from '../../resp/reply.js';
import type { Immediate } from '../carriers.js';

/** A command as COMMAND lists it: one of the table, or one that has only subcommands. */
type Listed = Pick<CommandSpec, 'name' | 'arity' | 'flags' | 'category' | 'since' | 'summary'> &
  Partial<CommandSpec>;

const LISTED: ReadonlyMap<string, Listed> = listed();

export const COMMAND_HANDLERS: Readonly<Record<string, Immediate>> = {
  command: () => [...LISTED.values()].map(describe),
  'command|count': () => LISTED.size,
  'command|docs': (names) => {
    const commands =
      names.length === 0 ? [...LISTED.values()] : names.flatMap((name) => find(name) ?? []);
    return new MapReply(commands.map((command) => [command.name, docsOf(command)]));
  },
  'command|getkeys': ([name, ...args]) => {
    let found: ReturnType<typeof lookUp>;
    try {
      found = lookUp(name, args);
    } catch {
      throw new ErrorReply(
        find(name) === undefined
          ? 'ERR Invalid command specified'
          : 'ERR Invalid number of arguments specified for command',
      );
    }
    if (found.command.keys === undefined && found.command.findKeys === undefined) {
      throw new ErrorReply('ERR The command has no key arguments');
    }
    const keys = keyPositions(found.command, found.args).map((position) => found.args[position]);
    // A script need not have keys.
    if (keys.length > 0 || found.command.reaches) return keys;
    throw new ErrorReply('ERR Invalid arguments specified for command');
  },
  'command|info': (names) =>
    names.length === 0
      ? [...LISTED.values()].map(describe)
      : names.map((name) => {
          const command = find(name);
          return command === undefined ? null : describe(command);
        }),
  'command|list': (args) => {
    if (args.length === 0) return allNames();
    const [filter, kind, value] = args.map((arg) => arg.toLowerCase());
    if (filter !== 'filterby' || args.length !== 3) throw syntaxError();
    if (kind === 'module') return [];
    if (kind === 'pattern') return allNames().filter((name) => matchesGlob(value, name));
    if (kind !== 'aclcat') throw syntaxError();
    return namesOfCategory(value);
  },
};

/** With subcommands. */
function allNames(): string[] {
  return [...LISTED.keys()].flatMap((name) => [
    name,
    ...(CONTAINERS.get(name) ?? []).map((sub) => sub.name),
  ]);
}

/** Of access lists. */
export function categories(): string[] {
  const found = new Set(allNames().flatMap((name) => aclCategories(find(name)!)));
  return [...found].map((category) => category.slice(1));
}

/** @returns the commands of a category of access lists */
export function namesOfCategory(category: string): string[] {
  return allNames().filter((name) => aclCategories(find(name)!).includes(`@${category}`));
}

function find(name: Bytes): Listed | undefined {
  const lower = name.toLowerCase();
  return LISTED.get(lower) ?? (lower.includes('|') ? COMMANDS_BY_NAME.get(lower) : undefined);
}

/** Subcommands are listed with what they belong to. */
function listed(): Map<string, Listed> {
  const found = new Map<string, Listed>();
  for (const command of COMMANDS) {
    if (!command.name.includes('|')) found.set(command.name, command);
  }
  for (const [name, [{ category, since }]] of CONTAINERS) {
    if (found.has(name)) continue;
    const summary = `A container of the ${name.toUpperCase()} commands.`;
    found.set(name, { name, arity: -2, flags: [], category, since, summary });
  }
  return found;
}

function describe(command: Listed): Reply {
  const { name, arity, flags, keys } = command;
  return [
    name,
    arity,
    new SetReply(flags.map((flag) => new Simple(flag))),
    keys?.first ?? 0,
    keys?.last ?? 0,
    keys?.step ?? 0,
    new SetReply(aclCategories(command).map((category) => new Simple(category))),
    new SetReply([]),
    new SetReply(keySpecs(command)),
    (CONTAINERS.get(name) ?? []).map(describe),
  ];
}

const CATEGORIES: Readonly<Record<string, string>> = {
  cluster: 'connection',
  generic: 'keyspace',
  'sorted-set': 'sortedset',
  transactions: 'transaction',
};

function aclCategories({ flags, category, name }: Listed): string[] {
  const found: string[] = [];
  if (flags.includes('write')) found.push('@write');
  if (flags.includes('readonly')) found.push('@read');
  if (category !== 'server' || name.includes('|') === false) {
    if (category !== 'server') found.push(`@${CATEGORIES[category] ?? category}`);
  }
  if (flags.includes('admin')) found.push('@admin', '@dangerous');
  found.push(flags.includes('fast') ? '@fast' : '@slow');
  if (flags.includes('blocking')) found.push('@blocking');
  return found;
}

function keySpecs({ keys, flags }: Listed): Reply[] {
  if (keys === undefined) return [];
  const { first, last, step } = keys;
  const access = flags.includes('write') ? ['RW', 'update'] : ['RO', 'access'];
  const index = new MapReply([['index', first]]);
  const range = new MapReply([
    ['lastkey', last < 0 ? last : last - first],
    ['keystep', step],
    ['limit', 0],
  ]);
  return [
    new MapReply([
      ['flags', new SetReply(access.map((flag) => new Simple(flag)))],
      ['begin_search', typed('index', index)],
      ['find_keys', typed('range', range)],
    ]),
  ];
}

function typed(type: string, spec: Reply): Reply {
  return new MapReply([
    ['type', type],
    ['spec', spec],
  ]);
}

function docsOf({ name, summary, since, category }: Listed): Reply {
  const subcommands = CONTAINERS.get(name);
  return new MapReply([
    ['summary', summary],
    ['since', since],
    ['group', category],
    ...(subcommands === undefined
      ? []
      : [
          [
            'subcommands',
            new MapReply(subcommands.map((sub) => [sub.name, docsOf(sub)] as const)),
          ] as const,
        ]),
  ]);
}
