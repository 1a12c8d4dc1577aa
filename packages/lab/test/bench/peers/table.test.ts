/** How far `tram-lab bench peers` goes up, and what it prints. */
import { expect, test } from 'vitest';
import { climb, type Figures } from '../../../src/bench/peers/climb.js';
import {
  advantagesOf,
  type PeersResult,
  type SystemResult,
} from '../../../src/bench/peers/peers.js';
import { formatPeers } from '../../../src/bench/peers/table.js';
import type { Load, Measurement } from '../../../src/bench/systems/system.js';

function measurement(messagesPerSecond: number, latencyNs: number): Measurement {
  return {
    ...{ messages: messagesPerSecond * 2, seconds: 2, unanswered: 0, coresUsed: 1 },
    ...{ latencyNsP50: latencyNs, latencyNsP90: 2 * latencyNs, latencyNsP99: 3 * latencyNs },
    ...{ latencyNsP999: 4 * latencyNs, latencyNsMax: 5 * latencyNs },
  };
}

function figures(messagesPerSecond: number, latencyNs: number): Figures {
  const loaded = measurement(messagesPerSecond, 10 * latencyNs);
  const alone = measurement(100, latencyNs);
  return { messagesPerSecond, outstanding: 512, loaded, alone, tried: [] };
}

const guarantee = { brief: 'in brief', full: 'in full' };
const tram: SystemResult = {
  ...{ id: 'tram', name: 'TRAM', version: '', guarantee, conditions: 'as it is' },
  ...{ status: 'measured', one: figures(1_200_000, 2_300), eight: figures(150_000, 18_000) },
};
const redis: SystemResult = {
  ...{ id: 'redis', name: 'Redis', version: '7.0.15', guarantee, conditions: 'as it is' },
  ...{ status: 'measured', one: figures(400_000, 115_000), eight: figures(300_000, 9_000) },
};
const nats: SystemResult = {
  ...{ id: 'nats', name: 'NATS', version: '', guarantee, conditions: '' },
  ...{ status: 'missing', install: 'apt-get install -y nats-server' },
};
const etcd: SystemResult = {
  ...{ id: 'etcd', name: 'etcd', version: '3.4.23', guarantee, conditions: '' },
  ...{ status: 'failed', reason: 'server etcd-0 ended', log: ['etcd-0: no room'] },
};

function result(systems: readonly SystemResult[]): PeersResult {
  const machine = {
    cores: 2,
    model: 'a processor',
    node: 'v20',
    loadAverage: 0.25,
    serversFolder: '/x',
  };
  const options = { only: ['redis', 'nats', 'etcd'], seconds: 2, payloadBytes: 64 } as const;
  return { options, machine, systems, advantages: advantagesOf(systems) };
}

test('figures stand beside TRAM, and the ratios say who is better', () => {
  const lines = formatPeers(result([tram, redis])).split('\n');
  const rows = lines.map((line) => line.split(/ {2,}/));
  expect(rows).toContainEqual(['TRAM', '1.20 M/s', '512', '2.3 µs', '6.9 µs', 'in brief']);
  expect(rows).toContainEqual([
    'Redis 7.0.15',
    '400 k/s',
    '512',
    '3.0 ×',
    '115 µs',
    '345 µs',
    '50 ×',
    'in brief',
  ]);
  expect(rows).toContainEqual([
    'Redis 7.0.15',
    '300 k/s',
    '512',
    '0.5 ×',
    '9.0 µs',
    '27.0 µs',
    '0.5 ×',
    'in brief',
  ]);
  expect(lines).toContain('  Redis  in full');
});

test('who is missing is named with its remedy, who failed with its last words', () => {
  const text = formatPeers(result([tram, nats, etcd]));
  expect(text).toContain('\nNATS is not installed: apt-get install -y nats-server\n');
  expect(text).toContain('\netcd 3.4.23 failed: server etcd-0 ended\n  etcd-0: no room\n');
});

test('without TRAM there are figures but no ratios', () => {
  const failed: SystemResult = { ...etcd, id: 'tram', name: 'TRAM' };
  expect(result([failed, redis]).advantages).toEqual({});
  expect(formatPeers(result([failed, redis]))).toMatch(/Redis 7\.0\.15 +400 k\/s +512 +115 µs/);
});

test('explanations are wrapped', () => {
  const wordy = { ...redis, guarantee: { brief: '', full: 'word '.repeat(100).trim() } };
  const explanation = formatPeers(result([tram, wordy]))
    .split('\n')
    .filter((line) => line.includes('word word'));
  expect(explanation.length).toBeGreaterThan(4);
  expect(Math.max(...explanation.map(({ length }) => length))).toBeLessThanOrEqual(100);
});

/** A system of which only the throughput at each number under way is known. */
function known(rates: Readonly<Record<number, number>>) {
  return {
    measure: async ({ outstanding }: Load) => measurement(rates[outstanding], outstanding * 1000),
  };
}

const OPTIONS = { sets: [{ low: 1, high: 0 }], payloadBytes: 64, seconds: 2, outstandingMax: 4096 };

test.each([
  ['stops where more brings nothing', { 1: 10, 8: 100, 64: 104, 512: 103, 4096: 500 }, 64, 104],
  ['takes the best', { 1: 10, 8: 50, 64: 100, 512: 90, 4096: 80 }, 64, 100],
  ['goes on while it grows', { 1: 10, 8: 50, 64: 100, 512: 200, 4096: 300 }, 4096, 300],
  ['is not put off by one bad step', { 1: 10, 8: 9, 64: 100, 512: 80, 4096: 150 }, 4096, 150],
])('the climb %s', async (_, rates: Record<number, number>, outstanding, messagesPerSecond) => {
  const seen: number[] = [];
  const found = await climb(known(rates), OPTIONS, (tried) => seen.push(tried));
  expect(found).toMatchObject({ outstanding, messagesPerSecond, alone: { latencyNsP50: 1000 } });
  expect(found.tried.map((tried) => tried.outstanding)).toEqual(seen);
});

test('a system that does not answer is not measured', async () => {
  const silent = { measure: async () => ({ ...measurement(10, 1), unanswered: 3 }) };
  await expect(climb(silent, OPTIONS, () => {})).rejects.toThrow('3 messages were never');
});
