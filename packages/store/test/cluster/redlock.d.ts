/** What the test uses of a package that has no types. */
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  interface Lock {
    extend(ttlMs: number): Promise<Lock>;
    unlock(): Promise<void>;
  }

  export default class Redlock {
    constructor(clients: readonly Redis[], options: { readonly retryCount: number });
    lock(resources: string | readonly string[], ttlMs: number): Promise<Lock>;
  }
}
