/** Who does what in a transaction. */

import { ErrorReply } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import { type Carrier, carrierOf } from './carriers.js';
import type { Router } from './router.js';
import type { QueuedCommand } from './session.js';
import type { ShardCall } from './shards.js';
import { Known, type Step } from './steps.js';

export interface ExecPlan {
  /** Undefined if the transaction has to be coordinated. */
  readonly calls: readonly ShardCall[] | undefined;
  /** Missing for what the gateway carries out itself. */
  readonly steps: readonly (Step | undefined)[];
  readonly changesSession: boolean;
}

export function planExec(
  router: Router,
  resp: Protocol,
  commands: readonly QueuedCommand[],
): ExecPlan {
  const calls: ShardCall[] = [];
  const steps: (Step | undefined)[] = [];
  let changesSession = false;
  let isCoordinated = false;
  for (const queued of commands) {
    const { kind } = carrierOf(queued.command);
    if (kind === 'session') changesSession = true;
    if (!isOfShards(kind)) steps.push(undefined);
    else {
      const step = route(router, resp, queued, calls);
      if (step === undefined) isCoordinated = true;
      steps.push(step);
    }
  }
  return { calls: isCoordinated ? undefined : calls, steps, changesSession };
}

/** In a transaction, commands that may wait do not: they are as any others. */
export function isOfShards(kind: Carrier['kind']): boolean {
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
