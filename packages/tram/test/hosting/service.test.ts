/** A service as its replica calls it. */
import { expect, test } from 'vitest';
import { loadService } from '../../src/hosting/service.js';
import type { Application, Delivery } from '../../src/protocol/edges.js';

const DELIVER = 'export const deliver = () => undefined;';

function load(body: string, deliver = DELIVER): Promise<Application> {
  const source = `${deliver} ${body}`;
  const href = `data:text/javascript,${encodeURIComponent(source)}`;
  return loadService(href, { group: 2, member: 1 }, 1);
}

test.each([
  ['text', "'state'", 'string'],
  ['nothing', 'undefined', 'undefined'],
  ['null', 'null', 'null'],
  ['an array', '[1]', 'object'],
])('a snapshot() that returns %s fails', async (_, value, what) => {
  const service = await load(`export const snapshot = () => ${value}, restore = () => undefined;`);
  expect(() => service.snapshot()).toThrow(
    `snapshot() must return a Uint8Array, and it returned ${what}`,
  );
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
    'export async function snapshot() { throw 1; } export async function restore() { throw 2; }',
    'export async function deliver() { throw 3; }',
  );
  const message = 'must not be asynchronous, and it returned a promise';
  expect(() => service.snapshot()).toThrow(`snapshot() ${message}`);
  expect(() => service.restore(new Uint8Array(1))).toThrow(`restore() ${message}`);
  expect(() => service.deliver({} as Delivery)).toThrow(`deliver() ${message}`);
  // Vitest fails if a rejection is not handled.
  await new Promise((resolve) => setImmediate(resolve));
});

test('a service without snapshot() has no state', async () => {
  const service = await load('');
  expect(service.snapshot()).toHaveLength(0);
  service.restore(new Uint8Array(0));
});

test('a restore() that throws names its replica', async () => {
  const service = await load(`export const snapshot = () => new Uint8Array(1);
    export function restore() { throw new Error('unknown format'); }`);
  expect(() => service.restore(new Uint8Array(1))).toThrow(
    /^restore\(\) of the service failed at g2\/1: Error: unknown format/,
  );
});
