/** A gateway refuses clusters that are not those of a store, and says what to change. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Cluster, type StartOptions } from 'tram-multicast';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Store } from '../../src/index.js';

const SERVICE = fileURLToPath(new URL('../../dist/service.js', import.meta.url));
/** What a cluster of one group needs. */
const FIT = {
  groups: 1,
  replicas: 1,
  hosts: 1,
  order: 'strict',
  payloadBytesMax: 65_536,
  replyBytesMax: 16_384,
  callsMax: 17,
  clients: 2,
  service: SERVICE,
} as const;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-unfit-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a cluster, and runs the test with its name. */
async function withCluster(
  options: Partial<StartOptions>,
  run: (name: string, cluster: Cluster) => Promise<void>,
): Promise<void> {
  const name = `unfit-${randomBytes(4).toString('hex')}`;
  const cluster = await Cluster.start({ ...FIT, name, ...options });
  try {
    await run(name, cluster);
    expect(cluster.status().clients.connected).toBe(0);
  } finally {
    await cluster.close();
  }
}

function serviceThat(body: string): URL {
  const path = join(folder, `${randomBytes(4).toString('hex')}.mjs`);
  writeFileSync(path, `export function deliver() { ${body} }\n`);
  return pathToFileURL(path);
}

const attach = (name: string): Promise<Store> => Store.start({ port: 0, attach: name });

test('a cluster that has just what is needed will do, for one gateway', async () => {
  await withCluster({}, async (name, cluster) => {
    const store = await attach(name);
    await expect(attach(name)).rejects.toMatchObject({
      name: 'StoreError',
      message: `the cluster ${name} has 0 of 2 places for clients left, and a gateway needs 2`,
      hint: expect.stringContaining('clients'),
    });
    expect(cluster.status().clients.connected).toBe(2);
    await store.close();
  });
});

test.each([
  [{ order: 'multicast' }, 'order is multicast, not strict'],
  [{ payloadBytesMax: 65_535 }, 'payloadBytesMax is 65535, and has to be at least 65536'],
  [{ replyBytesMax: 16_383 }, 'replyBytesMax is 16383, and has to be at least 16384'],
  [{ callsMax: 16 }, 'callsMax is 16, and has to be at least 17'],
  [{ clients: 1 }, 'clients is 1, and has to be at least 2'],
  [
    { order: 'multicast', callsMax: 1 } as const,
    'order is multicast, not strict, callsMax is 1, and has to be at least 17',
  ],
] as const)('a cluster with other options is refused: %j', async (options, message) => {
  await withCluster(options, async (name) => {
    await expect(attach(name)).rejects.toMatchObject({
      name: 'StoreError',
      message: `the cluster ${name} does not fit: ${message}`,
      hint: expect.stringContaining('start it again'),
    });
  });
});

test.each([
  ['echoes', 'return new Uint8Array(0)'],
  ['replies something', 'return Buffer.from("hello, I am a bank")'],
  ['throws', 'throw new Error("no such account")'],
])('a service that %s is not that of a store', async (_what, body) => {
  await withCluster({ service: serviceThat(body) }, async (name) => {
    await expect(attach(name)).rejects.toMatchObject({
      name: 'StoreError',
      message: `the service of the cluster ${name} is not that of tram-store`,
      hint: expect.stringContaining('dist/service.js'),
    });
  });
});

test('the service of another version is refused', async () => {
  const service = serviceThat('return Buffer.from("\\0tram-store 9.9.9")');
  await withCluster({ service }, async (name) => {
    await expect(attach(name)).rejects.toMatchObject({
      name: 'StoreError',
      message: expect.stringMatching(/ runs tram-store 9\.9\.9, and this is tram-store \d+\.\d+/),
      hint: expect.stringContaining('on its hosts'),
    });
  });
});
