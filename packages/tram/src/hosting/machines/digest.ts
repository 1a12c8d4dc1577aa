/**
 * A digest of everything on which the hosts and clients of a cluster on machines must agree. They compare it before
 * they access each other's memory, because a different configuration means different offsets.
 */
import { createHash } from 'node:crypto';
import type { ClusterConfig } from '../../config/config.js';
import { ARENA_VERSION } from '../../memory/arena.js';

/** SHA-256. Leaves out what may differ between machines: file paths and the addresses for HTTP. */
export function digestOf(config: ClusterConfig): Uint8Array {
  const { hosts, machines, placement, parents, sizes, timing } = config;
  const common = {
    version: ARENA_VERSION,
    hosts,
    machines: machines?.map(({ name, address, port }) => ({ name, address, port })),
    placement,
    parents,
    // The salt follows from the secret.
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
