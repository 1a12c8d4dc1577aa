/** What a store is started with. */

import type { Policy } from './engine/eviction.js';
import type { Tls } from './gateway/server.js';

/** As TRAM names them. */
export const MEMORIES = ['threads', 'processes'] as const;
export const DURABILITIES = ['none', 'everySecond', 'always'] as const;

/** The cluster behind the gateway. */
export interface ClusterOptions {
  /** How many parts the keys are divided into: 1 to 64. Default 4. */
  readonly shards?: number;
  /** Copies of each shard: 1, 3, 5 or 7. The store goes on while more than half of them run. Default 3. */
  readonly replicas?: number;
  /** What runs them. Default `threads`, of this process. */
  readonly memory?: (typeof MEMORIES)[number];
  /** The name by which the command `tram` and other processes find a cluster of processes. Default: it has none. */
  readonly name?: string;
  /** What survives if all of them end at once. Default `none`. */
  readonly durability?: (typeof DURABILITIES)[number];
  /** The directory of the journals. Needed unless `durability` is `none`. */
  readonly journal?: string;
  /** The name of a cluster that another store has started on this machine: this gateway attaches to it. Then the options above are its. */
  readonly attach?: string;
  /** The configuration file of a cluster that others run, which this gateway connects to. Then the options above are in that file. */
  readonly config?: string;
  /**
   * How many bytes all keys may take; 0: any number. Then keys are evicted, or writes refused. Default: what the shards have; a new
   * cluster has no limit.
   */
  readonly maxmemory?: number;
  /** Which keys are evicted. Default: what the shards have; a new cluster has `noeviction`. */
  readonly maxmemoryPolicy?: Policy;
}

export interface StoreOptions extends ClusterOptions {
  /** Default 6379; 0: any that is free; false: no TCP. */
  readonly port?: number | false;
  /** The addresses to listen at. Default: 127.0.0.1 only. */
  readonly bind?: readonly string[];
  /** The path of a Unix socket, besides TCP. */
  readonly unixSocket?: string;
  /**
   * The port of `/metrics`, `/healthz` and `/readyz`, at the addresses of `bind`; 0: any that is free. They need no password, and are
   * not encrypted. Default: none.
   */
  readonly metrics?: number;
  /** Connections over TCP use TLS. */
  readonly tls?: Tls;
  /** Clients have to send it first. Default: none is needed. */
  readonly password?: string;
  /** How many clients may be connected at a time. Default 10,000. */
  readonly maxclients?: number;
}

/** An error that the user can correct. */
export class StoreError extends Error {
  override name = 'StoreError';

  /** @param hint  what to do next */
  constructor(
    message: string,
    readonly hint: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
