/** The API as applications use it, on threads and on processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  Client,
  Cluster,
  decode,
  encode,
  errorOf,
  keeping,
  pause,
  type StartOptions,
  TramError,
  until,
} from './built.js';

const RECORDER = new URL('./recorder.mjs', import.meta.url);
const SIZES = {
  hosts: 3,
  leaders: 'together',
  payloadBytesMax: 64,
  replyBytesMax: 4000,
  callsMax: 4,
} as const;

/** Whatever a test leaves open. */
const leftOver: { destroy(): unknown }[] = [];

afterEach(async () => {
  for (const thing of leftOver.splice(0).reverse()) await thing.destroy();
});

function service(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const { code, retry } = await errorOf(promise);
  return `${code} ${retry}`;
}

/** What is published on a channel until the test ends. */
function listenTo(name: string): unknown[] {
  const messages: unknown[] = [];
  const listener = (message: unknown): void => void messages.push(message);
  subscribe(name, listener);
  leftOver.push({ destroy: () => unsubscribe(name, listener) });
  return messages;
}

test('a logger that lacks a method is refused before anything starts', async () => {
  const options = { groups: 1, logger: { info: () => undefined } } as unknown as StartOptions;
  await expect(Cluster.start(options)).rejects.toMatchObject({
    code: 'TRAM_INVALID_ARGUMENT',
    message: 'the logger has no method "warn"',
  });
});

