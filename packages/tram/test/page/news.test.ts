/** What the page tells as news. */
import { expect, test } from 'vitest';
import { newsBetween } from '../../src/page/news.js';
import type { Shown, ShownGroup } from '../../src/page/wire.js';

/** A cluster whose groups have these leaders, with these ballots. */
function cluster(leaders: (string | null)[], more: object = {}): Shown {
  const groups = leaders.map((name, group) => {
    const [leader = null, ballot = null] = name?.split(' ') ?? [];
    return { group, leader: leader === null ? null : Number(leader), ballot } as ShownGroup;
  });
  const hosts = [0, 1].map((host) => ({ host, title: `h${host}`, state: 'up' }));
  return { state: 'running', groups, hosts, ...more } as unknown as Shown;
}

const texts = (before: Shown, after: Shown): string[] =>
  newsBetween(before, after).map(({ kind, text }) => `${kind}: ${text}`);

test('nothing is news if nothing has changed', () => {
  expect(texts(cluster(['0 1.0']), cluster(['0 1.0']))).toEqual([]);
});

test('leaders change, and groups lose theirs', () => {
  const before = cluster(['0 1.0', '0 1.0', '0 1.0', null]);
  const after = cluster(['1 2.1', null, '0 2.0', '2 3.2']);
  expect(texts(before, after)).toEqual([
    'bad: no leader in g1',
    'change: g0/1, g3/2 lead now',
    'change: g2/0 leads with a new ballot',
  ]);
});

test('hosts and the cluster change', () => {
  const hosts = [
    { host: 0, title: 'h0', state: 'down' },
    { host: 1, title: 'h1', state: 'starting' },
  ];
  expect(texts(cluster([]), cluster([], { hosts, state: 'stalled' }))).toEqual([
    'bad: host h0 is down',
    'change: host h1 is starting',
    expect.stringMatching(/^bad: the cluster is stalled/),
  ]);
  expect(texts(cluster([], { hosts }), cluster([]))).toEqual([
    'good: host h0 is up',
    'good: host h1 is up',
  ]);
});

test('many groups are one line', () => {
  const before = cluster(Array.from({ length: 20 }, () => '0 1.0'));
  const after = cluster(Array.from({ length: 20 }, () => '1 2.1'));
  expect(texts(before, after)).toEqual([
    'change: g0/1, g1/1, g2/1, g3/1, g4/1, g5/1, g6/1, g7/1 and 12 more lead now',
  ]);
});
