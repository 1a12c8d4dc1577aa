/** `tram-lab bench strict` on threads, as a command, and its table. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectDirectory } from '../../../../tram/test/built.js';
import type { Comparison } from '../../../src/bench/strict/pairs.js';
import type { StrictResult } from '../../../src/bench/strict/strict.js';
import { formatStrict } from '../../../src/bench/strict/table.js';

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');

test('measures both orders under every load', async () => {
  const args = ['bench', 'strict', '--only', 'loads', '--pairs', '1', '--seconds', '0.2', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args]);
  const { loads, changes } = JSON.parse(stdout) as StrictResult;
  expect(loads.map(({ load }) => load)).toEqual(['1 group', '2 groups', '8 groups', 'mix']);
  for (const { latencyNsP50, messagesPerSecond } of loads) {
    for (const { multicast, strict, ratio } of [latencyNsP50, messagesPerSecond]) {
      expect(multicast.median).toBeGreaterThan(0);
      expect(ratio).toMatchObject({ median: strict.median / multicast.median, rounds: 1 });
    }
  }
  expect(changes).toEqual([]);
});

function comparison(multicast: number, strict: number): Comparison {
  const spread = (value: number) => ({
    median: value,
    least: value / 2,
    greatest: 2 * value,
    rounds: 5,
  });
  return {
    multicast: spread(multicast),
    strict: spread(strict),
    ratio: spread(strict / multicast),
  };
}

test('the table has the medians of both, the ratio and its spread', () => {
  const result: StrictResult = {
    options: { memory: 'machines', pairs: 5, seconds: 1 },
    machine: { cores: 2, model: 'a processor', node: 'v20', loadAverage: 0.25 },
    loads: [
      {
        load: 'mix',
        latencyNsP50: comparison(2000, 2500),
        messagesPerSecond: comparison(1e6, 900_000),
      },
    ],
    changes: [{ cause: 'kill', gapMs: comparison(20, 22), delayMs: comparison(40, 50) }],
  };
  const text = formatStrict(result);
  const rows = text.split('\n').map((line) => line.trim().replaceAll('\u00a0', ' ').split(/ {2,}/));
  expect(rows).toContainEqual(['mix', '2 µs', '2.5 µs', '1.250', '0.63 to 2.50']);
  expect(rows).toContainEqual(['mix', '1 M/s', '900 k/s', '0.900', '0.45 to 1.80']);
  expect(rows).toContainEqual([
    'by SIGKILL, no answer for',
    '20 ms',
    '22 ms',
    '1.100',
    '0.55 to 2.20',
  ]);
  expect(rows).toContainEqual([
    'by SIGKILL, longest delay',
    '40 ms',
    '50 ms',
    '1.250',
    '0.63 to 2.50',
  ]);
  expect(text).toContain('Medians of 5 pairs');
});
