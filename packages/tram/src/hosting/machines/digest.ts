/**
 * All that the hosts and clients of a cluster across machines must agree on, in a few bytes. They compare it before they
 * touch each other's memory: who disagrees would look for things where they are not.
 */
import { createHash } from 'node:crypto';
import type { ClusterConfig } from '../../config/config.js';
import { ARENA_VERSION } from '../../memory/arena.js';

/** SHA-256. What is each machine's own business does not count: its files, and where it tells how it is. */
export function digestOf(config: ClusterConfig): Uint8Array {
  const { hosts, machines, placement, parents, sizes, timing } = config;
  const common = {
    version: ARENA_VERSION,
    hosts,
    machines: machines?.map(({ name, address, port }) => ({ name, address, port })),
    placement,
    parents,
    // Whoever knows the secret knows the salt.
    sizes: { ...sizes, salt: undefined },
    timing,
  };
  return new Uint8Array(createHash('sha256').update(canonicalJson(common)).digest());
}

/** The same for values that differ only in the order of their keys. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
