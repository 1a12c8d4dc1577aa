/** A typed service and its client, without a cluster: the client's messages go straight to the service. */
import { describe, expect, test } from 'vitest';
import type { Client } from '../src/client.js';
import { bytesCodec } from '../src/codec.js';
import { defineService } from '../src/define-service.js';
import { ReplyError } from '../src/errors.js';
import type { ServiceContext, StatefulService } from '../src/hosting/service.js';
import { DEFERRED } from '../src/protocol/edges.js';

type Command = { readonly add: number } | { readonly fail: string } | { readonly reply: 'a Map' };

const sums = defineService({
  initial: (group) => ({ sum: group * 100, last: '' }),
  deliver(state, command: Command, { group, destinations, id }) {
    state.last = `${id} to ${destinations} at ${group}`;
    if ('fail' in command) throw new Error(command.fail);
    if ('reply' in command) return { sum: new Map() as never };
    state.sum += command.add;
    return { sum: state.sum };
  },
});

/** The deferred replies, with the ids of their messages. */
const replies: [string, string][] = [];
const context = (group: number): ServiceContext => ({
  group,
  member: 0,
  nowMs: 0,
  defer: () => DEFERRED,
  reply: (id, reply) => id !== '' && replies.push([id, text(reply)]) > 0,
});
const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const text = (bytes: unknown): string => new TextDecoder().decode(bytes as Uint8Array);

function deliver(service: StatefulService, payload: Uint8Array, group = 1): string {
  const message = { payload, destinations: [1, 2], id: 'c1:0.0' };
  return text(service.deliver(message, context(group)));
}

/** A client whose groups are these services. */
function clientOf(services: Map<number, StatefulService>): Client {
  const multicast = async (groups: Iterable<number>, payload: Uint8Array) => {
    const replies = new Map<number, Uint8Array>();
    const failedGroups = new Map<number, string>();
    for (const group of groups) {
      try {
        const message = { payload, destinations: [...groups], id: 'c1:0.0' };
        replies.set(group, services.get(group)!.deliver(message, context(group)) as Uint8Array);
      } catch (error) {
        failedGroups.set(group, (error as Error).message);
      }
    }
    if (failedGroups.size === 0) return replies;
    throw ReplyError.delivered('TRAM_SERVICE_FAILED', replies, failedGroups);
  };
  return { multicast, close: async () => undefined } as unknown as Client;
}

/** The services of groups 1 and 2. */
const groups = () => new Map([1, 2].map((group) => [group, sums.serviceOf(context(group))]));

test('a tick changes the state of a replica, and commands see ordered time', () => {
  const leases = defineService({
    initial: () => ({ until: 0, expired: 0 }),
    ticks: { everyMs: 50 },
    deliver(state, { forMs }: { forMs: number }, { nowMs }) {
      if (forMs > 0) state.until = nowMs + forMs;
      return state.expired;
    },
    tick(state, { nowMs, group }) {
      if (nowMs >= state.until) state.expired = group;
    },
  });
  const replica = { ...context(3), nowMs: 1000 };
  const service = leases.serviceOf(replica);
  expect(service.ticks).toEqual({ everyMs: 50 });
  expect(deliver(service, json({ forMs: 30 }))).toBe('0');
  for (const [nowMs, expired] of [
    [1029, '0'],
    [1030, '3'],
  ] as const) {
    replica.nowMs = nowMs;
    service.tick!(replica);
    expect(deliver(service, json({ forMs: 0 }))).toBe(expired);
  }
});

