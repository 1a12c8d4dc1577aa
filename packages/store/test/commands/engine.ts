/** An engine for tests of commands: one keyspace, and a record of the keys that have changed. */

import { CommandRunner } from '../../src/commands/runner.js';
import { Channels } from '../../src/engine/channels.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import type { Bytes, Reply } from '../../src/resp/reply.js';

export class Engine {
  /** In the order of the changes. */
  changed: Bytes[] = [];
  readonly keyspace = new Keyspace({ changed: (key) => this.changed.push(key) });
  readonly runner = new CommandRunner(this.keyspace, new Channels(), () => 0);

  /** @param line  the name and arguments, with spaces between them */
  run(line: string, seed = 1): Reply {
    const [name, ...args] = line.split(' ');
    return this.runner.start(name.toLowerCase(), args, seed, false);
  }

  /** As `run`, where the command may wait. */
  runBlocking(line: string): Reply {
    const [name, ...args] = line.split(' ');
    return this.runner.start(name.toLowerCase(), args, 1, true);
  }

  resume(line: string): Reply {
    const [name, ...args] = line.split(' ');
    return this.runner.resume(name.toLowerCase(), args);
  }

  /** @returns the keys that the command has changed */
  changesOf(line: string): readonly Bytes[] {
    this.changed = [];
    this.run(line);
    return this.changed;
  }
}
