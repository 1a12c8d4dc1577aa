/** A service as its replica calls it. */
import { describe, expect, test } from 'vitest';
import { loadService } from '../../src/hosting/service.js';
import {
  type Application,
  DEFERRED,
  type Delivery,
  type Replier,
} from '../../src/protocol/edges.js';

const DELIVER = 'export const deliver = () => undefined;';

function load(body: string, deliver = DELIVER): Promise<Application> {
  const source = `${deliver} ${body}`;
  const href = `data:text/javascript,${encodeURIComponent(source)}`;
  return loadService(href, { group: 2, member: 1 }, 1);
}

/** Nothing waits. */
const NOTHING_WAITS: Replier = { reply: () => false };
const DELIVERY = { session: 7, entryGroup: 3, number: 5 } as Delivery;

function deliver(service: Application, delivery = {} as Delivery, replier = NOTHING_WAITS) {
  return service.deliver(delivery, replier);
}

test.each([
  ['text', "'state'", 'a string'],
  ['nothing', 'undefined', 'undefined'],
  ['null', 'null', 'null'],
  ['another array', 'new Uint16Array(1)', 'an object of class Uint16Array'],
  ['an object', 'Object.create(null)', 'an object without a class'],
  ['a promise', 'Promise.resolve(new Uint8Array())', 'a promise: it must not be asynchronous'],
])('a snapshot() that returns %s fails', async (_, value, what) => {
  const service = await load(`
    let isFirst = true;
    export const snapshot = () => isFirst ? new Uint8Array() : ${value};
    export const restore = () => { isFirst = false; }`);
  expect(() => service.snapshot()).toThrow(
    new TypeError(
      `snapshot() must return a Uint8Array, or an iterable of them, and it returned ${what}`,
    ),
  );
});

test('a snapshot() may give its state in pieces', async () => {
  const service = await load(`
    export let state = [1, 2, 3];
    export function* snapshot() { for (const one of state) yield Uint8Array.of(one, one); }
    export const restore = (bytes) => { state = [...bytes]; };`);
  // The first snapshot, which was taken and restored at the start, had six bytes.
  const pieces = [...(service.snapshot() as Iterable<Uint8Array>)];
  expect(Buffer.concat(pieces)).toEqual(Buffer.from([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]));
});

test('a snapshot() that gives something else than bytes fails', async () => {
  const service = await load(`
    let isFirst = true;
    export const snapshot = () => [new Uint8Array(1), ...(isFirst ? [] : ['text'])];
    export const restore = () => { isFirst = false; }`);
  expect(() => [...(service.snapshot() as Iterable<Uint8Array>)]).toThrow(
    'snapshot() must return a Uint8Array, or an iterable of them, and it gave a string',
  );
});

test('the iterator of a snapshot() that is not needed any more is told so', async () => {
  const service = await load(
    `let isClosed = false;
     export function* snapshot() { try { yield new Uint8Array(1); yield new Uint8Array(1); } finally { isClosed = true; } }
     export function restore() { isClosed = false; }`,
    'export const deliver = () => Uint8Array.of(Number(isClosed));',
  );
  const pieces = (service.snapshot() as Iterable<Uint8Array>)[Symbol.iterator]();
  pieces.next();
  expect(deliver(service)).toEqual(Uint8Array.of(0));
  pieces.return?.();
  expect(deliver(service)).toEqual(Uint8Array.of(1));
});

test.each([
  ['text', "'hello'", 'a string'],
  ['a number', '5', 'a number'],
  ['null', 'null', 'null'],
  ['another array', 'new Uint16Array(1)', 'an object of class Uint16Array'],
  ['a proxy', 'new Proxy(new Uint8Array(1), {})', 'an object of class Uint8Array'],
  ['a promise', 'Promise.resolve()', 'a promise: it must not be asynchronous'],
])('a deliver() that returns %s fails', async (_, value, what) => {
  const service = await load('', `export const deliver = () => (${value});`);
  expect(() => deliver(service)).toThrow(
    new TypeError(
      `deliver() must return a Uint8Array, context.defer() or nothing, and it returned ${what}`,
    ),
  );
});

test('deliver() may return bytes, or nothing', async () => {
  const bytes = await load('', 'export const deliver = () => Buffer.from([1, 2]);');
  expect(deliver(bytes)).toEqual(Buffer.from([1, 2]));
  expect(deliver(await load(''))).toBeUndefined();
});

test('a message has an id of its own beyond 2³² messages of a client', async () => {
  const service = await load(
    'export function deliver({ id }) { return new TextEncoder().encode(id); }',
    '',
  );
  const delivery = { session: 7, entryGroup: 3, number: 2 ** 32 + 1 } as Delivery;
  expect(new TextDecoder().decode(deliver(service, delivery) as Uint8Array)).toBe(
    'c7:3.4294967297',
  );
});

