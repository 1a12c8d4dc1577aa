/** The kinds of items that queue for keys of a shard. */

import { type Claim, claimOf } from '../commands/claims.js';
import type { Call, Claimed } from '../messages/contents.js';
import type { Bytes } from '../resp/reply.js';
import type { BlockedCall } from './blocked.js';

export type InLine = CallInLine | RetryInLine | Transaction;

/** A message that waits, because some of its calls are in line. */
export interface Batch {
  readonly id: string;
  /** Undefined for calls that have not run yet. */
  readonly replies: (Uint8Array | undefined)[];
  missing: number;
}

export interface CallInLine {
  readonly type: 'call';
  readonly call: Call;
  readonly sender: Bytes;
  readonly seed: number;
  readonly nowMs: number;
  readonly batch: Batch;
  readonly index: number;
}

/** A blocked call that may go on once it is first. */
interface RetryInLine {
  readonly type: 'retry';
  readonly blocked: BlockedCall;
}

export interface Transaction {
  readonly type: 'transaction';
  readonly id: Bytes;
  readonly gateway: Bytes;
  readonly keys: readonly Claimed[];
  readonly isWhole: boolean;
  readonly groups: readonly number[];
  readonly nowMs: number;
  /** The message that prepares it. */
  readonly message: string;
  /** The time from which the transaction is overdue and gateways are told. */
  tellMs: number;
  /** Whether its own gateway was told, and has not yet replied that it continues. */
  isGatewayTold: boolean;
}

/** The keys on which the item has to be first. */
export function claimInLine(item: InLine): Claim {
  if (item.type === 'transaction') {
    return item.isWhole ? undefined : item.keys.map(({ key }) => key);
  }
  const { name, args } = item.type === 'call' ? item.call : item.blocked.call;
  return claimOf(name, args);
}
