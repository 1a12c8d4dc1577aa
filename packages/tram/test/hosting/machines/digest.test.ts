/** The digest of a configuration: the same for all who can work together, and another for all others. */

import { describe, expect, test } from 'vitest';
import {
  type ClusterConfig,
  type MachinesConfig,
  resolveConfig,
} from '../../../src/config/config.js';
import type { ClusterOptions } from '../../../src/config/options.js';
import { addressBookOf, digestOf } from '../../../src/hosting/machines/digest.js';

const HOSTS = ['alpha', 'beta', 'gamma'].map((name, host) => ({
  name,
  address: `10.0.0.${host + 1}`,
  port: 7411,
}));

const OPTIONS: ClusterOptions = {
  groups: 2,
  memory: 'machines',
  hosts: HOSTS,
  secret: 'cluster.secret',
};

function configOf(
  changes: Partial<ClusterOptions> = {},
  salt = { check: 1, tail: 1 },
  directory = '/a',
): ClusterConfig {
  return resolveConfig({ ...OPTIONS, ...changes }, salt, directory);
}

/** With one host changed. */
const other = (host: number, change: object): Partial<ClusterOptions> => ({
  hosts: HOSTS.with(host, { ...HOSTS[host], ...change }),
});

const digest = digestOf(configOf());

test('it is a SHA-256', () => {
  expect(digest).toHaveLength(32);
  expect(Object.getPrototypeOf(digest)).toBe(Uint8Array.prototype);
});

/** In the opposite order of keys, all the way down. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, turned(inner)]);
  return Object.fromEntries(entries.reverse());
}

describe('it does not depend on', () => {
  const http = HOSTS.map((host) => ({ ...host, http: 7412 }));
  const same: Record<string, ClusterConfig> = {
    'the salt': configOf({}, { check: 2, tail: 3 }),
    'where the files are': configOf({}, undefined, '/b'),
    'the secret’s file': configOf({ secret: 'other.secret' }),
    'the trace': configOf({ trace: 'history' }),
    'the service’s path': configOf({ service: 'service.js' }),
    'status ports': configOf({ hosts: http }),
    'an address': configOf(other(1, { address: 'beta.example' })),
    'a port': configOf(other(2, { port: 7412 })),
    'the revision of the addresses': configOf({ revision: 2 }),
    'a detour through JSON': JSON.parse(JSON.stringify(configOf())),
    'the order of keys': turned(configOf()) as ClusterConfig,
  };
  test.each(Object.entries(same))('%s', (_, config) => {
    expect(digestOf(config)).toEqual(digest);
  });
});

describe('it depends on', () => {
  const names = HOSTS.map(({ name }) => name);
  const changes: Record<string, Partial<ClusterOptions>> = {
    groups: { groups: 3 },
    tree: { tree: [1, -1] },
    'a name': other(0, { name: 'delta' }),
    'the order of hosts': { hosts: HOSTS.toReversed() },
    'a placement': { members: [names, names.toReversed()] },
    'another placement': { members: [names.toReversed(), names] },
  };
  test.each(Object.entries(changes))('%s', (_, change) => {
    expect(digestOf(configOf(change))).not.toEqual(digest);
  });

  const { sizes, timing } = configOf();
  const { salt: _, ...numbers } = sizes;
  test.each(Object.keys(numbers) as (keyof typeof numbers)[])('%s', (name) => {
    const changed = { ...sizes, [name]: sizes[name] + 1 };
    expect(digestOf({ ...configOf(), sizes: changed })).not.toEqual(digest);
  });

  test.each(Object.keys(timing) as (keyof typeof timing)[])('%s', (name) => {
    const changed = { ...timing, [name]: timing[name] + 1 };
    expect(digestOf({ ...configOf(), timing: changed })).not.toEqual(digest);
  });

  test('each of these in its own way', () => {
    const digests = Object.values(changes).map((change) => digestOf(configOf(change)).join());
    expect(new Set(digests).size).toBe(digests.length);
  });
});

test('addresses and ports have a digest of their own, and a revision', () => {
  const bookOf = (changes: Partial<ClusterOptions> = {}) =>
    addressBookOf(configOf(changes) as MachinesConfig);
  const { revision, digest: addresses } = bookOf();
  expect(revision).toBe(1);
  expect(bookOf({ revision: 7 })).toEqual({ revision: 7, digest: addresses });
  expect(bookOf(other(1, { address: 'beta.example' })).digest).not.toBe(addresses);
  expect(bookOf(other(2, { port: 7412 })).digest).not.toBe(addresses);
  expect(bookOf(other(0, { http: 7412 })).digest).toBe(addresses);
});