test('an asynchronous function of a service fails, and its rejection ends no process', async () => {
  const service = await load(
    `let isFirst = true;
     export const snapshot = () => isFirst ? new Uint8Array() : Promise.reject(1);
     export const restore = () => isFirst ? void (isFirst = false) : Promise.reject(2);`,
    'export async function deliver() { throw 3; }',
  );
  const message = 'it returned a promise: it must not be asynchronous';
  expect(() => service.snapshot()).toThrow(message);
  expect(() => service.restore(new Uint8Array(1), 0)).toThrow(message);
  expect(() => deliver(service)).toThrow(message);
  // Vitest fails if a rejection is not handled.
  await new Promise((resolve) => setImmediate(resolve));
});

test('a service without snapshot() has no state', async () => {
  const service = await load('');
  expect(service.snapshot()).toHaveLength(0);
  service.restore(new Uint8Array(0), 0);
});

test('a restore() that throws names its replica', async () => {
  const service = await load(`export const snapshot = () => new Uint8Array();
    export function restore({ length }) { if (length > 0) throw new Error('unknown format'); }`);
  expect(() => service.restore(new Uint8Array(1), 0)).toThrow(
    /^restore\(\) of the service failed at g2\/1: Error: unknown format/,
  );
});

describe('a service whose first state', () => {
  test.each([
    [
      'has no snapshot',
      "export const snapshot = () => { throw new Error('disk full'); }, restore = () => undefined;",
      "can't take a snapshot of its first state: Error: disk full",
    ],
    [
      'has a snapshot of text',
      "export const snapshot = () => '{}', restore = () => undefined;",
      "can't take a snapshot of its first state: TypeError: snapshot() must return a Uint8Array, or an iterable of them, and it returned a string",
    ],
    [
      "can't be restored",
      "export const snapshot = () => new Uint8Array(1); export function restore() { throw new Error('unknown format'); }",
      "can't restore the snapshot of its first state: Error: unknown format",
    ],
    [
      'is restored later',
      'export const snapshot = () => new Uint8Array(1); export async function restore() { throw 1; }',
      'it must not be asynchronous',
    ],
  ])('%s is invalid', async (_, body, message) => {
    const error = await load(body).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'TRAM_SERVICE_INVALID',
      message: expect.stringContaining(message),
      cause: expect.any(Error),
    });
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('is restored once, from a copy of its snapshot', async () => {
    const service = await load(
      `const restored = [], state = Uint8Array.of(7);
       export const deliver = () => Uint8Array.of(restored.length, ...restored[0]);
       export const snapshot = () => state;
       export function restore(snapshot) { if (snapshot !== state) restored.push(snapshot); }`,
      '',
    );
    expect(deliver(service)).toEqual(Uint8Array.of(1, 7));
  });
});

describe('ticks', () => {
  test('advance ordered time for all functions of a service', async () => {
    const service = await load(
      `const seen = [];
       export const ticks = { everyMs: 2.5 };
       export const tick = ({ nowMs }) => { seen.push(nowMs); };
       export const deliver = (_, { nowMs }) => Buffer.from(seen.concat(nowMs).join());
       export const snapshot = ({ nowMs }) => Buffer.from('at ' + nowMs);
       export const restore = (_, { nowMs }) => { seen.push('restored at ' + nowMs); };`,
      '',
    );
    const seen = (): string => String(deliver(service));
    expect(service.tickEveryUs).toBe(2500);
    expect(seen()).toBe('restored at 0,0');
    service.tick(1_700_000_000_123_999, NOTHING_WAITS);
    expect(seen()).toBe('restored at 0,1700000000123,1700000000123');
    expect(String(service.snapshot())).toBe('at 1700000000123');
    service.restore(new Uint8Array(0), 1_800_000_000_000_000);
    expect(seen()).toContain('restored at 1800000000000,1800000000000');
  });

  test('are not asked for by default', async () => {
    expect((await load('')).tickEveryUs).toBeUndefined();
  });

  test.each([
    ['tick', 'export const tick = () => undefined;', '"tick" but not "ticks"'],
    ['no everyMs', 'export const ticks = {};', 'at least 1, not undefined'],
    ['0', 'export const ticks = { everyMs: 0 };', 'at least 1, not 0'],
    ['NaN', 'export const ticks = { everyMs: NaN };', 'at least 1, not NaN'],
    ['infinity', 'export const ticks = { everyMs: Infinity };', 'at least 1, not Infinity'],
    ['text', "export const ticks = { everyMs: '5' };", 'at least 1, not 5'],
    ['null', 'export const ticks = null;', 'at least 1, not undefined'],
    ['no function', 'export const ticks = { everyMs: 5 }, tick = 5;', 'must be a function'],
  ])('are checked: %s', async (_, body, message) => {
    await expect(load(body)).rejects.toMatchObject({
      code: 'TRAM_SERVICE_INVALID',
      message: expect.stringContaining(message),
    });
  });

  test('must not be asynchronous', async () => {
    const service = await load(
      'export const ticks = { everyMs: 5 }; export async function tick() { throw 1; }',
    );
    expect(() => service.tick(1, NOTHING_WAITS)).toThrow(
      'tick() must return nothing, and it returned a promise',
    );
  });
});

