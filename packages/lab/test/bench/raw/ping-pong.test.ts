/** Round trips of one word between two cores. The sides run built JavaScript. */
import { expect, test } from 'vitest';
import { until } from '../../../../tram/test/built.js';
import type * as PingPongModule from '../../../src/bench/raw/ping-pong.js';
import { benchFiles, children, expectNoLeftOvers } from '../left-overs.js';

const built = new URL('../../../dist/bench/raw/ping-pong.js', import.meta.url).href;
const { measurePingPong }: typeof PingPongModule = await import(built);

expectNoLeftOvers();

test.each(['threads', 'processes'] as const)('a round trip is measured on %s', async (memory) => {
  const { roundTripNsP50, roundTripNsMean } = await measurePingPong({ memory, seconds: 0.2 });
  expect(roundTripNsP50).toBeGreaterThan(0);
  expect(roundTripNsMean).toBeGreaterThan(0);
});

test.each([0, 1])('if side %i is killed, the other one ends', async (side) => {
  const childrenBefore = children();
  const run = measurePingPong({ memory: 'processes', seconds: 600 });
  const failure = expect(run).rejects.toThrow('ended before its result: SIGKILL');
  await until(() => children().length === childrenBefore.length + 2);
  // The file is removed once both sides have mapped it.
  await until(() => benchFiles().length === 0);
  const started = children().filter((pid) => !childrenBefore.includes(pid));
  process.kill(started[side], 'SIGKILL');
  await failure;
});
