/**
 * Digests of what the hosts and clients of a cluster on machines must agree on. They compare them before they access
 * each other's memory, because a different configuration means different offsets.
 *
 * Addresses are no part of the configuration's digest: they may differ while a change of them is rolled out
 * (`memory/machines/known-hosts.ts`).
 */
import { createHash } from 'node:crypto';
import type { ClusterConfig } from '../../config/config.js';
import type { Machines } from '../../config/machines.js';
import { ARENA_VERSION } from '../../memory/arena.js';
import type { AddressBook } from '../../memory/machines/known-hosts.js';

/** SHA-256. Leaves out what may differ between machines: file paths and all addresses. */
export function digestOf(config: ClusterConfig): Uint8Array {
  const { hosts, machines, placement, parents, sizes, timing, order, durability } = config;
  const common = {
    version: ARENA_VERSION,
    hosts,
    machines: machines?.map(({ name }) => name),
    placement,
    parents,
    // The salt follows from the secret.
    sizes: { ...sizes, salt: undefined },
    timing,
    order,
    durability,
  };
  return new Uint8Array(createHash('sha256').update(canonicalJson(common)).digest());
}

/** The revision of the addresses in the configuration, and their digest. */
export function addressBookOf({ machines, revision }: Machines): AddressBook {
  const addresses = machines.map(({ address, port }) => ({ address, port }));
  const hash = createHash('sha256').update(canonicalJson(addresses)).digest();
  return { revision, digest: hash.readUInt16LE() };
}

/** The same for values that differ only in the order of their keys. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
