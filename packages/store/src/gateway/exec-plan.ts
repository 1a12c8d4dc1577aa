/** The plan of a transaction: which of its commands the shards carry out, and which the gateway. */

import { ErrorReply, type Reply } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import { carrierOf } from './carriers.js';
import type { Client } from './client.js';
import { errorReplyOf } from './errors.js';
import type { Router } from './router.js';
import type { QueuedCommand } from './session.js';
import { concernShards } from './settings.js';
import type { ShardCall } from './shards.js';
import { FORWARD, Known, type Step } from './steps.js';

export interface ExecPlan {
  /** Undefined if the transaction has to be coordinated. */
  readonly calls: readonly ShardCall[] | undefined;
  /** Missing for what the gateway carries out itself. */
  readonly steps: readonly (Step | undefined)[];
  readonly changesSession: boolean;
  /** Whether the gateway asks the shards for data for commands that it carries out itself. */
  readonly asksShards: boolean;
}

export function planExec(
  router: Router,
  resp: Protocol,
  commands: readonly QueuedCommand[],
): ExecPlan {
  const calls: ShardCall[] = [];
  const steps: (Step | undefined)[] = [];
  let changesSession = false;
  let asksShards = false;
  let isCoordinated = false;
  for (const queued of commands) {
    if (carrierOf(queued.command).kind === 'session') changesSession = true;
    if (isAboutShards(queued)) asksShards = true;
    if (!isOfShards(queued)) steps.push(undefined);
    else {
      const step = route(router, resp, queued, calls);
      if (step === undefined) isCoordinated = true;
      steps.push(step ?? FORWARD);
    }
  }
  if (!isCoordinated) return { calls, steps, changesSession, asksShards };
  // Then each command of the shards has one reply.
  const forwards = steps.map((step) => step && FORWARD);
  return { calls: undefined, steps: forwards, changesSession, asksShards };
}

/** Whether the gateway asks the shards for its reply. */
function isAboutShards({ command: { name }, args }: QueuedCommand): boolean {
  if (name === 'memory|stats') return true;
  return (name === 'config|get' || name === 'config|set') && concernShards(args);
}

/** What the gateway replies to its own command. A promise only if it asks the shards. */
export function ownReply(
  { command, args }: QueuedCommand,
  client: Client,
): Reply | Promise<Reply | undefined> {
  const carrier = carrierOf(command);
  try {
    if (carrier.kind === 'immediate') return carrier.handle(args, client);
    const reply = carrier.kind === 'session' ? carrier.handle(args, client) : undefined;
    if (reply !== undefined) return reply;
    return new ErrorReply('ERR Command not allowed inside a transaction');
  } catch (error) {
    return errorReplyOf(error);
  }
}

/** Carries out the commands of the gateway, one after the other. @returns undefined for those of the shards */
export async function ownReplies(
  commands: readonly QueuedCommand[],
  client: Client,
): Promise<readonly (Reply | undefined)[]> {
  const replies: (Reply | undefined)[] = [];
  for (const queued of commands) {
    replies.push(isOfShards(queued) ? undefined : await ownReply(queued, client));
  }
  return replies;
}

/** In a transaction, commands that may wait do not: they are as any others. */
export function isOfShards({ command }: QueuedCommand): boolean {
  const { kind } = carrierOf(command);
  return kind === 'shards' || kind === 'blocking';
}

function route(
  router: Router,
  resp: Protocol,
  { command, args }: QueuedCommand,
  calls: ShardCall[],
): Step | undefined {
  try {
    return router.route(command, args, resp, calls);
  } catch (error) {
    if (error instanceof ErrorReply) return new Known(error);
    throw error;
  }
}
