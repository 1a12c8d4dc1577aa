/** A service as its replica calls it. */
import { expect, test } from 'vitest';
import { loadService } from '../../src/hosting/service.js';
import type { Application } from '../../src/protocol/edges.js';

function load(body: string): Promise<Application> {
  const source = `export const deliver = () => undefined; ${body}`;
  const href = `data:text/javascript,${encodeURIComponent(source)}`;
  return loadService(href, { group: 2, member: 1 }, 1);
}

test.each([
  ['text', "'state'", 'string'],
  ['nothing', 'undefined', 'undefined'],
  ['null', 'null', 'null'],
  ['an array', '[1]', 'object'],
  ['a promise', 'Promise.resolve(new Uint8Array(1))', 'a promise'],
])('a snapshot() that returns %s fails', async (_, value, what) => {
  const service = await load(`export const snapshot = () => ${value}, restore = () => undefined;`);
  expect(() => service.snapshot()).toThrow(
    `snapshot() must return a Uint8Array, and it returned ${what}`,
  );
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
