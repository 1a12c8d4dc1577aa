/** The output of `tram-lab bench peers`. */
import { expect, test } from 'vitest';
import type { PeersResult, RoundsFigures, SystemResult } from '../../../src/bench/peers/peers.js';
import { advantagesOf, combine, inOneRound } from '../../../src/bench/peers/rounds.js';
import { formatPeers } from '../../../src/bench/peers/table.js';
import { measurement } from './measurement.js';

function figures(messagesPerSecond: number, latencyNs: number): RoundsFigures {
  const loaded = measurement(messagesPerSecond, 10 * latencyNs);
  const alone = measurement(100, latencyNs);
  return inOneRound({ messagesPerSecond, outstanding: 512, loaded, alone, tried: [] });
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
  const options = {
    ...{ only: ['redis', 'nats', 'etcd'] as const, seconds: 2, payloadBytes: 64 },
    ...{ rounds: 1, isSynced: false },
  };
  return { options, machine, systems, advantages: advantagesOf([systems]) };
}

test('each row has figures and the ratio to TRAM', () => {
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

test('several rounds are shown with their spread', () => {
  const slower: SystemResult = {
    ...redis,
    ...{ status: 'measured', one: figures(300_000, 230_000), eight: figures(300_000, 9_000) },
  };
  const rounds = [
    [tram, redis],
    [tram, slower],
    [tram, redis],
  ];
  const systems = combine(rounds);
  const text = formatPeers({ ...result([tram]), systems, advantages: advantagesOf(rounds) });
  const rows = text.split('\n').map((line) => line.split(/ {2,}/));
  expect(rows).toContainEqual([
    'Redis 7.0.15',
    '400 k/s (300 k/s to 400 k/s)',
    '512',
    '3.0 × (3.0 to 4.0)',
    '115 µs (115 µs to 230 µs)',
    '345 µs',
    '50 × (50 to 100)',
    'in brief',
  ]);
});

test('a missing system is shown with its install command, a failed one with the end of its log', () => {
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

test('synced messages are named as such, with the disk and a bare sync', () => {
  const plain = result([tram, redis]);
  const bare = {
    ...{ bytesPerSync: 64, writers: 1, syncsPerSecond: 8000, bytesPerSecond: 512_000 },
    ...{ latencyNsP50: 120_000, latencyNsP99: 250_000 },
  };
  const disk = { fileSystem: { kind: 'ext4', device: '/dev/vda' }, bare };
  const text = formatPeers({
    ...plain,
    options: { ...plain.options, isSynced: true, rounds: 3 },
    machine: { ...plain.machine, disk },
  }).replace(/\s+/g, ' ');
  expect(text).toContain('acknowledged after two of three have synced them to disk');
  expect(text).toContain('ext4 on /dev/vda; a bare write of 64 B with its fdatasync takes 120 µs');
  expect(text).toContain('medians of 3 rounds');
});