describe('the service of a replica', () => {
  test('starts with the state of its group, and keeps it to itself', () => {
    const [one, other] = [sums.serviceOf(context(1)), sums.serviceOf(context(1))];
    expect(deliver(one, json({ add: 5 }))).toBe('{"sum":105}');
    expect(deliver(one, json({ add: 5 }))).toBe('{"sum":110}');
    expect(deliver(other, json({ add: 1 }))).toBe('{"sum":101}');
  });

  test('moves its state to another replica', () => {
    const [from, to] = [sums.serviceOf(context(1)), sums.serviceOf(context(2))];
    deliver(from, json({ add: 5 }));
    const snapshot = from.snapshot(context(1)) as Uint8Array;
    expect(text(snapshot)).toBe('{"sum":105,"last":"c1:0.0 to 1,2 at 1"}');
    to.restore(snapshot, context(2));
    expect(deliver(to, json({ add: 1 }))).toBe('{"sum":106}');
  });

  test('may defer a reply, give it later, and is told if it need not', () => {
    const box = defineService<{ put?: string }, string, { ids: string[] }>({
      initial: () => ({ ids: [] }),
      deliver({ ids }, { put }, context) {
        if (put !== undefined) return String(context.reply(ids.shift() ?? '', put));
        ids.push(context.id);
        return context.defer();
      },
      abandoned({ ids }, id, context) {
        ids.splice(ids.indexOf(id), 1);
        context.reply(ids.shift() ?? '', `instead of ${id}`);
      },
    });
    const service = box.serviceOf(context(1));
    const send = (id: string, command: object): unknown =>
      service.deliver({ payload: json(command), destinations: [1], id }, context(1));
    expect(send('a', {})).toBe(DEFERRED);
    expect(send('b', {})).toBe(DEFERRED);
    service.abandoned?.('a', context(1));
    expect(replies.splice(0)).toEqual([['b', '"instead of a"']]);
    expect(send('c', {})).toBe(DEFERRED);
    expect(text(send('d', { put: 'x' }))).toBe('"true"');
    expect(replies.splice(0)).toEqual([['c', '"x"']]);
    expect(text(send('e', { put: 'x' }))).toBe('"false"');
  });

  test('fails on a command that is not JSON', () => {
    const service = sums.serviceOf(context(1));
    expect(() => deliver(service, Uint8Array.of(0x7b))).toThrow(
      'the command: 1 bytes are not JSON',
    );
  });

  test('fails if deliver is asynchronous, and its rejection ends no process', async () => {
    const service = defineService({
      initial: () => ({}),
      deliver: (async () => Promise.reject(new Error('later'))) as () => unknown,
    }).serviceOf(context(1));
    expect(() => deliver(service, json({}))).toThrow(
      'deliver() must return the reply, and it returned a promise: it must not be asynchronous',
    );
    // Vitest fails if a rejection is not handled.
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('refuses a state that another replica would not get as it is', () => {
    const item = {};
    const service = defineService({
      initial: () => ({ items: [] as object[] }),
      deliver: (state) => void state.items.push(item),
    }).serviceOf(context(1));
    deliver(service, json({}));
    service.snapshot(context(1));
    deliver(service, json({}));
    expect(() => service.snapshot(context(1))).toThrow(
      "the state: JSON can't represent an object that occurs twice, at .items[1]",
    );
  });

  test('fails on a reply that JSON would change', () => {
    expect(() => deliver(sums.serviceOf(context(1)), json({ reply: 'a Map' }))).toThrow(
      "the reply: JSON can't represent a Map, at .sum",
    );
  });

  test('has no snapshot of a state that JSON would change', () => {
    const service = defineService({ initial: () => new Map(), deliver: () => 1 });
    expect(() => service.serviceOf(context(0)).snapshot(context(0))).toThrow(
      "the state: JSON can't represent a Map",
    );
  });

  test('uses the codecs that it is given, and they own the bytes', () => {
    const kept: Uint8Array[] = [];
    const service = defineService({
      initial: () => Uint8Array.of(7),
      deliver(state, bytes: Uint8Array) {
        kept.push(bytes);
        return state;
      },
      codecs: { command: bytesCodec, reply: bytesCodec, state: bytesCodec },
    }).serviceOf(context(0));
    const payload = Uint8Array.of(1, 2);
    expect(service.deliver({ payload, destinations: [0], id: '' }, context(0))).toEqual(
      Uint8Array.of(7),
    );
    payload.fill(9);
    expect(kept).toEqual([Uint8Array.of(1, 2)]);
    expect(service.snapshot(context(0))).toEqual(Uint8Array.of(7));
  });
});

describe('its client', () => {
  const client = () => sums.client(clientOf(groups()));

  test('gets typed replies', async () => {
    const replies: Map<number, { sum: number }> = await client().multicast([1, 2], { add: 5 });
    expect(replies).toEqual(
      new Map([
        [1, { sum: 105 }],
        [2, { sum: 205 }],
      ]),
    );
    const { sum } = await client().call(2, { add: 1 });
    expect(sum).toBe(201);
  });

  test('sends no command that JSON would change', async () => {
    await expect(client().call(1, { add: Number.NaN })).rejects.toMatchObject({
      code: 'TRAM_INVALID_ARGUMENT',
      message: "the command: JSON can't represent NaN, at .add",
    });
  });

  test('gets the replies of the other groups with a failure', async () => {
    const services = groups();
    services.set(2, {
      ...services.get(2)!,
      deliver: () => {
        throw new Error('none left');
      },
    });
    const error: unknown = await sums
      .client(clientOf(services))
      .multicast([1, 2], { add: 5 })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'TRAM_SERVICE_FAILED' });
    expect((error as ReplyError).replies).toEqual(new Map([[1, { sum: 105 }]]));
    expect((error as ReplyError).failedGroups).toEqual(new Map([[2, 'none left']]));
  });

  test('says which reply it could not decode', async () => {
    const services = groups();
    services.set(2, { ...services.get(2)!, deliver: () => Uint8Array.of(0x7b) });
    const error: unknown = await sums
      .client(clientOf(services))
      .multicast([1, 2], { add: 5 })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'TRAM_SERVICE_FAILED' });
    expect((error as ReplyError).replies).toEqual(new Map([[1, { sum: 105 }]]));
    expect((error as ReplyError).failedGroups).toEqual(
      new Map([[2, "can't decode its reply: 1 bytes are not JSON"]]),
    );
  });
});

test.each([
  ['initial', { deliver: () => 1 }],
  ['deliver', { initial: () => 1 }],
])('a definition needs %s', (name, definition) => {
  expect(() => defineService(definition as never)).toThrow(
    `defineService needs a function "${name}"`,
  );
});
