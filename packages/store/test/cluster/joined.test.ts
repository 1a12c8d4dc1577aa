/** Stores in front of a cluster that somebody else runs, and what a store shows of its own. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { Cluster } from 'tram-multicast';
import { expect, test } from 'vitest';
import { Store } from '../../src/index.js';

const SERVICE = fileURLToPath(new URL('../../dist/service.js', import.meta.url));

test('several gateways join a cluster that a file describes, and leave it running', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tram-store-'));
  const name = `store-${randomBytes(4).toString('hex')}`;
  const config = join(directory, 'cluster.yaml');
  // On processes, the name selects the cluster.
  writeFileSync(config, `memory: processes\nname: ${name}\ngroups: 2\n`);
  const cluster = await Cluster.start({
    memory: 'processes',
    name,
    groups: 2,
    tree: 'breadth',
    order: 'strict',
    service: SERVICE,
    payloadBytesMax: 65_536,
    replyBytesMax: 16_384,
    callsMax: 32,
  });
  try {
    const stores = await Promise.all([1, 2].map(() => Store.start({ port: 0, config })));
    const clients = stores.map(({ port }) => new Redis(port!));
    await clients[0].mset('a', '1', 'b', '2', 'c', '3');
    await clients[1].rename('a', 'd');
    expect(await clients[0].mget('a', 'b', 'c', 'd')).toEqual([null, '2', '3', '1']);
    expect(stores[0].cluster).toBeUndefined();

    // What one of them has set, all show; and one that comes later, unless it is started with an option.
    await clients[0].config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    stores.push(await Store.start({ port: 0, config }));
    stores.push(await Store.start({ port: 0, config, maxmemoryPolicy: 'volatile-ttl' }));
    clients.push(...stores.slice(2).map(({ port }) => new Redis(port!)));
    for (const client of clients) {
      expect(await client.config('GET', 'maxmemory-p*')).toEqual([
        'maxmemory-policy',
        'volatile-ttl',
      ]);
      expect(await client.info('memory')).toContain(`\nmaxmemory:${100 * 2 ** 20}\r`);
    }
    for (const client of clients) client.disconnect();
    await Promise.all(stores.map((store) => store.close()));
    expect(cluster.status().state).toBe('running');
  } finally {
    await cluster.close();
    rmSync(directory, { recursive: true });
  }
});

test('a store shows the cluster that it has started, and others find it by its name', async () => {
  const name = `store-${randomBytes(4).toString('hex')}`;
  const store = await Store.start({ port: 0, shards: 2, memory: 'processes', name });
  try {
    expect(store.cluster!.status().groups).toHaveLength(2);
    const attached = await Cluster.attach(name);
    expect(attached.status().clients.connected).toBe(2);
    await attached.close();
    const redis = new Redis(store.port!);
    const shards = await redis.info('shards');
    redis.disconnect();
    expect(shards.match(/^shard\d:answers=yes,leader=\d,replicas_up=3,replicas=3,/gm)).toHaveLength(
      2,
    );
  } finally {
    await store.close();
  }
});
