/** The estimate of memory is near to what the heap has, for many small keys and for a few large ones. */

import { expect, test } from 'vitest';
import { EngineTarget } from '../differential/engine-target.js';
import { usedBytes } from '../used-memory.js';

const STEPS = 30_000;
const SIZE = 5;

/** What each step does. @param step  its number */
const FILLS: Readonly<Record<string, (key: string, step: number) => string[]>> = {
  string: (key, step) => ['SET', key, `value ${step}`],
  'string that expires': (key, step) => ['SET', key, `value ${step}`, 'PX', '1000000'],
  'string of 500 bytes': (key, step) => ['SET', key, fresh(String(step).padStart(500))],
  bits: (key) => ['SETBIT', key, '100', '1'],
  hash: (key, step) => ['HSET', key, ...elements(step).flatMap((one) => [one, fresh(one)])],
  list: (key, step) => ['RPUSH', key, ...elements(step)],
  set: (key, step) => ['SADD', key, ...elements(step)],
  'sorted set': (key, step) => [
    'ZADD',
    key,
    ...elements(step).flatMap((one, i) => [String(i), one]),
  ],
  stream: (key, step) => [
    'XADD',
    key,
    `${step + 1}-0`,
    ...elements(step).flatMap((one) => [one, fresh(one)]),
  ],
};

/** A string of its own, as the parser makes them. */
function fresh(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

function elements(step: number): string[] {
  return Array.from({ length: SIZE }, (_, i) => fresh(`element ${step * SIZE + i}`));
}

function heapBytes(): Promise<number> {
  return usedBytes(({ heapUsed, arrayBuffers }) => heapUsed + arrayBuffers);
}

/** @returns the estimate, as a part of what the heap has more than before */
async function ratioOf(
  fill: (key: string, step: number) => string[],
  keys: number,
): Promise<number> {
  const engine = new EngineTarget();
  const before = await heapBytes();
  for (let step = 0; step < STEPS; step++) engine.reply(fill(fresh(`key:${step % keys}`), step));
  const used = (await heapBytes()) - before;
  // After the heap was measured: until then the engine has to stay.
  return engine.keyspace.memory / used;
}

test.each(Object.keys(FILLS))('many keys: %s', async (type) => {
  const ratio = await ratioOf(FILLS[type], STEPS);
  expect(ratio).toBeGreaterThan(0.75);
  expect(ratio).toBeLessThan(1.25);
});

/** A map of V8 doubles when it is full, so it can be half empty. */
test.each(['hash', 'list', 'set', 'sorted set', 'stream'])('large ones: %s', async (type) => {
  const ratio = await ratioOf(FILLS[type], 3);
  expect(ratio).toBeGreaterThan(0.7);
  expect(ratio).toBeLessThan(1.3);
});

test('what is deleted counts no more', () => {
  const engine = new EngineTarget();
  for (const [type, fill] of Object.entries(FILLS)) engine.reply(fill(type, 1));
  for (const type of Object.keys(FILLS)) engine.reply(['DEL', type]);
  expect(engine.keyspace.memory).toBe(0);
});
