/** Calls that are blocked: they wait until one of their keys has something for them, first come, first served. */

import type { Call } from '../messages/contents.js';
import type { Bytes } from '../resp/reply.js';

export interface BlockedCall {
  readonly gateway: Bytes;
  readonly call: Call;
  readonly keys: readonly Bytes[];
  /** Infinity if the call has no deadline. */
  readonly deadlineMs: number;
  /** The reply at its deadline, as bytes. */
  readonly timedOut: Uint8Array;
}

export class BlockedCalls {
  /** In the order of their arrival. */
  readonly #calls = new Map<string, BlockedCall>();
  readonly #byKey = new Map<Bytes, Set<BlockedCall>>();

  constructor(state: readonly BlockedCall[] = []) {
    for (const blocked of state) this.add(blocked);
  }

  /** The calls as snapshots store them. */
  get state(): readonly BlockedCall[] {
    return [...this.#calls.values()];
  }

  get size(): number {
    return this.#calls.size;
  }

  isAwaited(key: Bytes): boolean {
    // Without any, the hash of the key is not needed.
    return this.#byKey.size > 0 && this.#byKey.has(key);
  }

  add(blocked: BlockedCall): void {
    this.#calls.set(idOf(blocked.gateway, blocked.call.blockedAs), blocked);
    for (const key of blocked.keys) {
      const waiting = this.#byKey.get(key);
      if (waiting === undefined) this.#byKey.set(key, new Set([blocked]));
      else waiting.add(blocked);
    }
  }

  get(gateway: Bytes, blockedAs: number): BlockedCall | undefined {
    return this.#calls.get(idOf(gateway, blockedAs));
  }

  has(blocked: BlockedCall): boolean {
    return this.get(blocked.gateway, blocked.call.blockedAs) === blocked;
  }

  remove(blocked: BlockedCall): void {
    this.#calls.delete(idOf(blocked.gateway, blocked.call.blockedAs));
    for (const key of blocked.keys) {
      const waiting = this.#byKey.get(key);
      waiting?.delete(blocked);
      if (waiting?.size === 0) this.#byKey.delete(key);
    }
  }

  /** The calls that wait for this key, in the order of their arrival. */
  waitingFor(key: Bytes): readonly BlockedCall[] {
    return [...(this.#byKey.get(key) ?? [])];
  }

  pastDeadline(nowMs: number): readonly BlockedCall[] {
    return this.state.filter(({ deadlineMs }) => deadlineMs <= nowMs);
  }

  dropGateway(gateway: Bytes): void {
    for (const blocked of this.state) if (blocked.gateway === gateway) this.remove(blocked);
  }
}

function idOf(gateway: Bytes, blockedAs: number): string {
  return `${gateway} ${blockedAs}`;
}
