/** Subscribers whose messages may be lost have to learn it: they are disconnected. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { PlainClient, type Started, startGateway } from './started.js';

let started: Started;
let publisher: PlainClient;

beforeEach(async () => {
  started = await startGateway();
  publisher = await PlainClient.connect(started.port);
});

afterEach(() => started.close());

async function subscriber(request: string): Promise<PlainClient> {
  const client = await PlainClient.connect(started.port);
  await client.ask(request);
  return client;
}

/** Two channels of different shards. */
function channels(): [string, string] {
  const { router } = started.gateway;
  const other = Array.from({ length: 100 }, (_, i) => `other${i}`).find(
    (name) => router.shardOf(name) !== router.shardOf('news'),
  );
  return ['news', other!];
}

it('if the gateway has left too much mail at the shard of the channel', async () => {
  const [news, other] = channels();
  const losing = await subscriber(`subscribe ${news}`);
  const matching = await subscriber('psubscribe n*');
  const untouched = await subscriber(`subscribe ${other}`);
  started.backend.wire.leaveMail();
  const megabyte = 'x'.repeat(1024 * 1024);
  for (let i = 0; i < 33; i++) await publisher.ask(`publish ${news} ${megabyte}`);
  await expect.poll(() => publisher.ask(`publish ${news} x`)).toBe(0);
  started.backend.wire.fetchMail();
  const got = await losing.readAll();
  expect(got.length).toBeLessThan(3 * megabyte.length);
  await matching.readAll();
  expect(started.gateway.stats.forgotten).toBe(1);

  expect(await publisher.ask(`publish ${other} hello`)).toBe(1);
  expect(await untouched.read()).toEqual(['message', other, 'hello']);
  const again = await subscriber(`subscribe ${news}`);
  expect(await publisher.ask(`publish ${news} hello`)).toBe(1);
  expect(await again.read()).toEqual(['message', news, 'hello']);
});

it('if shards have taken the gateway for dead', async () => {
  const [news, other] = channels();
  const subscribers = [
    await subscriber(`subscribe ${news}`),
    await subscriber(`ssubscribe ${other}`),
    await subscriber('psubscribe n*'),
  ];
  started.backend.wire.loseMail();
  for (const client of subscribers) await client.readAll();
  await expect.poll(() => started.gateway.stats.forgotten).toBe(4);
  await expect.poll(() => publisher.ask('pubsub numpat')).toBe(0);
  const again = await subscriber(`subscribe ${news}`);
  expect(await publisher.ask(`publish ${news} hello`)).toBe(1);
  expect(await again.read()).toEqual(['message', news, 'hello']);
});