describe('a default export', () => {
  test('may be the service', async () => {
    const service = await load('', 'export default { deliver: () => Uint8Array.of(1) };');
    expect(deliver(service)).toEqual(Uint8Array.of(1));
  });

  test('of a definition makes a service for each replica', async () => {
    const definition = `export default {
      serviceOf: ({ group, member }) => ({ deliver: () => Uint8Array.of(group, member) }),
    };`;
    expect(deliver(await load('', definition))).toEqual(Uint8Array.of(2, 1));
  });

  test('comes after a deliver() that is exported by name', async () => {
    const service = await load('export default { deliver: () => 1 };');
    expect(deliver(service)).toBeUndefined();
  });
});

describe('deferred replies', () => {
  /** A message that waits, and the replies that it gets. */
  function waitingFor(id: string): Replier & { readonly replies: unknown[] } {
    const replies: unknown[] = [];
    return {
      replies,
      reply: (other, reply) => {
        if (other !== id || replies.length > 0) return false;
        replies.push(reply);
        return true;
      },
    };
  }

  test('deliver() may return context.defer(), however often it has called it', async () => {
    const service = await load(
      '',
      'export const deliver = (_, context) => context.defer() && context.defer();',
    );
    expect(deliver(service)).toBe(DEFERRED);
  });

  test('a reply goes to a message that waits, once', async () => {
    const service = await load(
      '',
      `export const deliver = (_, context) =>
         Uint8Array.of(context.reply('a', Uint8Array.of(1)), context.reply('a'), context.reply('b'));`,
    );
    const replier = waitingFor('a');
    expect(deliver(service, DELIVERY, replier)).toEqual(Uint8Array.of(1, 0, 0));
    expect(replier.replies).toEqual([Uint8Array.of(1)]);
  });

  test('a tick may make the service reply', async () => {
    const replier = waitingFor('a');
    const service = await load(
      'export const ticks = { everyMs: 5 }; export const tick = (context) => void context.reply("a");',
    );
    service.tick(1, replier);
    expect(replier.replies).toEqual([undefined]);
  });

  test('a message that is abandoned may make the service reply to another', async () => {
    const replier = waitingFor('b');
    const service = await load(
      'export const abandoned = (id, context) => void context.reply("b", new TextEncoder().encode(id));',
    );
    service.abandoned?.('a', replier);
    expect(replier.replies).toEqual([new TextEncoder().encode('a')]);
  });

  test.each([
    ['text', "'done'", 'a string'],
    ['null', 'null', 'null'],
    ['a promise', 'Promise.resolve()', 'an object of class Promise'],
  ])('a reply() of %s fails', async (_, value, what) => {
    const service = await load(
      '',
      `export const deliver = (_, context) => void context.reply('a', ${value});`,
    );
    const replier = waitingFor('a');
    expect(() => deliver(service, DELIVERY, replier)).toThrow(
      new TypeError(`reply() takes a Uint8Array or nothing, and it got ${what}`),
    );
    expect(replier.replies).toHaveLength(0);
  });

  test('a reply() to the message that is being delivered fails', async () => {
    const service = await load(
      '',
      'export const deliver = ({ id }, context) => (context.reply(id), context.defer());',
    );
    expect(() => deliver(service, DELIVERY)).toThrow(
      'reply() is not for the message that is being delivered: return its reply',
    );
  });

  test.each([
    ['snapshot()', (service: Application) => service.snapshot()],
    ['restore()', (service: Application) => service.restore(new Uint8Array(1), 0)],
  ])('defer() and reply() fail in %s', async (_, call) => {
    const service = await load(
      `let isFirst = true;
       const errors = [];
       function fail(context) {
         if (isFirst) return;
         for (const name of ['defer', 'reply']) {
           try { context[name]('a'); } catch (error) { errors.push(error.message); }
         }
       }
       export const snapshot = (context) => (fail(context), new Uint8Array());
       export const restore = (_, context) => { fail(context); isFirst = false; };
       export const deliver = () => new TextEncoder().encode(errors.join('|'));`,
      '',
    );
    call(service);
    expect(new TextDecoder().decode(deliver(service) as Uint8Array)).toMatch(
      /^defer\(\) is only for deliver\(\).*\|reply\(\) is only for deliver\(\), abandoned\(\) and tick\(\)/,
    );
  });

  test('defer() fails in abandoned()', async () => {
    const service = await load('export const abandoned = (_, context) => void context.defer();');
    expect(() => service.abandoned?.('a', NOTHING_WAITS)).toThrow('defer() is only for deliver()');
  });

  test('an asynchronous abandoned() fails', async () => {
    const service = await load('export async function abandoned() {}');
    expect(() => service.abandoned?.('a', NOTHING_WAITS)).toThrow(
      'abandoned() must return nothing, and it returned a promise: it must not be asynchronous',
    );
  });

  test('an "abandoned" that is no function is invalid', async () => {
    await expect(load('export const abandoned = 1;')).rejects.toMatchObject({
      code: 'TRAM_SERVICE_INVALID',
      message: expect.stringContaining('exports "abandoned", which is not a function'),
    });
  });
});
