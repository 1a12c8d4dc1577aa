/** How the rounds of `bench peers` are combined. */
import { expect, test } from 'vitest';
import type { RoundsFigures, SystemResult } from '../../../src/bench/peers/peers.js';
import { advantagesOf, combine, inOneRound } from '../../../src/bench/peers/rounds.js';
import { measurement } from './measurement.js';

function figures(messagesPerSecond: number, latencyNs: number): RoundsFigures {
  const loaded = measurement(messagesPerSecond, latencyNs);
  const alone = measurement(100, latencyNs);
  return inOneRound({ messagesPerSecond, outstanding: 8, loaded, alone, tried: [] });
}

function measured(id: 'tram' | 'etcd', messagesPerSecond: number, latencyNs: number): SystemResult {
  const guarantee = { brief: '', full: '' };
  const both = figures(messagesPerSecond, latencyNs);
  const about = { id, name: id, version: '', guarantee, conditions: '' };
  return { ...about, status: 'measured', one: both, eight: both };
}

test('throughput, latency and ratios are medians, each by itself', () => {
  const rounds = [
    [measured('tram', 100, 30), measured('etcd', 10, 60)],
    [measured('tram', 300, 10), measured('etcd', 10, 50)],
    [measured('tram', 200, 20), measured('etcd', 50, 20)],
  ];
  const [tram, etcd] = combine(rounds);
  expect(tram).toMatchObject({ one: { messagesPerSecond: 200, alone: { latencyNsP50: 20 } } });
  expect(etcd).toMatchObject({ one: { messagesPerSecond: 10, alone: { latencyNsP50: 50 } } });
  expect(tram).toMatchObject({
    one: { spread: { messagesPerSecond: { median: 200, least: 100, greatest: 300, rounds: 3 } } },
  });
  // Of 10, 30 and 4; of 2, 5 and 1.
  expect(advantagesOf(rounds)['etcd'].one).toEqual({
    throughput: { median: 10, least: 4, greatest: 30, rounds: 3 },
    latencyP50: { median: 2, least: 1, greatest: 5, rounds: 3 },
  });
});

test('a system that fails in one round has failed', () => {
  const { id, name, version, guarantee, conditions } = measured('etcd', 1, 1);
  const about = { id, name, version, guarantee, conditions };
  const failed: SystemResult = { ...about, status: 'failed', reason: 'no room', log: [] };
  const rounds = [
    [measured('tram', 1, 1), measured('etcd', 1, 1)],
    [measured('tram', 1, 1), failed],
  ];
  expect(combine(rounds)[1]).toBe(failed);
  expect(advantagesOf(rounds)).toEqual({});
});
