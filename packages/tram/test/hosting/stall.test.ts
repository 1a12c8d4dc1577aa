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

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

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

test('a group that is not on the way is named if a reply may be held because of it', async () => {
  const strict = await Cluster.start({ groups: 3, hosts: 9, tree: [-1, 0, 0], order: 'strict' });
  try {
    for (const host of [3, 4, 5]) await strict.crash(host);
    const [writer, reader] = [await strict.connect(), await strict.connect()];
    const deliveries = strict.deliveries({ group: 2 });
    const delivered = deliveries.next();
    const written = errorOf(writer.multicast([1, 2], encode('x')));
    await delivered;
    const error = await errorOf(reader.multicast([2], encode('y'), { timeoutMs: 200 }));
    expect(error).toMatchObject({ code: 'TRAM_OUTCOME_UNKNOWN', missingGroups: [2] });
    expect(error.message).toMatch(
      /No reply from g2\. g2 may wait for another group: g1 has no leader: g1\/0, /,
    );
    expect(error.hint).toContain('majority');
    writer.destroy();
    await written;
  } finally {
    await strict.destroy();
  }
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
    expect(message).toMatch(
      /nothing was sent\. \d+ of 64 places are held by messages to g1\. g1 has no/,
    );
  }
  // The calls have failed, but their messages keep their places.
  const other = await errorOf(client.multicast([0], encode('x'), options));
  expect(other).toMatchObject({ code: 'TRAM_TIMEOUT', retry: 'safe' });
  expect(other.message).toContain('64 of 64 places are held by messages to g1. g1 has no leader');
  expect(other.hint).toContain('connect a new one');
});

test('calls that wait for different groups are told of one by one; those that have failed are not', async () => {
  for (const host of [3, 4, 5, 6, 7, 8]) await cluster.crash(host);
  await errorOf(client.multicast([0, 1], encode('x'), { timeoutMs: 100 }));
  const calls = [[1], [1], [2]].map((groups) => errorOf(client.multicast(groups, encode('x'))));
  await until(() => told.length >= 2);
  client.destroy();
  await Promise.all(calls);
  expect(told.slice(0, 2)).toMatchObject([
    { destinations: [1], stalledGroups: [1] },
    { destinations: [2], stalledGroups: [2] },
  ]);
});

test('the logger of the cluster is told of calls that wait', async () => {
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const logger = { info: () => undefined, warn, error: () => undefined };
  const logged = await Cluster.start({ groups: 1, hosts: 3, clients: 1, logger });
  try {
    for (const host of [0, 1, 2]) await logged.crash(host);
    warnings.length = 0;
    const waiting = await logged.connect();
    const call = errorOf(waiting.multicast([0], encode('x')));
    await until(() => warnings.length > 0);
    expect(warnings[0]).toBe(
      `client ${waiting.name} waits for g0 for more than a second: g0 has no leader: g0/0, g0/1, g0/2 are down`,
    );
    waiting.destroy();
    await call;
  } finally {
    await logged.destroy();
  }
});

test('a call to a group that has lost its state fails, however long it may take', async () => {
  // More than a log holds.
  const text = encode('x'.repeat(1000));
  for (let sent = 0; sent < 300; sent++) await client.multicast([1], text);
  for (const host of [3, 4, 5]) await cluster.crash(host);
  const options = { timeoutMs: Number.POSITIVE_INFINITY };
  const calls = Array.from({ length: 70 }, () => errorOf(client.multicast([0, 1], text, options)));
  const other = errorOf(client.multicast([0], text, options));
  await Promise.allSettled([3, 4, 5].map((host) => cluster.restart(host)));
  for (const error of await Promise.all(calls)) {
    expect(error).toMatchObject({ code: 'TRAM_STATE_LOST' });
    expect(error.message).toContain('the state of g1 is lost');
  }
  // There will never be room for it.
  expect(await other).toMatchObject({
    code: 'TRAM_STATE_LOST',
    message: expect.stringContaining('places are held by messages to g1. g1 has lost its state'),
  });
});

test('hosts that hang are named', async ({ skip }) => {
  skip(process.platform !== 'linux', 'for Linux only');
  const hung = await Cluster.start({ groups: 1, memory: 'processes', clients: 1 });
  const pids = hung.status().hosts.map(({ pid }) => pid);
  try {
    const waiting = await hung.connect();
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const call = errorOf(waiting.multicast([0], encode('x'), { timeoutMs: 6000 }));
    const { message, hint } = await call;
    expect(message).toMatch(/no heartbeat from hosts 0, 1, 2 for \d+ s$/);
    expect(hint).toContain('SIGSTOP');
    waiting.destroy();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    await hung.destroy();
  }
});
