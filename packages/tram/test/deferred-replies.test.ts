/** Replies that a service defers, on threads and on processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type Client,
  Cluster,
  decode,
  encode,
  errorOf,
  keeping,
  type StartOptions,
  until,
} from './built.js';

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const OPTIONS = {
  groups: 3,
  hosts: 3,
  leaders: 'together',
  service: file('./mailbox.mjs'),
  payloadBytesMax: 64,
  replyBytesMax: 4000,
  callsMax: 2,
} as const;
const HOSTS = [0, 1, 2];
const PATIENT = { timeoutMs: Number.POSITIVE_INFINITY };

let cluster: Cluster;
let client: Client;
let other: Client;
let child: ChildProcess | undefined;

async function start(options: Partial<StartOptions> = {}): Promise<void> {
  cluster = await Cluster.start({ ...OPTIONS, ...options });
  client = await cluster.connect();
  other = await cluster.connect();
}

afterEach(async () => {
  child?.kill('SIGKILL');
  child = undefined;
  await cluster.destroy();
});

async function ask(text: string, group = 1): Promise<string> {
  const replies = await other.multicast([group], encode(text), PATIENT);
  return decode(replies.get(group))!;
}

/** Asks until the answer is as it should be; a test that waits in vain runs into its time limit. */
async function untilAnswer(text: string, isSo: (answer: string) => boolean): Promise<string> {
  for (;;) {
    const answer = await ask(text);
    if (isSo(answer)) return answer;
  }
}

interface Taking {
  /** The letters, one for each group. */
  readonly letters: Promise<(string | undefined)[]>;
  readonly id: string;
}

/** Sends `take BOX`, and waits until the service has deferred the reply. */
async function take(box: string, groups = [1], options = {}): Promise<Taking> {
  const before = (await ask('waiting')).split(',');
  const letters = client
    .multicast(groups, encode(`take ${box}`), { ...PATIENT, ...options })
    .then((replies) => [...replies.values()].map((reply) => decode(reply)));
  // A test may look at the failure later.
  letters.catch(() => undefined);
  const isNew = (id: string): boolean => id !== '' && !before.includes(id);
  const after = await untilAnswer('waiting', (answer) => answer.split(',').some(isNew));
  return { letters, id: after.split(',').find(isNew)! };
}

describe.each(['multicast', 'strict'] as const)('with order %s', (order) => {
  test('a call waits for its reply, and the client goes on meanwhile', async () => {
    await start({ order });
    const first = await take('a');
    for (let i = 0; i < 30; i++) await client.multicast([1, 2], encode('waiting'));
    const second = await take('b');
    expect(client.outstanding).toBe(2);
    // Not in the order in which they were sent.
    expect(await ask('put b two')).toBe('given');
    expect(await second.letters).toEqual(['two']);
    expect(await ask('put a one')).toBe('given');
    expect(await first.letters).toEqual(['one']);
    expect(await ask('put a three')).toBe('nobody');
    expect(client.outstanding).toBe(0);
  });
});

test('calls that wait leave no room for others, and the error says so', async () => {
  await start({ callsMax: 1 });
  const { letters } = await take('a');
  const call = client.multicast([1], encode('waiting'), { timeoutMs: 300 });
  expect(await errorOf(call)).toMatchObject({
    code: 'TRAM_TIMEOUT',
    message: expect.stringContaining(
      '1 of 1 places are held by messages whose replies are deferred',
    ),
  });
  expect(await ask('put a one')).toBe('given');
  expect(await letters).toEqual(['one']);
});

test('each group of a message defers its reply, or does not', async () => {
  await start();
  const { letters } = await take('a', [0, 1]);
  expect(await ask('put a zero', 0)).toBe('given');
  expect(client.outstanding).toBe(1);
  expect(await ask('put a one', 1)).toBe('given');
  expect(await letters).toEqual(['zero', 'one']);
});

test('a call waits through changes of leaders, crashes and restarts', async () => {
  await start({ logBytes: 4096 });
  const { letters } = await take('a');
  for (const member of [1, 2, 0]) {
    cluster.lead(1, member);
    await until(() => cluster.status().groups[1].leader === member);
  }
  // The log drops the message, so restarted replicas get it with a snapshot.
  for (let i = 0; i < 200; i++) await ask('waiting');
  for (const host of HOSTS) {
    await cluster.crash(host);
    await cluster.restart(host, { fresh: host === 1 });
  }
  const replies = ask('put a late');
  cluster.lead(1, 2);
  expect(await replies).toBe('given');
  expect(await letters).toEqual(['late']);
  expect(await ask('gone')).toBe('');
});

