import { expect, test } from 'vitest';
import { formatLink, LinkError, parseLink, type RunLink } from '../../src/sim/link.js';

const LINKS: Readonly<Record<string, RunLink>> = {
  'a drawn run': { seed: 7, options: {}, deeds: [], events: 0 },
  'a drawn run with all options': {
    seed: 2 ** 52 - 1,
    mutation: 'H2',
    options: {
      groups: 3,
      replicas: 5,
      tree: [-1, 0, 0],
      clients: 4,
      messages: 100,
      payloadBytes: 0,
      ringBytes: 2048,
      memory: 'machines',
      order: 'strict',
      durability: 'always',
      ticks: false,
      faults: ['crash', 'slow-link'],
      triggers: ['log truncated', 'left behind'],
    },
    deeds: [],
    events: 12,
  },
  'a run without faults': { seed: 1, options: { faults: [] }, deeds: [], events: 0 },
  'a cluster of the user': {
    seed: 1,
    cluster: 'groups=2 tree=-1,0 clients=2',
    options: {},
    deeds: [
      { afterEvents: 77, command: 'multicast c0 to 0,1 "a & b # 100 % = ü"' },
      { afterEvents: 77, command: 'pause 0/0 before a write to 0/2' },
      { afterEvents: 90, command: 'slow 0/0 -> 0/1 by 200us' },
    ],
    events: 200,
  },
};

test.each(Object.entries(LINKS))('%s comes back from its text', (_, link) => {
  expect(parseLink(formatLink(link))).toEqual(link);
});

test.each([
  'seed=x',
  'seed=-1',
  'events=1.5',
  'groups=65',
  'memory=paper',
  'faults=crash,boom',
  'triggers=never',
  'colour=red',
  '__proto__=1',
  'do=crash 0/0',
  'do=5+crash+0/0&do=4+crash+0/1',
])('"%s" is no run', (text) => {
  expect(() => parseLink(text)).toThrow(LinkError);
});
