/** The service of the store: what TRAM runs at every replica. */

import type { Message, ServiceContext } from 'tram-multicast';
import { Shard } from './shard/shard.js';

/** Node loads this module once for each replica, so each has a shard of its own. */
const shard = new Shard();

export const ticks = { everyMs: 50 };

export function deliver(message: Message, context: ServiceContext): ReturnType<Shard['deliver']> {
  return shard.deliver(message, context);
}

export function tick(context: ServiceContext): void {
  shard.tick(context);
}

export function abandoned(id: string): void {
  shard.abandoned(id);
}

export function snapshot(): Iterable<Uint8Array> {
  return shard.snapshot();
}

export function restore(bytes: Uint8Array): void {
  shard.restore(bytes);
}
