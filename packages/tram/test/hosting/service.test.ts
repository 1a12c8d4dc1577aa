/** A service as its replica calls it. */
import { describe, expect, test } from 'vitest';
import { loadService } from '../../src/hosting/service.js';
import type { Application, Delivery } from '../../src/protocol/edges.js';

const DELIVER = 'export const deliver = () => undefined;';

function load(body: string, deliver = DELIVER): Promise<Application> {
  const source = `${deliver} ${body}`;
  const href = `data:text/javascript,${encodeURIComponent(source)}`;
  return loadService(href, { group: 2, member: 1 }, 1);
}

test.each([
  ['text', "'state'", 'a string'],
  ['nothing', 'undefined', 'undefined'],
  ['null', 'null', 'null'],
  ['an array', '[1]', 'an object of class Array'],
  ['an object', 'Object.create(null)', 'an object without a class'],
  ['a promise', 'Promise.resolve(new Uint8Array())', 'a promise: it must not be asynchronous'],
])('a snapshot() that returns %s fails', async (_, value, what) => {
  const service = await load(`
    let isFirst = true;
    export const snapshot = () => isFirst ? new Uint8Array() : ${value};
    export const restore = () => { isFirst = false; }`);
  expect(() => service.snapshot()).toThrow(
    new TypeError(`snapshot() must return a Uint8Array, and it returned ${what}`),
  );
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
  expect(() => service.deliver({} as Delivery)).toThrow(
    new TypeError(`deliver() must return a Uint8Array or nothing, and it returned ${what}`),
  );
});

test('deliver() may return bytes, or nothing', async () => {
  const bytes = await load('', 'export const deliver = () => Buffer.from([1, 2]);');
  expect(bytes.deliver({} as Delivery)).toEqual(Buffer.from([1, 2]));
  expect((await load('')).deliver({} as Delivery)).toBeUndefined();
});

test('a message has an id of its own beyond 2³² messages of a client', async () => {
  const service = await load(
    'export function deliver({ id }) { return new TextEncoder().encode(id); }',
    '',
  );
  const delivery = { session: 7, entryGroup: 3, number: 2 ** 32 + 1 } as Delivery;
  expect(new TextDecoder().decode(service.deliver(delivery))).toBe('c7:3.4294967297');
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
  expect(() => service.deliver({} as Delivery)).toThrow(message);
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
  const deliver = 'export const deliver = () => undefined;';

  test.each([
    [
      'has no snapshot',
      "export const snapshot = () => { throw new Error('disk full'); }, restore = () => undefined;",
      "can't take a snapshot of its first state: Error: disk full",
    ],
    [
      'has a snapshot of text',
      "export const snapshot = () => '{}', restore = () => undefined;",
      "can't take a snapshot of its first state: TypeError: snapshot() must return a Uint8Array, and it returned a string",
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
    const error = await load(body, deliver).catch((thrown: unknown) => thrown);
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
    expect(service.deliver({} as Delivery)).toEqual(Uint8Array.of(1, 7));
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
    const seen = (): string => String(service.deliver({} as Delivery));
    expect(service.tickEveryUs).toBe(2500);
    expect(seen()).toBe('restored at 0,0');
    service.tick(1_700_000_000_123_999);
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
    expect(() => service.tick(1)).toThrow('tick() must return nothing, and it returned a promise');
  });
});

describe('a default export', () => {
  test('may be the service', async () => {
    const service = await load('', 'export default { deliver: () => Uint8Array.of(1) };');
    expect(service.deliver({} as Delivery)).toEqual(Uint8Array.of(1));
  });

  test('of a definition makes a service for each replica', async () => {
    const definition = `export default {
      serviceOf: ({ group, member }) => ({ deliver: () => Uint8Array.of(group, member) }),
    };`;
    expect((await load('', definition)).deliver({} as Delivery)).toEqual(Uint8Array.of(2, 1));
  });

  test('comes after a deliver() that is exported by name', async () => {
    const service = await load('export default { deliver: () => 1 };');
    expect(service.deliver({} as Delivery)).toBeUndefined();
  });
});