test('a call waits while all hosts are stopped and started again', async () => {
  await start({ logBytes: 4096, memory: 'processes' });
  const { letters } = await take('a');
  for (let i = 0; i < 200; i++) await ask('waiting');
  for (const host of HOSTS) await cluster.stop(host);
  for (const host of HOSTS) await cluster.restart(host);
  expect(await ask('put a late')).toBe('given');
  expect(await letters).toEqual(['late']);
});

describe('a call that is given up while it waits', () => {
  test('by its time limit leaves its place when the service has abandoned it', async () => {
    await start({ callsMax: 1 });
    const call = client.multicast([1], encode('take a'), { timeoutMs: 300 });
    expect(await errorOf(call)).toMatchObject({
      code: 'TRAM_OUTCOME_UNKNOWN',
      missingGroups: [1],
    });
    // There is one place: the next call waits for it.
    await client.multicast([1], encode('waiting'), PATIENT);
    expect(await ask('waiting')).toBe('');
    expect((await ask('gone')).split(',')).toHaveLength(1);
    expect(await ask('put a late')).toBe('nobody');
  });

  test('by its signal is abandoned by all its groups', async () => {
    await start();
    const controller = new AbortController();
    const { letters, id } = await take('a', [0, 1], { signal: controller.signal });
    expect(await ask('put a zero', 0)).toBe('given');
    controller.abort();
    expect(await errorOf(letters)).toMatchObject({ code: 'TRAM_OUTCOME_UNKNOWN' });
    await until(() => client.outstanding === 0);
    expect(await ask('gone', 1)).toBe(id);
    // This group had replied already.
    expect(await ask('gone', 0)).toBe('');
  });

  test('by close() does not keep the client from closing', async () => {
    await start();
    const { letters, id } = await take('a');
    await client.close();
    expect(await errorOf(letters)).toMatchObject({
      code: 'TRAM_OUTCOME_UNKNOWN',
      message: expect.stringContaining('the client was closed'),
    });
    expect(await ask('gone')).toBe(id);
  });

  test('is abandoned, even if the service fails', async () => {
    const { logger, errors } = keeping();
    await start({ logger });
    const controller = new AbortController();
    const { letters, id } = await take('cursed', [1], { signal: controller.signal });
    controller.abort();
    await errorOf(letters);
    await until(() => client.outstanding === 0);
    expect(await ask('gone')).toBe(id);
    await until(() => errors.some((text) => text.includes('the box is cursed')));
  });
});

describe('a client that ends while its call waits', () => {
  test('by destroy() leaves nothing behind', async () => {
    await start();
    const { id } = await take('a');
    client.destroy();
    expect(await untilAnswer('gone', (answer) => answer !== '')).toBe(id);
    expect(await ask('put a late')).toBe('nobody');
  });

  test('because its process is killed leaves nothing behind', async () => {
    await start({ memory: 'processes', name: `deferred-${process.pid}` });
    child = fork(file('./other-process.mjs'), [cluster.address as string]);
    await once(child, 'message');
    child.send({ groups: [1], text: 'take a' });
    const id = await untilAnswer('waiting', (answer) => answer !== '');
    expect(await ask('gone')).toBe('');
    child.kill('SIGKILL');
    expect(await untilAnswer('gone', (answer) => answer !== '')).toBe(id);
    expect(await ask('waiting')).toBe('');
  });
});

describe('a service', () => {
  test('may defer a reply that turns out too large', async () => {
    await start();
    const { letters } = await take('a');
    expect(await ask('large a')).toBe('true');
    expect(await errorOf(letters)).toMatchObject({ code: 'TRAM_REPLY_TOO_LARGE' });
  });

  test('fails if it replies to the message that it delivers, or with a text', async () => {
    await start();
    const { letters } = await take('a');
    expect(await errorOf(ask('early'))).toMatchObject({
      code: 'TRAM_SERVICE_FAILED',
      message: expect.stringContaining('not for the message that is being delivered'),
    });
    expect(await errorOf(ask('wrong a text'))).toMatchObject({
      code: 'TRAM_SERVICE_FAILED',
      message: expect.stringContaining('takes a Uint8Array or nothing, and it got a string'),
    });
    // The one that waits is not affected.
    expect(await ask('put a one')).toBe('given');
    expect(await letters).toEqual(['one']);
  });
});
