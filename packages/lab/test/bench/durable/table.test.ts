/** The output of `tram-lab bench durable`. */
import { expect, test } from 'vitest';
import type { DurableResult } from '../../../src/bench/durable/durable.js';
import type { Costs } from '../../../src/bench/durable/loads.js';
import { formatDurable } from '../../../src/bench/durable/table.js';
import type { Spread } from '../../../src/bench/load/spread.js';

function spread(value: number): Spread {
  return { median: value, least: value / 2, greatest: 2 * value, rounds: 3 };
}

function costs(none: number, everySecond: number, always: number): Costs {
  return {
    figures: { none: spread(none), everySecond: spread(everySecond), always: spread(always) },
    everySecond: spread(everySecond / none),
    always: spread(always / none),
  };
}

const OPTIONS = { memory: 'threads', loads: ['mix'], rounds: 3, seconds: 1 } as const;
const MACHINE = { cores: 2, model: 'a processor', node: 'v20', loadAverage: 0.25 };
const DISK = { kind: 'ext4', device: '/dev/vda' };

function rowsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.trim().replaceAll('\u00a0', ' ').split(/ {2,}/));
}

test('a load has a row for latency, one for throughput, and one for the disk', () => {
  const bare = { latencyNsP50: spread(100_000), bytesPerSecond: spread(500e6) };
  const result: DurableResult = {
    ...{ options: OPTIONS, machine: MACHINE, disk: DISK },
    costs: {
      hosts: 3,
      loads: [
        {
          load: 'mix',
          latencyNsP50: costs(2000, 2000, 150_000),
          bareAlone: { bytesPerSync: 512, writers: 1, ...bare },
          barePerMessage: spread(1.5),
          messagesPerSecond: costs(1e6, 950_000, 600_000),
          journalBytesPerSecond: spread(250e6),
          bareLoaded: { bytesPerSync: 65_536, writers: 3, ...bare },
          shareOfDisk: spread(0.5),
        },
      ],
    },
  };
  const text = formatDurable(result);
  const rows = rowsOf(text);
  expect(rows).toContainEqual(
    ['mix', '2 µs', '2 µs', '1 (0.5 to 2)', '150 µs', '75 (37.5 to 150)', '100 µs'].concat(
      '1.5 (0.75 to 3)',
    ),
  );
  expect(rows).toContainEqual([
    'mix',
    '1 M/s',
    '950 k/s',
    '0.95 (0.475 to 1.9)',
    '600 k/s',
    '0.6 (0.3 to 1.2)',
  ]);
  expect(rows).toContainEqual(['mix', '250 MB/s', '500 MB/s', '0.5 (0.25 to 1)']);
  expect(text.replace(/\s+/g, ' ')).toContain('mix: 512 B by 1 writer, in flight 65,536 B by 3');
});

test('recoveries are columns', () => {
  const cost = { messages: 1e7, bytes: 1e9, emptySeconds: 0.5, readSeconds: 1 };
  const text = formatDurable({
    ...{ options: OPTIONS, machine: MACHINE, disk: DISK },
    recoveries: [
      { name: 'with snapshots', ...cost, recoverSeconds: 2, deliverSeconds: 4 },
      { name: 'without snapshots', ...cost, recoverSeconds: 10, deliverSeconds: 4 },
    ],
  });
  const rows = rowsOf(text);
  expect(rows).toContainEqual(['recovery', '2.00 s', '10.00 s']);
  expect(rows).toContainEqual(['of the files', '500 MB/s', '100 MB/s']);
  expect(rows).toContainEqual(['of the messages', '5 M/s', '1 M/s']);
});