test('the directory of the logs is created, or named if it can not be', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'tram-logs-'));
  const logDirectory = join(parent, 'new', 'logs');
  const options = { memory: 'processes', groups: 1, hosts: 3 } as const;
  const cluster = await Cluster.start({ ...options, logDirectory });
  await expect(cluster.restart(0, { frsh: true } as object)).rejects.toMatchObject({
    message: 'unknown option "frsh": did you mean fresh?',
  });
  await cluster.close();
  expect(readdirSync(logDirectory).sort()).toEqual(['host-0.log', 'host-1.log', 'host-2.log']);
  const file = join(logDirectory, 'host-0.log');
  await expect(Cluster.start({ ...options, logDirectory: file })).rejects.toMatchObject({
    code: 'TRAM_SYSTEM',
    message: expect.stringContaining("can't use logDirectory"),
  });
  rmSync(parent, { recursive: true });
});

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  async function start(options: Partial<StartOptions> = {}): Promise<Cluster> {
    const cluster = await Cluster.start({
      groups: 3,
      memory,
      service: RECORDER,
      ...SIZES,
      ...options,
    });
    leftOver.push(cluster);
    return cluster;
  }

  describe('one cluster', () => {
    const { logger, errors } = keeping();
    let cluster: Cluster;
    let client: Client;

    beforeAll(async () => {
      cluster = await Cluster.start({
        groups: 3,
        memory,
        service: RECORDER,
        ...SIZES,
        clients: 4,
        logger,
      });
      client = await cluster.connect();
    });

    afterAll(() => cluster.close());

    async function connect(...options: Parameters<Cluster['connect']>): Promise<Client> {
      const another = await cluster.connect(...options);
      leftOver.push(another);
      return another;
    }

    async function send(text: string, groups = [0]): Promise<string | undefined> {
      return decode((await client.multicast(groups, encode(text))).get(groups[0]));
    }

    test('every destination replies, and nobody else', async () => {
      const replies = await client.multicast([2, 0], encode('hello'));
      expect([...replies.keys()].sort()).toEqual([0, 2]);
      expect(decode(replies.get(0))).toMatch(/^\d+:hello$/);
      expect(await send('read', [1])).not.toContain('hello');
    });

    test('a destination that is named twice is one', async () => {
      expect((await client.multicast(new Set([1]), encode('twice'))).size).toBe(1);
      await client.multicast([1, 1], encode('again'));
      expect((await send('read', [1]))?.split(',').filter((text) => text === 'again')).toEqual([
        'again',
      ]);
    });

    test('the payload may be changed once the call has returned', async () => {
      const payload = encode('first');
      const first = client.multicast([0], payload);
      payload.set(encode('spoil'));
      expect(decode((await first).get(0))).toMatch(/:first$/);
    });

    test('a service that returns nothing replies nothing', async () => {
      expect(await send('nothing')).toBe('');
    });

    test('an empty payload is a message', async () => {
      expect(await send('')).toMatch(/^\d+:$/);
    });

    test.each<[string, unknown, unknown, unknown, string]>([
      ['a payload too large', [0], new Uint8Array(65), {}, 'TRAM_PAYLOAD_TOO_LARGE'],
      ['a payload that is text', [0], 'text', {}, 'TRAM_INVALID_ARGUMENT'],
      ['no destination', [], new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['an unknown destination', [0, 3], new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['a negative destination', [-1], new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['half a destination', [0.5], new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['a number as destinations', 1, new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['nothing as destinations', undefined, new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['a forged set', { low: 8, high: 0 }, new Uint8Array(1), {}, 'TRAM_INVALID_DESTINATIONS'],
      ['no time at all', [0], new Uint8Array(1), { timeoutMs: 0 }, 'TRAM_INVALID_ARGUMENT'],
      ['a time in words', [0], new Uint8Array(1), { timeoutMs: '1' }, 'TRAM_INVALID_ARGUMENT'],
      ['options that are none', [0], new Uint8Array(1), 100, 'TRAM_INVALID_ARGUMENT'],
    ])('%s is refused', async (_, destinations, payload, options, code) => {
      const call = client.multicast(destinations as [], payload as Uint8Array, options as object);
      expect(await codeOf(call)).toBe(`${code} useless`);
      expect(client.outstanding).toBe(0);
    });

    test('a service that throws with every message does not fill the log', async () => {
      const before = errors.length;
      const messages = 100;
      for (let sent = 0; sent < messages; sent++) {
        await codeOf(client.multicast([0, 1], encode('throw')));
      }
      expect(errors.length - before).toBeLessThan(messages);
    });

    test.each<[unknown, object, string]>([
      ['0', {}, 'a group must be a number, not the string "0"'],
      [0, { timeout: 100 }, 'unknown option "timeout": did you mean timeoutMs?'],
      [0, { retries: 3 }, 'unknown option "retries": known: signal, timeoutMs'],
    ])('a mistake is named: group %j, options %j', async (group, options, message) => {
      const call = client.multicast([group as number], new Uint8Array(1), options);
      await expect(call).rejects.toThrow(message);
    });

    test('an unknown option of connect is refused', async () => {
      await expect(cluster.connect({ listeners: {} } as object)).rejects.toMatchObject({
        code: 'TRAM_INVALID_ARGUMENT',
        message: 'unknown option "listeners": did you mean listener?',
      });
    });

    test('a service that throws fails that message alone', async () => {
      const before = errors.length;
      // Reports are rate-limited, so the first ones may be suppressed.
      while (errors.length === before) {
        expect(await codeOf(client.multicast([0, 1], encode('throw')))).toBe(
          'TRAM_SERVICE_FAILED unsafe',
        );
      }
      expect(await send('after the error', [0, 1])).toMatch(/:after the error$/);
      expect(errors.at(-1)).toMatch(/^the service threw at g[01]\/\d: Error: as it was told/);
      expect(cluster.status().hosts.every(({ state }) => state === 'up')).toBe(true);
    });

    test('a reply that is too large fails that message alone', async () => {
      const error = await errorOf(client.multicast([2], encode('long')));
      expect(error.code).toBe('TRAM_REPLY_TOO_LARGE');
      expect(error.message).toContain('replyBytesMax (4000)');
      expect(await send('after the long reply', [2])).toMatch(/:after the long reply$/);
    });

    test('aborted before it is sent, a message is not delivered', async () => {
      const reason = new Error('changed my mind');
      const call = client.multicast([0], encode('aborted'), { signal: AbortSignal.abort(reason) });
      const error = await errorOf(call);
      expect([error.code, error.retry, error.cause]).toEqual(['TRAM_ABORTED', 'safe', reason]);
      expect(await send('read')).not.toContain('aborted');
    });

    test('given up after it was sent, a message may still be delivered', async () => {
      const busy = client.multicast([0], encode('sleep 300'));
      const late = client.multicast([0], encode('late'), { timeoutMs: 30 });
      const controller = new AbortController();
      const dropped = client.multicast([0], encode('dropped'), { signal: controller.signal });
      setTimeout(() => controller.abort('enough'), 30);
      expect(await codeOf(late)).toBe('TRAM_OUTCOME_UNKNOWN unsafe');
      const error = await errorOf(dropped);
      expect([error.code, error.cause]).toEqual(['TRAM_OUTCOME_UNKNOWN', 'enough']);
      await busy;
      const texts = (await send('read'))?.split(',');
      expect(texts?.filter((text) => text === 'late')).toHaveLength(1);
      expect(texts?.filter((text) => text === 'dropped')).toHaveLength(1);
    });

    test('given up while it waits for room, a message is not delivered', async () => {
      const busy = ['sleep 400', 'b', 'c', 'd'].map((text) => client.multicast([1], encode(text)));
      const waits = client.multicast([1], encode('waits'));
      const late = client.multicast([1], encode('too late'), { timeoutMs: 30 });
      const signal = AbortSignal.timeout(30);
      const aborted = client.multicast([1], encode('given up'), { signal });
      expect(client.outstanding).toBe(7);
      expect(await codeOf(late)).toBe('TRAM_TIMEOUT safe');
      expect(await codeOf(aborted)).toBe('TRAM_ABORTED safe');
      await Promise.all([...busy, waits]);
      const texts = await send('read', [1]);
      expect(texts).toMatch(/b,c,d,waits$/);
      expect(client.outstanding).toBe(0);
    });

    test('messages are taken in the order of the calls, and all replies find their call', async () => {
      const texts = Array.from({ length: 200 }, (_, i) => `call ${i}`);
      const replies = await Promise.all(texts.map((text) => send(text, [i(text) % 3])));
      expect(replies.map((reply) => reply?.replace(/^\d+:/, ''))).toEqual(texts);
      const delivered = (await Promise.all([0, 1, 2].map((group) => deliveredAt(group)))).flat();
      expect(delivered.sort((a, b) => i(a) - i(b))).toEqual(texts);
    });

    function i(text: string): number {
      return Number(text.slice(5));
    }

    /** Too much to read in one reply: the numbers stand in their order. */
    async function deliveredAt(group: number): Promise<string[]> {
      const texts = (await readAll(group)).filter((text) => text.startsWith('call '));
      expect(texts).toEqual([...texts].sort((a, b) => i(a) - i(b)));
      return texts;
    }

    async function readAll(group: number): Promise<string[]> {
      return ((await send('read', [group])) ?? '').split(',');
    }

    test('two groups deliver what is for both in one order', async () => {
      const [here, there] = [0, 2].map((group) => cluster.deliveries({ group }));
      const other = await connect();
      const both = [client, other].flatMap((sender, who) =>
        Array.from({ length: 100 }, (_, n) => sender.multicast([0, 2], encode(`both ${who}.${n}`))),
      );
      const alone = Array.from({ length: 20 }, (_, n) =>
        other.multicast([2], encode(`alone ${n}`)),
      );
      await Promise.all([...both, ...alone]);
      const [first, second] = await Promise.all([take(here!, 200), take(there!, 200)]);
      expect(first).toHaveLength(200);
      expect(second).toEqual(first);
    });

    /** The first so many messages that are for both groups. */
    async function take(deliveries: ReturnType<Cluster['deliveries']>, count: number) {
      const texts: string[] = [];
      let index = -1;
      for await (const message of deliveries) {
        expect(message.index).toBeGreaterThan(index);
        index = message.index;
        if (message.destinations.length === 2) texts.push(decode(message.payload)!);
        if (texts.length === count) break;
      }
      return texts;
    }

    test('deliveries begin with the call and end with the signal', async () => {
      const controller = new AbortController();
      const deliveries = cluster.deliveries({ group: 1, signal: controller.signal });
      await send('seen', [1]);
      const { value } = await deliveries.next();
      expect(value).toMatchObject({ group: 1, destinations: [1], payload: encode('seen') });
      expect(value!.id).toMatch(/^c\d+:1\.\d+$/);
      const next = deliveries.next();
      controller.abort();
      expect(await next).toEqual({ value: undefined, done: true });
      expect(() => cluster.deliveries({ group: 3 })).toThrow(/no group 3/);
    });

    test('offer: replies go to the listener, and a full ring is a result', async () => {
      const told: string[] = [];
      const offering = await connect({
        listener: {
          replied: (ticket, group, reply, outcome) =>
            told.push(`${ticket} g${group} ${outcome} ${decode(reply)?.replace(/^\d+:/, '')}`),
          answered: (ticket) => told.push(`${ticket} answered`),
          closed: () => told.push('closed'),
        },
      });
      const both = offering.destinations([0, 1]);
      const one = offering.destinations([0]);
      const offers = [
        offering.offer(one, encode('sleep 50')),
        offering.offer(both, encode('offered')),
        offering.offer(one, encode('throw')),
        offering.offer(one, encode('long')),
      ];
      expect(offers).toEqual(['accepted', 'accepted', 'accepted', 'accepted']);
      expect(offering.ticket).toBe(4);
      expect(offering.offer(one, encode('refused'))).toBe('backPressured');
      expect(offering.ticket).toBe(4);
      await until(() => offering.outstanding === 0);
      expect([...told].sort()).toEqual([
        '1 answered',
        '1 g0 ok sleep 50',
        '2 answered',
        '2 g0 ok offered',
        '2 g1 ok offered',
        '3 answered',
        '3 g0 failed as it was told',
        '4 answered',
        '4 g0 tooLarge ',
      ]);
      expect(() => offering.offer(one, new Uint8Array(65))).toThrow(/payloadBytesMax/);
      await offering.close();
      expect(told.at(-1)).toBe('closed');
      expect(offering.offer(one, encode('late'))).toBe('closed');
      expect(await send('read')).not.toContain('refused');
    });

    test.each<[string, unknown, unknown, string]>([
      ['an empty set', { low: 0, high: 0 }, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['an unknown group', { low: 8, high: 0 }, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      [
        'one beside known ones',
        { low: 9, high: 0 },
        new Uint8Array(1),
        'TRAM_INVALID_DESTINATIONS',
      ],
      ['one above 31', { low: 1, high: 1 }, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      [
        'bits beyond its words',
        { low: 2 ** 32, high: 0 },
        new Uint8Array(1),
        'TRAM_INVALID_DESTINATIONS',
      ],
      ['a set of words', { low: 'a', high: 'b' }, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['a set of bigints', { low: 1n, high: 0n }, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['no set', {}, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['a number', 1, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['nothing', undefined, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['null', null, new Uint8Array(1), 'TRAM_INVALID_DESTINATIONS'],
      ['a payload too large', { low: 1, high: 0 }, new Uint8Array(65), 'TRAM_PAYLOAD_TOO_LARGE'],
      ['a payload that is text', { low: 1, high: 0 }, 'text', 'TRAM_INVALID_ARGUMENT'],
    ])('offer refuses %s', async (_, destinations, payload, code) => {
      const offering = await connect();
      const offer = () =>
        offering.offer(destinations as { low: 0; high: 0 }, payload as Uint8Array);
      expect(offer).toThrow(TramError);
      expect(offer).toThrow(expect.objectContaining({ code, retry: 'useless' }));
      expect(offering.outstanding).toBe(0);
      expect(offering.ticket).toBe(0);
    });

    test('another thread can be a client', async () => {
      const script = new URL('./other-thread.mjs', import.meta.url);
      const worker = new Worker(script, { workerData: cluster.address });
      // It may say hello and end in one go.
      const exit = once(worker, 'exit');
      expect(await once(worker, 'message')).toEqual([[0, 2]]);
      await exit;
      expect(cluster.status().clients.connected).toBe(1);
    });

    test('there are as many clients as slots', async () => {
      const others = await Promise.all([connect(), connect(), connect()]);
      const error = await errorOf(cluster.connect());
      expect([error.code, error.retry]).toEqual(['TRAM_NO_CLIENT_SLOT', 'safe']);
      expect(cluster.status().clients).toEqual({ connected: 4, most: 4 });
      await others[0].close();
      const again = await connect();
      const replies = await again.multicast([0], encode('a slot again'));
      expect(decode(replies.get(0))).toMatch(/:a slot again$/);
    });

    test('a client that is closed waits for its replies, and takes no more', async () => {
      const closing = await connect();
      const calls = Array.from({ length: 10 }, (_, n) => closing.multicast([2], encode(`c${n}`)));
      const closed = closing.close();
      expect(await codeOf(closing.multicast([2], encode('after')))).toBe('TRAM_CLOSED useless');
      await Promise.all([closed, closing.close()]);
      expect(await Promise.all(calls)).toHaveLength(10);
      expect(closing.outstanding).toBe(0);
    });

    test('a client that is destroyed does not wait', async () => {
      const doomed = await connect();
      const calls = ['sleep 200', 'b', 'c', 'd', 'e'].map((text) =>
        doomed.multicast([0], encode(text)),
      );
      const codes = Promise.all(calls.map(codeOf));
      await pause(10);
      doomed.destroy();
      expect(new Set((await codes).slice(0, 4))).toEqual(new Set(['TRAM_OUTCOME_UNKNOWN unsafe']));
      expect((await codes)[4]).toBe('TRAM_CLOSED useless');
      expect(await codeOf(doomed.multicast([0], encode('f')))).toBe('TRAM_CLOSED useless');
    });

    test('tram:multicast tells of every answered message', async () => {
      const messages = listenTo('tram:multicast');
      await send('told', [0, 2]);
      await errorOf(client.multicast([1], encode('throw')));
      expect(messages).toMatchObject([
        { client: client.name, destinations: [0, 2], error: undefined },
        { client: client.name, destinations: [1], error: { code: 'TRAM_SERVICE_FAILED' } },
      ]);
      expect((messages[0] as { latencyUs: number }).latencyUs).toBeGreaterThan(0);
    });

    test('status tells who leads, who is up and how much was delivered', async () => {
      const before = cluster.status();
      await send('counted', [1]);
      const status = cluster.status();
      expect(status.state).toBe('running');
      expect(status.memory).toBe(memory);
      const { payloadBytesMax, replyBytesMax, callsMax } = SIZES;
      expect(status).toMatchObject({
        order: 'multicast',
        payloadBytesMax,
        replyBytesMax,
        callsMax,
      });
      expect(status.groups.map(({ parent }) => parent)).toEqual([-1, 0, 1]);
      expect(status.answered).toBe(before.answered + 1);
      expect(status.latencyNsP50).toBeGreaterThan(0);
      const { leader, replicas } = status.groups[1];
      expect(replicas[leader!]).toMatchObject({ group: 1, state: 'up', role: 'leader' });
      expect(replicas.map(({ host }) => host)).toEqual([0, 1, 2]);
    });

    test('lead moves the lead', async () => {
      const leaders = listenTo('tram:leader');
      const next = (cluster.status().groups[2].leader! + 1) % 3;
      await leadOf(cluster, 2, next);
      expect(await send('under another leader', [2])).toMatch(/:under another leader$/);
      await until(() => leaders.length > 0);
      expect(leaders[0]).toMatchObject({ group: 2, member: next });
      expect(() => cluster.lead(2, 3)).toThrow(/no replica g2\/3/);
      expect(() => cluster.lead(3, 0)).toThrow(/no group 3/);
    });

    test.each([-1, 3, 0.5, Number.NaN])(
      'there is no host %d to crash or to restart',
      async (host) => {
        expect(await codeOf(cluster.crash(host))).toBe('TRAM_UNKNOWN_REPLICA useless');
        expect(await codeOf(cluster.restart(host))).toBe('TRAM_UNKNOWN_REPLICA useless');
      },
    );

    test('a host that runs is stopped before it is started again', async () => {
      const incarnation = () => cluster.status().groups[0].replicas[1].incarnation;
      const before = incarnation();
      await cluster.restart(1);
      expect(incarnation()).toBe(before + 1);
    });
  });

  test('a host that crashes and begins afresh has the state again', async () => {
    const hosts = listenTo('tram:host');
    const warnings: string[] = [];
    const cluster = await start({
      groups: 2,
      logger: {
        info: () => undefined,
        warn: (text) => warnings.push(text),
        error: () => undefined,
      },
    });
    const client = await cluster.connect();
    const send = async (text: string) =>
      decode((await client.multicast([0, 1], encode(text))).get(1));
    await send('before');
    await cluster.crash(0);
    await send('meanwhile');
    await cluster.restart(0, { fresh: true });
    await send('after');
    await leadOf(cluster, 1, 0);
    expect(await send('read')).toBe('before,meanwhile,after');
    expect(hosts).toMatchObject([
      { what: 'started' },
      { what: 'started' },
      { what: 'started' },
      { what: 'ended', host: 0 },
      { what: 'started', host: 0 },
    ]);
    expect(warnings[0]).toMatch(/^host 0 has ended/);
  });

  /** Restarts host 1 with empty memory when the log no longer has its beginning, so that g0/1 needs a snapshot. */
  async function restartLate(cluster: Cluster, client: Client): Promise<{ code: Promise<string> }> {
    await cluster.crash(1);
    for (let n = 0; n < 100; n++) await client.multicast([0], encode(`${n}`));
    return { code: codeOf(cluster.restart(1, { fresh: true })) };
  }

  test('a snapshot() that throws ends no host', async () => {
    const { logger, errors } = keeping();
    const source = `
      let count = 0;
      export const deliver = () => void count++, restore = () => undefined;
      export function snapshot() {
        if (count > 0) throw new Error('disk full');
        return new Uint8Array(1);
      }`;
    const cluster = await start({ groups: 1, logBytes: 2048, service: service(source), logger });
    const client = await cluster.connect();
    const restart = await restartLate(cluster, client);
    const failing = () =>
      cluster.status().groups[0].replicas.filter(({ failedSnapshots }) => failedSnapshots > 0);
    // It asks one after the other, in vain.
    await until(() => failing().length === 2);
    await client.multicast([0], encode('goes on'));
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
    await until(() => errors.length > 0);
    expect(errors[0]).toMatch(/^snapshot\(\) of the service failed at g0\/[02], which continues/);
    expect(errors[0]).toContain('disk full');
    await cluster.destroy();
    expect(await restart.code).toBe('TRAM_CLOSED useless');
  });

  test('a restore() that throws ends its own host only, and says so', async () => {
    const { logger, warnings } = keeping();
    const source = `
      let count = 0;
      export const deliver = () => void count++, snapshot = () => Uint8Array.of(count);
      export function restore([state]) { if (state > 0) throw new Error('unknown format'); }`;
    const cluster = await start({ groups: 1, logBytes: 2048, service: service(source), logger });
    const client = await cluster.connect();
    const restart = await restartLate(cluster, client);
    expect(await restart.code).toBe('TRAM_START_FAILED safe');
    expect(warnings[1]).toContain('restore() of the service failed at g0/1: Error: unknown format');
    await client.multicast([0], encode('goes on'));
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'down', 'up']);
  });

  async function leadOf(cluster: Cluster, group: number, member: number): Promise<void> {
    while (cluster.status().groups[group].leader !== member) {
      cluster.lead(group, member);
      await pause(20);
    }
  }

  test('what is sent while every leader crashes is delivered once', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    const texts = Array.from({ length: 300 }, (_, n) => `${n}`);
    const calls = texts.map((text) => client.multicast([0, 1, 2], encode(text)));
    await calls[10];
    await cluster.crash(cluster.status().groups[0].leader!);
    await Promise.all(calls);
    for (const group of [0, 1, 2]) {
      const counter = decode((await client.multicast([group], encode('x'))).get(group));
      expect(counter).toBe('301:x');
    }
  });

  test('a group that has lost its majority goes on once enough are back', async () => {
    const cluster = await start({ groups: 1 });
    const client = await cluster.connect();
    await client.multicast([0], encode('before'));
    await Promise.all([cluster.crash(0), cluster.crash(1)]);
    const waiting = client.multicast([0], encode('meanwhile'));
    await Promise.all([cluster.restart(0), cluster.restart(1)]);
    expect(decode((await waiting).get(0))).toBe('2:meanwhile');
    expect(decode((await client.multicast([0], encode('read'))).get(0))).toBe('before,meanwhile');
  });

  test('what is sent again and again is delivered once', async () => {
    const cluster = await start({ groups: 2, resendAfterMs: 1 });
    const client = await cluster.connect();
    await client.multicast([0], encode('sleep 50'));
    const texts = Array.from({ length: 200 }, (_, n) => (n % 50 === 0 ? 'sleep 20' : `${n}`));
    await Promise.all(texts.map((text) => client.multicast([0, 1], encode(text))));
    const counts = await client.multicast([0, 1], encode('x'));
    expect([...counts.values()].map(decode)).toEqual(['197:x', '197:x']);
  });

  test.each([
    ['under the first leader', 0],
    ['after a change of leaders', 2],
  ])('deliveries that are read too slowly say so, %s', async (_, leader) => {
    const cluster = await start({ groups: 1, logBytes: 2048 });
    const client = await cluster.connect();
    await client.multicast([0], encode('before'));
    await leadOf(cluster, 0, leader);
    const deliveries = cluster.deliveries({ group: 0 });
    for (let n = 0; n < 100; n++) await client.multicast([0], encode(`${n}`));
    expect(await codeOf(deliveries.next())).toBe('TRAM_LAGGED safe');
    const again = cluster.deliveries({ group: 0 });
    await client.multicast([0], encode('seen'));
    expect(decode((await again.next()).value?.payload)).toBe('seen');
  });

  test('close waits for what was sent; then everything is closed', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    const calls = Array.from({ length: 50 }, (_, n) => client.multicast([0, 2], encode(`${n}`)));
    const deliveries = cluster.deliveries({ group: 0 });
    await Promise.all([cluster.close(), cluster.close()]);
    expect(await Promise.all(calls)).toHaveLength(50);
    expect(await codeOf(client.multicast([0], encode('late')))).toBe('TRAM_CLOSED useless');
    expect(await codeOf(cluster.connect())).toBe('TRAM_CLOSED useless');
    expect(await codeOf(cluster.restart(0))).toBe('TRAM_CLOSED useless');
    expect(await codeOf(cluster.crash(0))).toBe('TRAM_CLOSED useless');
    expect(() => cluster.deliveries({ group: 0 })).toThrow(/closed/);
    for await (const _ of deliveries) expect(_.group).toBe(0);
    await cluster.destroy();
  });

  test('destroy does not wait', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    const call = codeOf(client.multicast([0], encode('sleep 10000')));
    await pause(20);
    await Promise.all([cluster.destroy(), cluster.destroy()]);
    expect(await call).toBe('TRAM_OUTCOME_UNKNOWN unsafe');
  });

  test('a close that waits in vain ends with destroy', async () => {
    const cluster = await start({ groups: 1 });
    const client = await cluster.connect();
    // More than half of the replicas, the leader among them: nobody can go on.
    const { leader } = cluster.status().groups[0];
    await Promise.all([cluster.crash(leader!), cluster.crash((leader! + 1) % 3)]);
    const call = codeOf(client.multicast([0], encode('in vain')));
    const closed = cluster.close();
    await pause(100);
    await cluster.destroy();
    await closed;
    expect(await call).toBe('TRAM_OUTCOME_UNKNOWN unsafe');
  });

  test('disposed of, clients and clusters are closed', async () => {
    const cluster = await start({ groups: 1 });
    const client = await cluster.connect();
    await client[Symbol.asyncDispose]();
    expect(await codeOf(client.multicast([0], encode('late')))).toBe('TRAM_CLOSED useless');
    await cluster[Symbol.asyncDispose]();
    expect(await codeOf(cluster.connect())).toBe('TRAM_CLOSED useless');
  });

  test.each([
    ['is not there', new URL('./missing.mjs', import.meta.url), /can't load the service/],
    ['has an error', service('export function deliver( {'), /can't load the service/],
    ['throws at once', service('throw new Error("no licence")'), /no licence/],
    ['exports no deliver', service('export default 1'), /exports no function "deliver"/],
    [
      'can only snapshot',
      service('export const deliver = () => {}, snapshot = () => new Uint8Array()'),
      /only one of "snapshot" and "restore"/,
    ],
  ])('a service that %s is an error of the start', async (_, module, message) => {
    const error = await errorOf(start({ groups: 1, service: module }));
    expect(error.code).toBe('TRAM_SERVICE_INVALID');
    expect(error.message).toMatch(message);
  });

  test('every replica has its own instance of the service', async () => {
    const source = `
      let count = 0;
      export const deliver = () => Uint8Array.of(++count);
      export const snapshot = () => Uint8Array.of(count);
      export const restore = ([number]) => { count = number; };`;
    const cluster = await start({ hosts: 3, service: service(source) });
    const client = await cluster.connect();
    await client.multicast([0, 1], new Uint8Array(0));
    const replies = await client.multicast([0, 1, 2], new Uint8Array(0));
    expect([...replies].sort().map(([, [count]]) => count)).toEqual([2, 2, 1]);
  });

  test('a start without options says what is missing', async () => {
    const start = Cluster.start as () => Promise<Cluster>;
    expect(await errorOf(start())).toMatchObject({
      code: 'TRAM_INVALID_CONFIG',
      message: expect.stringMatching(/^groups is required/),
    });
  });

  test('a start can be given up', async () => {
    const name = `test-given-up-${process.pid}`;
    const reason = new Error('no patience');
    const early = AbortSignal.abort(reason);
    expect((await errorOf(start({ name, signal: early }))).cause).toBe(reason);
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    const slow = service('await new Promise((resolve) => setTimeout(resolve, 60_000));');
    const error = await errorOf(start({ name, service: slow, signal: controller.signal }));
    expect([error.code, error.cause]).toEqual(['TRAM_ABORTED', reason]);
    expect(existsSync(`/dev/shm/tram-${name}`)).toBe(false);
  });

  test('a start that takes too long says who is late', async () => {
    const slow = service('await new Promise((resolve) => setTimeout(resolve, 60_000));');
    const error = await errorOf(start({ service: slow, startTimeoutMs: 200 }));
    expect(error.code).toBe('TRAM_START_FAILED');
    expect(error.message).toMatch(/^host \d did not start its replicas in time/);
  });
});

test('a follower that hangs does not hold up its group, and catches up when it continues', async () => {
  // Nobody suspects it: only what is dropped from the log without it lets the group go on.
  const cluster = await Cluster.start({
    ...SIZES,
    groups: 1,
    memory: 'processes',
    logBytes: 8192,
    suspectAfterMs: 60_000,
  });
  leftOver.push(cluster);
  const client = await cluster.connect();
  const send = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await client.multicast([0], encode('x'.repeat(60)));
  };
  await send(10);
  const { groups, hosts } = cluster.status();
  const { leader, replicas } = groups[0]!;
  const follower = replicas[((leader ?? 0) + 1) % 3]!;
  const { pid } = hosts[follower.host]!;
  process.kill(pid!, 'SIGSTOP');
  leftOver.push({ destroy: () => process.kill(pid!, 'SIGCONT') });
  await send(500);
  process.kill(pid!, 'SIGCONT');
  await until(() =>
    cluster.status().groups[0]!.replicas.every(({ delivered }) => delivered === 510),
  );
  expect(cluster.status().groups[0]!.leader).toBe(leader);
});

describe.each(['machines', 'simulated'])('memory: %s', (memory) => {
  test('is nothing that a program can start', async () => {
    const hosts = ['a', 'b', 'c'].map((name) => ({ name, address: name, port: 1 }));
    const options = { groups: 2, memory, hosts, secret: 'cluster.secret' };
    const error = await errorOf(Cluster.start(options as StartOptions));
    expect(error).toMatchObject({ code: 'TRAM_INVALID_CONFIG', path: ['memory'] });
  });
});

describe('from other processes', () => {
  const name = `test-api-${process.pid}`;

  async function startNamed(options: Partial<StartOptions> = {}): Promise<Cluster> {
    const memory = 'processes';
    const cluster = await Cluster.start({
      groups: 2,
      memory,
      name,
      service: RECORDER,
      ...SIZES,
      ...options,
    });
    leftOver.push(cluster);
    return cluster;
  }

  async function startProcess(): Promise<ChildProcess> {
    const child = fork(fileURLToPath(new URL('./other-process.mjs', import.meta.url)), [name]);
    leftOver.push({ destroy: () => child.kill('SIGKILL') });
    await once(child, 'message');
    return child;
  }

  async function ask(child: ChildProcess, groups: number[], text: string): Promise<unknown> {
    child.send({ groups, text });
    return (await once(child, 'message'))[0];
  }

  test('any process of the user can connect by name', async () => {
    const cluster = await startNamed();
    const child = await startProcess();
    expect(await ask(child, [0, 1], 'from afar')).toEqual({
      replies: { 0: '1:from afar', 1: '1:from afar' },
    });
    const client = await Client.connect(name);
    expect((await client.multicast([1], encode('from here'))).size).toBe(1);
    expect(cluster.status().clients.connected).toBe(2);
    child.disconnect();
    await once(child, 'exit');
    expect(cluster.status().clients.connected).toBe(1);
    await client.close();
  });

  test('a client that is killed leaves its slot to the next', async () => {
    const cluster = await startNamed({ clients: 1 });
    const child = await startProcess();
    expect((await errorOf(cluster.connect())).code).toBe('TRAM_NO_CLIENT_SLOT');
    await ask(child, [0], 'the last words');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const client = await cluster.connect();
    expect(decode((await client.multicast([0], encode('read'))).get(0))).toBe('the last words');
  });

  test('when the cluster closes, pending calls fail', async () => {
    const cluster = await startNamed();
    const client = await Client.connect(name);
    await client.multicast([0], encode('before'));
    const call = codeOf(client.multicast([0], encode('sleep 1000')));
    await pause(20);
    await cluster.close();
    expect(await call).toBe('TRAM_OUTCOME_UNKNOWN unsafe');
    expect(await codeOf(client.multicast([0], encode('after')))).toBe('TRAM_CLOSED useless');
    await client.close();
    expect(await codeOf(Client.connect(name))).toBe('TRAM_NOT_FOUND safe');
  });

  test.each([
    ['without a name', []],
    ['with a name', [`ends-with-starter-${process.pid}`]],
  ])('a cluster %s ends with the process that started it', async (_, args) => {
    const starter = fork(fileURLToPath(new URL('./starter.mjs', import.meta.url)), args);
    leftOver.push({ destroy: () => starter.kill('SIGKILL') });
    const [{ address, pids }] = (await once(starter, 'message')) as [
      { address: string; pids: number[] },
    ];
    expect(pids.map(isRunning)).toEqual([true, true, true]);
    // As Ctrl-C does: the interrupt reaches them all. It is the end of nobody but the starter.
    for (const pid of pids) process.kill(pid, 'SIGINT');
    await pause(50);
    expect(pids.map(isRunning)).toEqual([true, true, true]);
    starter.kill('SIGKILL');
    await until(() => !pids.some(isRunning) && !existsSync(address));
  });

  test('the end of a host does not matter to a process that has detached', async () => {
    const name = `detached-${process.pid}`;
    const options = { ...SIZES, groups: 1, memory: 'processes', name } as const;
    const cluster = await Cluster.start({ ...options, detached: true });
    const pids = cluster.status().hosts.map(({ pid }) => pid!);
    await cluster.detach();
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    const isGone = (pid: number) => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    };
    // Vitest fails if the event of the end throws.
    await until(() => pids.every(isGone));
    await pause(50);
    rmSync(`/dev/shm/tram-${name}`, { force: true });
    rmSync(logsOf(name), { recursive: true });
  });

  test('a host that is being started when its starter detaches runs on', async () => {
    const name = `detaching-${process.pid}`;
    const options = { ...SIZES, groups: 1, hosts: 3, memory: 'processes', name } as const;
    const cluster = await Cluster.start({ ...options, detached: true });
    const attached = await Cluster.attach(name);
    try {
      await cluster.crash(1);
      const restarted = cluster.restart(1);
      await cluster.detach();
      await restarted;
      expect(attached.status().hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
      expect(await codeOf(cluster.restart(1))).toBe('TRAM_CLOSED useless');
    } finally {
      await attached.shutDown({ force: true });
    }
  });

  /** Where the hosts of a detached cluster log. */
  function logsOf(name: string): string {
    return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
  }

  test.each([
    ['threads have it', { memory: 'threads', name: 'detached' }],
    ['it has no name', { memory: 'processes' }],
  ] as const)('a cluster can not be detached if %s', async (_, options) => {
    const start = Cluster.start({ ...SIZES, groups: 1, ...options, detached: true });
    expect(await errorOf(start)).toMatchObject({ code: 'TRAM_INVALID_CONFIG', path: ['detached'] });
  });

  test('a cluster that ends with its process can not be left by it', async () => {
    const cluster = await startNamed();
    expect(await codeOf(cluster.detach())).toBe('TRAM_INVALID_ARGUMENT useless');
    expect((await cluster.connect()).constructor).toBe(Client);
  });

  test('a detached cluster goes on without the process that started it', async () => {
    const script = fileURLToPath(new URL('./starter.mjs', import.meta.url));
    const starter = fork(script, [name, 'detached']);
    const [{ address, pids }] = (await once(starter, 'message')) as [
      { address: string; pids: number[] },
    ];
    leftOver.push({
      destroy: () => {
        for (const pid of pids) process.kill(pid, 'SIGKILL');
        rmSync(address);
        rmSync(logsOf(name), { recursive: true });
      },
    });
    starter.kill('SIGKILL');
    await once(starter, 'exit');
    const client = await Client.connect(name);
    leftOver.push(client);
    expect((await client.multicast([0], encode('orphans'))).size).toBe(1);
    expect(pids.map(isRunning)).toEqual([true, true, true]);
  });

  /** One that has ended and was not yet asked about by its parent does not run. */
  function isRunning(pid: number): boolean {
    try {
      return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return false;
    }
  }

  test('there is one cluster of a name', async () => {
    await startNamed();
    expect(await codeOf(startNamed())).toBe('TRAM_EXISTS useless');
    await expect(startNamed()).rejects.toHaveProperty(
      'hint',
      expect.stringMatching(/tram up --name \S+; .*tram down --name \S+\.$/),
    );
  });
});

describe('names of clusters of threads', () => {
  const options = { groups: 1, hosts: 1, name: `threads-${process.pid}` } as const;

  test('a second cluster of a name is refused, until the first has ended', async () => {
    const first = await Cluster.start(options);
    leftOver.push(first);
    expect(await codeOf(Cluster.start(options))).toBe('TRAM_EXISTS useless');
    await first.close();
    leftOver.push(await Cluster.start(options));
  });

  test('the thread that has started it can connect by name', async () => {
    const cluster = await Cluster.start({ ...options, service: RECORDER });
    leftOver.push(cluster);
    const client = await Client.connect(options.name);
    leftOver.push(client);
    expect(decode((await client.multicast([0], encode('by name'))).get(0))).toBe('1:by name');
  });
});
