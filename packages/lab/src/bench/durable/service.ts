/** The service of `recovery.ts`: 1 KB of state, of which each message changes a few bytes. */
import type { Message } from 'tram-multicast';

const state = new Uint8Array(1024);
let next = 0;

export function deliver({ payload }: Message): void {
  for (let i = 0; i < 8 && i < payload.length; i++) state[(next + i) & 1023] += payload[i] + 1;
  next = (next + 8) & 1023;
}

export function snapshot(): Uint8Array {
  return Uint8Array.of(...state, next >> 3);
}

export function restore(snapshot: Uint8Array): void {
  state.set(snapshot.subarray(0, state.length));
  next = snapshot[state.length] << 3;
}
