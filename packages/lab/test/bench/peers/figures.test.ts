/** Latency and throughput at saturation, of systems with a known throughput. */
import { expect, test } from 'vitest';
import { measureFigures } from '../../../src/bench/peers/figures.js';
import type { Load } from '../../../src/bench/systems/system.js';
import { measurement } from './measurement.js';

/** A system with the given throughput for each number of messages in flight. */
function known(rates: Readonly<Record<number, number>>) {
  return {
    measure: async ({ outstanding }: Load) => measurement(rates[outstanding], outstanding * 1000),
  };
}

const OPTIONS = { sets: [{ low: 1, high: 0 }], payloadBytes: 64, seconds: 2, outstandingMax: 4096 };

test.each([
  [
    'stops where throughput does not grow',
    { 1: 10, 8: 100, 64: 104, 512: 103, 4096: 500 },
    64,
    104,
  ],
  ['reports the best', { 1: 10, 8: 50, 64: 100, 512: 90, 4096: 80 }, 64, 100],
  ['continues while throughput grows', { 1: 10, 8: 50, 64: 100, 512: 200, 4096: 300 }, 4096, 300],
  ['tolerates one bad step', { 1: 10, 8: 9, 64: 100, 512: 80, 4096: 150 }, 4096, 150],
])(
  'the search for saturation %s',
  async (_, rates: Record<number, number>, outstanding, messagesPerSecond) => {
    const seen: number[] = [];
    const found = await measureFigures(known(rates), OPTIONS, (tried) => seen.push(tried));
    expect(found).toMatchObject({ outstanding, messagesPerSecond, alone: { latencyNsP50: 1000 } });
    expect(found.tried.map((tried) => tried.outstanding)).toEqual(seen);
  },
);

test('unanswered messages are an error', async () => {
  const silent = { measure: async () => ({ ...measurement(10, 1), unanswered: 3 }) };
  await expect(measureFigures(silent, OPTIONS, () => {})).rejects.toThrow('3 messages were never');
});
