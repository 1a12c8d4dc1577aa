/** The engine alone: one keyspace, with what the gateway does to a command before (its name, and how many arguments it has). */

import { wrongArity } from '../../src/commands/arguments.js';
import { CommandRunner } from '../../src/commands/runner.js';
import type { CommandSpec } from '../../src/commands/spec.js';
import { COMMANDS, COMMANDS_BY_NAME } from '../../src/commands/table.js';
import { Channels } from '../../src/engine/channels.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import { ErrorReply, type Reply } from '../../src/resp/reply.js';
import { ReplyWriter } from '../../src/resp/writer.js';
import type { Target } from './target.js';
import { parseWire, type Wire } from './wire.js';

/** Names of commands that have subcommands. */
const CONTAINERS = new Set(
  COMMANDS.filter(({ name }) => name.includes('|')).map(({ name }) => name.split('|')[0]),
);

export class EngineTarget implements Target {
  readonly keyspace = new Keyspace({ changed: () => undefined });
  readonly #runner = new CommandRunner(this.keyspace, new Channels(), () => 0);
  readonly #writer = new ReplyWriter();
  #seed = 1;

  async run(commands: readonly (readonly string[])[], protocol: 2 | 3): Promise<Wire[]> {
    this.keyspace.nowMs = Date.now();
    return commands.map((command) => {
      this.#writer.clear();
      this.#writer.write(this.reply(command), protocol);
      return parseWire(this.#writer.written(), 0)!.wire;
    });
  }

  close(): void {}

  /** @param seed  for random choices */
  reply(command: readonly string[], seed = this.#seed++): Reply {
    const found = specOf(command);
    if (found instanceof ErrorReply) return found;
    const { spec, args } = found;
    const words = command.length;
    if (spec.arity > 0 ? words !== spec.arity : words < -spec.arity) return wrongArity(spec.name);
    return this.#runner.start(spec.name, args, seed, false);
  }
}

export function specOf(
  command: readonly string[],
): { readonly spec: CommandSpec; readonly args: readonly string[] } | ErrorReply {
  const name = command[0].toLowerCase();
  if (!CONTAINERS.has(name)) {
    const spec = COMMANDS_BY_NAME.get(name);
    return spec
      ? { spec, args: command.slice(1) }
      : new ErrorReply(`ERR unknown command '${name}'`);
  }
  if (command.length === 1) return wrongArity(name);
  const spec = COMMANDS_BY_NAME.get(`${name}|${command[1].toLowerCase()}`);
  if (spec) return { spec, args: command.slice(2) };
  return new ErrorReply(
    `ERR unknown subcommand '${command[1].slice(0, 128)}'. Try ${name.toUpperCase()} HELP.`,
  );
}
