import type { Value } from './values.js';

/** What a key has. */
export class Entry {
  /** When it expires, in milliseconds since 1970; Infinity: never. */
  expiresAtMs = Infinity;
  /** Grows with every change: see `Keyspace.versionOf`. */
  version = 0;
  /** No snapshot up to this one needs this entry any more: see `Snapshots`. */
  savedUpTo = 0;
  /** Its place in the queue of keys that expire; -1: none. */
  queueIndex = -1;
  /** What it counts for in the memory of the keyspace. */
  memory = 0;

  constructor(public value: Value) {}

  /** Whether it is in the queue of keys that expire. V8 keeps times in objects of their own: this reads less memory than a time does. */
  get expires(): boolean {
    return this.queueIndex >= 0;
  }
}
