/** The medians of several rounds of `tram-lab bench machines`, and its output. */
import { expect, test } from 'vitest';
import type { CallsPerMessage } from '../../../src/bench/machines/calls.js';
import {
  type MachinesResult,
  mediansOf,
  type Round,
} from '../../../src/bench/machines/machines.js';
import { formatMachines } from '../../../src/bench/machines/table.js';
import type { BareFabricFigures } from '../../../src/bench/raw/bare-fabric.js';

function bare(landedUs: number): BareFabricFigures {
  return {
    ...{ landedUs, confirmedUs: landedUs, landedPerSecond: 4e6 / landedUs },
    ...{ fourExtentsUs: landedUs, fourWritesUs: landedUs },
  };
}

function callsOf(count: number): CallsPerMessage {
  const calls = { write: count, read: count / 2, cork: count / 4, wait: 0, poll: 40 };
  return { hosts: calls, client: calls };
}

function round(factor: number, outstanding = 128): Round {
  return {
    bare: { spinning: bare(20 * factor), waiting: bare(50 * factor) },
    socketNsP50: 40_000 * factor,
    figures: [1, 8].map((destinations) => ({
      destinations,
      latencyNsP50: 100_000 * destinations * factor,
      messagesPerSecond: 300_000 / destinations / factor,
      outstanding,
      calls: { alone: callsOf(6 * factor), loaded: callsOf(0.5) },
    })),
  };
}

const rounds = [round(1.5), round(1), round(0.1, 512)];

const result: MachinesResult = {
  options: { seconds: 1, rounds: 3 },
  machine: { cores: 2, model: 'a processor', node: 'v20', libfabric: '1.17', loadAverage: 0.25 },
  cluster: { groups: 8, replicas: 3, hosts: 3, payloadBytes: 64 },
  ...mediansOf(rounds),
  changes: {
    count: 21,
    changeMs: { mean: 2.5, worst: 4.25 },
    gapMs: { mean: 3, worst: 12.5 },
    delayMs: { mean: 3.5, worst: 13 },
    usualMs: 0.4,
  },
  rounds,
};

/** Rows as cells; no line of the table breaks between a number and its unit. */
function rowsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.trim().replaceAll('\u00a0', ' ').split(/ {2,}/));
}

test('the result has the medians of the rounds', () => {
  expect(mediansOf(rounds)).toEqual({
    bare: { spinningNs: 20_000, waitingNs: 50_000, writesPerSecond: 200_000 },
    socketNsP50: 40_000,
    figures: round(1).figures,
  });
});

test('each row has a figure and the ratio to the bare write', () => {
  const rows = rowsOf(formatMachines(result));
  for (const row of [
    ['bare write, acknowledged; the target spins', '20 µs', '1.0×'],
    ['bare write, acknowledged; the target waits', '50 µs', '2.5×'],
    ['ping-pong through node:net', '40 µs', '2.0×'],
    ['TRAM to 1 group', '100 µs', '5.0×'],
    ['TRAM to 8 groups', '800 µs', '40×'],
    ['bare writes, 64 in flight', '200 k/s', '1.0×'],
    ['TRAM to 1 group, 128 in flight', '300 k/s', '1.5×'],
    ['TRAM to 8 groups, 128 in flight', '37.5 k/s', '0.19×'],
    ['TRAM to 8 groups, 1 in flight', '9 + 9', '3'],
    ['TRAM to 8 groups, 128 in flight', '0.75 + 0.75', '0.25'],
    ['from the request until the new leader leads', '2.5 ms', '4.25 ms'],
    ['longest time between two answers', '3 ms', '12.5 ms'],
  ]) {
    expect(rows).toContainEqual(row);
  }
});

test('the output states the conditions', () => {
  const unwrapped = (shown: MachinesResult): string => formatMachines(shown).replace(/\s+/g, ' ');
  const text = unwrapped(result);
  expect(text).toContain('8 groups of 3 on 3 hosts, 64 B');
  expect(text).toContain('2 cores of a processor, Node v20, libfabric 1.17');
  expect(text).toContain('over its loopback');
  const running = unwrapped({
    ...result,
    options: { ...result.options, config: 'cluster.yaml' },
  });
  expect(running).toContain('the cluster is that of cluster.yaml');
});
