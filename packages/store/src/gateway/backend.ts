/** What is behind a gateway: the cluster, as connections see it. */

import type { Queued, Watched } from '../commands/internal.js';
import type { ChannelKind } from '../engine/channels.js';
import type { Bytes, NullArray } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import type { ShardCall, Shards } from './shards.js';
import type { Pressure, Traffic } from './traffic.js';

/** Transactions in which the state of one shard decides what another one does. */
export interface Transactions {
  /**
   * Runs all commands as one, on any keys of any shards, unless a watched key has changed.
   * @returns a reply for each command, as bytes, errors included; a null array if a watched key has changed
   */
  transact(
    commands: readonly Queued[],
    watched: readonly Watched[],
    resp: Protocol,
  ): Promise<readonly Uint8Array[] | NullArray>;

  /**
   * Runs calls that each shard can carry out alone, unless a watched key has changed.
   * @returns their replies, as bytes; a null array if a watched key has changed
   */
  runIf(
    watched: readonly Watched[],
    calls: readonly ShardCall[],
  ): Promise<readonly Uint8Array[] | NullArray>;

  /** All scripts were forgotten. */
  forgetScripts(): void;
}

/** A command that waits. */
export interface Blocked {
  /** It waits no longer: `replied` gets what it gets after its time-out, unless it has its reply already. */
  giveUp(): void;
}

/** Commands that may wait, on any keys of any shards. */
export interface Waits {
  /**
   * @param replied  gets the reply, valid only during the call, and whether it is that of a command that was given up
   * @param failed  called instead if it is not known whether the command was carried out
   */
  block(
    queued: Queued,
    resp: Protocol,
    replied: (reply: Uint8Array, wasGivenUp: boolean) => void,
    failed: (error: Error) => void,
  ): Blocked;
}

export interface Channels {
  /**
   * Tells the shard of a channel, or all shards of a pattern, how many clients of this gateway listen to it now. From `done` on,
   * messages come. Of one name, the gateway tells the next number only after this one is `done`, or has failed.
   */
  announce(
    kind: ChannelKind,
    name: Bytes,
    clients: number,
    done: () => void,
    failed: (error: Error) => void,
  ): void;
}

/** Whoever makes one passes messages of channels to `Gateway.published`. */
export interface Backend {
  readonly shards: Shards;
  readonly transactions: Transactions;
  readonly waits: Waits;
  readonly channels: Channels;
  readonly traffic: Traffic;
  readonly pressure: Pressure;
}
