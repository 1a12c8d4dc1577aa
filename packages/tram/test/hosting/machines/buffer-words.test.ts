/** How much may be under way between two hosts: only what they have to send each other. */
import { expect, test } from 'vitest';
import { ClusterContext } from '../../../src/hosting/cluster-context.js';
import { bufferWordsOf } from '../../../src/hosting/machines/buffer-words.js';
import { Layout } from '../../../src/protocol/layout.js';
import { resolveAnything } from '../../config/given.js';

const HOSTS = ['alpha', 'beta', 'gamma'].map((name, host) => ({
  name,
  address: `10.0.0.${host + 1}`,
  port: 7411,
}));

function sizes(threads: number): {
  between: (self: number, other: number) => { out: number; in: number };
  layout: Layout;
} {
  const config = resolveAnything({
    groups: 8,
    memory: 'machines',
    hosts: HOSTS,
    secret: 's',
    leaders: 'together',
    threads,
  });
  const layout = new Layout(config.sizes);
  const map = ClusterContext.mapOnMachines(config, new Uint8Array(32));
  return { between: (self, other) => bufferWordsOf(layout, map, self, other), layout };
}

test('between machines with one thread: logs and feeds of all groups', () => {
  const { between, layout } = sizes(1);
  const { logWords, feedWords } = layout;
  const small = between(0, 1).in - 8 * logWords;
  expect(small).toBe(2 ** 16);
  expect(between(0, 1).out).toBe(8 * (2 * logWords + 2 * feedWords) + small);
});

test('between threads: logs of the groups that both run, and feeds of those that the other runs', () => {
  const { between, layout } = sizes(4);
  const { logWords, feedWords } = layout;
  const small = 2 ** 16;
  // Threads with the same number, of two machines.
  expect(between(1, 5).out).toBe(4 * logWords + 4 * feedWords + small);
  expect(between(1, 5).in).toBe(2 * logWords + small);
  // Of one machine, and with another number.
  for (const other of [0, 6]) {
    expect(between(1, other).out).toBe(4 * feedWords + small);
    expect(between(1, other).in).toBe(small);
  }
});
