/** The state of a client: its name, settings and subscriptions, and its transaction. */

import type { Watched } from '../commands/internal.js';
import type { CommandSpec } from '../commands/spec.js';
import type { ChannelKind } from '../engine/channels.js';
import { copyOf } from '../resp/parser.js';
import type { Bytes } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';

/** A command between MULTI and EXEC. */
export interface QueuedCommand {
  readonly command: CommandSpec;
  readonly args: readonly Bytes[];
}

/** The commands between MULTI and EXEC. */
export class Transaction {
  readonly commands: QueuedCommand[] = [];
  /** Whether a command could not be queued. EXEC then fails. */
  isRefused = false;
  bytes = 0;

  /** Copies the arguments: they outlive the input that they are a part of. */
  add({ command, args }: QueuedCommand): void {
    const copies = args.map(copyOf);
    for (const { length } of copies) this.bytes += length;
    this.commands.push({ command, args: copies });
  }
}

export class Session {
  resp: Protocol = 2;
  name: Bytes = '';
  libraryName: Bytes = '';
  libraryVersion: Bytes = '';
  transaction: Transaction | undefined;
  watched: Watched[] = [];
  /** The client gets no replies: to anything, or to the next command only. */
  silence: 'none' | 'next' | 'all' = 'none';
  isExemptFromEviction = false;
  readonly subscribed: Readonly<Record<ChannelKind, Set<Bytes>>> = {
    channel: new Set(),
    pattern: new Set(),
    shard: new Set(),
  };

  constructor(public isAuthenticated: boolean) {}

  get subscriptions(): number {
    const { channel, pattern, shard } = this.subscribed;
    return channel.size + pattern.size + shard.size;
  }

  /** Resets everything but subscriptions to the initial state. */
  reset(isAuthenticated: boolean): void {
    this.resp = 2;
    this.name = '';
    this.transaction = undefined;
    this.watched = [];
    // If the reply to RESET itself is not wanted, it is not sent.
    if (this.silence === 'all') this.silence = 'none';
    this.isExemptFromEviction = false;
    this.isAuthenticated = isAuthenticated;
  }
}
