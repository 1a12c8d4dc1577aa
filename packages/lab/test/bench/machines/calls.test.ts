/** How many calls of the network a message takes, from the metrics of all hosts. */
import { expect, test } from 'vitest';
import { callsIn, callsPerMessage, differenceOf } from '../../../src/bench/machines/calls.js';

const METRICS = `# TYPE tram_network_calls_total counter
tram_network_calls_total{call="write"} 30
tram_network_calls_total{call="read"} 20
tram_network_calls_total{call="cork"} 8
tram_network_calls_total{call="wait"} 1
tram_network_calls_total{call="poll"} 900
`;

const calls = callsIn(METRICS);

test('calls are read from metrics', () => {
  expect(calls).toEqual({ write: 30, read: 20, cork: 8, wait: 1, poll: 900 });
  expect(differenceOf(calls, { ...calls, write: 10 })).toMatchObject({ write: 20, read: 0 });
});

test('messages are counted by what all replicas have delivered', () => {
  const before = { calls: callsIn(''), deliveries: 6 };
  const client = { calls: { ...calls, write: 4 }, messages: 4 };
  const { hosts, client: own } = callsPerMessage(before, { calls, deliveries: 66 }, 6, client);
  expect(hosts).toMatchObject({ write: 3, read: 2 });
  expect(own.write).toBe(1);
});
