/** The table of `tram-lab bench machines --threads`. */
import { expect, test } from 'vitest';
import type { ThreadsResult } from '../../../src/bench/machines/threads.js';
import { formatThreads } from '../../../src/bench/machines/threads-table.js';

const spread = (median: number): ThreadsResult['figures'][number]['single'] => ({
  median,
  least: median / 2,
  greatest: median * 2,
  rounds: 3,
});

test('shows both rates, their ratio and the busy cores', () => {
  const text = formatThreads({
    options: { threads: 2, seconds: 1, rounds: 3 },
    machine: { cores: 2, model: 'a processor', node: '20', libfabric: '1.17', loadAverage: 0 },
    figures: [
      {
        machines: 1,
        isBusy: true,
        single: spread(40_000),
        several: spread(60_000),
        ratio: spread(1.5),
        coresUsed: { single: 1.25, several: 1.9 },
      },
    ],
  } as unknown as ThreadsResult);
  const [head, row] = text.replaceAll('\u00a0', ' ').split('\n');
  expect(head).toMatch(/^at saturation +1 thread +2 threads +ratio +busy cores$/);
  expect(row).toMatch(
    /^1 machine, 20 µs of work each +40 k\/s +60 k\/s +1\.5× \(0\.75× to 3\.0×\) +1\.25, 1\.9$/,
  );
});
