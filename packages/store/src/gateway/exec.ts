/**
 * EXEC: carries out the commands of a transaction. If nothing can keep the shards from running their commands, the calls are a part of a
 * piece, as those of other requests. Otherwise the shards run them as a coordinated transaction, and EXEC is carried out alone.
 */

import type { Watched } from '../commands/internal.js';
import type { NullArray, Reply } from '../resp/reply.js';
import type { Client } from './client.js';
import { type ExecPlan, isOfShards, ownReplies, ownReply, planExec } from './exec-plan.js';
import { JoinedCalls } from './joined-calls.js';
import type { QueuedCommand } from './session.js';
import type { ShardCall } from './shards.js';
import { needCare } from './shortage.js';
import { Known, Several, type Step } from './steps.js';

export class Exec {
  /** Whether the calls are a part of a piece. */
  readonly isPart: boolean;
  /** Whether it waits for the replies of the piece before it. */
  readonly startsAlone: boolean;
  readonly #plan: ExecPlan;

  constructor(
    private readonly client: Client,
    private readonly commands: readonly QueuedCommand[],
    private readonly watched: readonly Watched[],
    /** When the gateway had the request. */
    private readonly beganMs: number,
  ) {
    const { gateway, session } = client;
    this.#plan = planExec(gateway.router, session.resp, commands);
    const { calls, asksShards, changesSession } = this.#plan;
    this.isPart =
      calls !== undefined &&
      watched.length === 0 &&
      !asksShards &&
      !needCare(gateway.shards, calls);
    this.startsAlone = !this.isPart || changesSession;
  }

  /** As a part of a piece: adds the calls. @returns how to write the reply */
  join(calls: ShardCall[]): Step {
    const own = this.#plan.steps.map(
      (step, i) => step === undefined && ownReply(this.commands[i], this.client),
    );
    const joined = new JoinedCalls(this.#plan.calls!);
    calls.push(...joined.calls);
    return this.#step(own as Reply[], joined);
  }

  /** Alone. @returns the replies of the shards, as bytes; a null array if a watched key has changed */
  run(): Promise<readonly Uint8Array[] | NullArray> {
    const { gateway, session } = this.client;
    const { calls } = this.#plan;
    if (calls !== undefined) return gateway.transactions.runIf(this.watched, calls);
    const queued = this.commands
      .filter(isOfShards)
      .map(({ command, args }) => ({ name: command.name, args }));
    return gateway.transactions.transact(queued, this.watched, session.resp);
  }

  /** After `run`: the gateway carries out its own commands. @returns how to write the reply */
  async finish(): Promise<Step> {
    return this.#step(await ownReplies(this.commands, this.client));
  }

  #step(own: readonly (Reply | undefined)[], joined?: JoinedCalls): Step {
    const { client, commands, beganMs } = this;
    return new Several(
      this.#plan.steps.map((step, i) => step ?? new Known(own[i]!)),
      (i, error) =>
        client.gateway.stats.noteReply(
          { ...commands[i], beganMs },
          error,
          performance.now(),
          client,
        ),
      joined,
    );
  }
}
