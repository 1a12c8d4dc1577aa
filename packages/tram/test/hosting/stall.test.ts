/** What a caller learns while a group that its message needs has no leader. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ReplyError } from '../../src/errors.js';
import { type Client, Cluster, encode } from '../built.js';

/** Group 0 refuses messages that begin with "!". */
const SERVICE = `data:text/javascript,${encodeURIComponent(`
  export function deliver({ payload }, { group }) {
    if (group === 0 && payload[0] === 33) throw new Error('refused');
  }
`)}`;

let cluster: Cluster;
let client: Client;
const told: unknown[] = [];
const tell = (message: unknown): void => void told.push(message);

/** g0 is above g1 and g2. Each group has three hosts for itself: g1 has hosts 3 to 5. */
beforeEach(async () => {
  told.length = 0;
  subscribe('tram:stalled', tell);
  const options = { groups: 3, hosts: 9, tree: [-1, 0, 0], clients: 2, service: SERVICE };
  cluster = await Cluster.start(options);
  client = await cluster.connect();
});

afterEach(async () => {
  unsubscribe('tram:stalled', tell);
  client.destroy();
  await cluster.close();
});

async function errorOf(call: Promise<unknown>): Promise<ReplyError> {
  return call.then(
    () => expect.unreachable('the call must fail'),
    (error) => error as ReplyError,
  );
}

test('a destination without a leader is named, with the replies that are there', async () => {
  for (const host of [3, 4, 5]) await cluster.crash(host);
  // Longer than a second: until then, nothing is told.
  const error = await errorOf(client.multicast([0, 1], encode('x'), { timeoutMs: 3000 }));
  expect(error).toMatchObject({ code: 'TRAM_OUTCOME_UNKNOWN', missingGroups: [1] });
  expect([...error.replies.keys()]).toEqual([0]);
  expect(error.message).toMatch(
    /No reply from g1\. g1 has no leader: g1\/0, g1\/1, g1\/2 are down$/,
  );
  expect(error.hint).toContain('majority');
  expect(told[0]).toEqual({
    client: client.name,
    destinations: [0, 1],
    missingGroups: [1],
    stalledGroups: [1],
    reason: 'g1 has no leader: g1/0, g1/1, g1/2 are down',
  });
});

test('so is the group at which the message enters, also if it is no destination', async () => {
  for (const host of [0, 1, 2]) await cluster.crash(host);
  const error = await errorOf(client.multicast([1, 2], encode('x'), { timeoutMs: 200 }));
  expect(error).toMatchObject({ missingGroups: [1, 2], replies: new Map() });
  expect(error.message).toMatch(/No reply from g1, g2\. g0 has no leader: /);
  // A message to g1 alone does not pass g0.
  expect((await client.multicast([1], encode('y'))).size).toBe(1);
});

test('a group that has failed is named as well', async () => {
  for (const host of [3, 4, 5]) await cluster.crash(host);
  const controller = new AbortController();
  const call = errorOf(client.multicast([0, 1], encode('!'), { signal: controller.signal }));
  await expect.poll(() => told.at(-1), { timeout: 20_000 }).toMatchObject({ missingGroups: [1] });
  controller.abort();
  expect(await call).toMatchObject({
    code: 'TRAM_OUTCOME_UNKNOWN',
    replies: new Map(),
    failedGroups: new Map([[0, 'refused']]),
    missingGroups: [1],
  });
});

test('a message that waits for room learns what it waits for', async () => {
  for (const host of [3, 4, 5]) await cluster.crash(host);
  const options = { timeoutMs: 500 };
  const calls = Array.from({ length: 70 }, () =>
    errorOf(client.multicast([1], encode('x'), options)),
  );
  const errors = await Promise.all(calls);
  const waiting = errors.filter(({ missingGroups }) => missingGroups === undefined);
  expect(waiting.length).toBeGreaterThan(0);
  for (const { code, message } of waiting) {
    expect(code).toBe('TRAM_TIMEOUT');
    expect(message).toMatch(/nothing was sent\. g1 has no leader: /);
  }
});
