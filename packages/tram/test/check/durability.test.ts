/** Histories across power cuts: what an era may undo, and what every other property means then. */

import { describe, expect, test } from 'vitest';
import type { TraceEvent } from '../../src/check/events.js';
import type { Verdict } from '../../src/check/judge.js';
import type { PropertyVerdict } from '../../src/check/properties.js';
import {
  answered,
  at,
  clientStart,
  deliver,
  end,
  era,
  groups,
  judgeEvents,
  multicast,
  opened,
  recover,
  restart,
  restore,
  strict,
  tree,
  witnesses,
} from './events.js';

const durabilityOf = ({ properties }: Verdict) =>
  properties.find(({ property }) => property === 'durability') as PropertyVerdict;

/** Two groups of one replica. Both deliver a and b; only the replies to a were received. */
const firstEra: TraceEvent[] = [
  tree([-1, 0], 1, 1),
  era(1),
  multicast('a', [0, 1]),
  multicast('b', [0, 1]),
  ...deliver('0/0', 'a', 'b'),
  ...deliver('1/0', 'a', 'b'),
  answered('a', 0),
  answered('a', 1),
];

describe('durability', () => {
  test('what nobody was told may be undone', () => {
    const verdict = judgeEvents(
      firstEra,
      era(2),
      recover('0/0', 'a'),
      recover('1/0', 'a'),
      multicast('c', [0, 1], 'c2'),
      deliver('0/0', 'c'),
      deliver('1/0', 'c'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({});
    expect(verdict.outcome).toBe('holds');
    expect(verdict.counts.eras).toBe(2);
  });

  test('what the trace of the earlier era has lost is known from the recovery', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      era(1),
      multicast('a', [0, 1]),
      answered('a', 0),
      era(2),
      recover('0/0', 'a'),
      recover('1/0', 'a'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('an answered message is lost everywhere', () => {
    const verdict = judgeEvents(firstEra, era(2), recover('0/0'), recover('1/0'), end());
    expect(witnesses(verdict)).toEqual({
      durability: 'c1 received the reply of group 0 to a, but in the end group 0 does not have a',
    });
    expect(verdict.outcome).toBe('violated');
  });

  test('an answered message is lost at a destination that had not answered', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      era(1),
      multicast('a', [0, 1]),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2),
      recover('0/0', 'a'),
      recover('1/0'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-agreement': 'a was delivered at 0/0, but never at 1/0',
      durability: 'c1 received the reply of group 0 to a, but in the end group 1 does not have a',
    });
  });

  test('everySecond may lose an answered message, but not a part of it', () => {
    const cut = (durability: 'everySecond' | 'always', ...kept: string[]) =>
      judgeEvents(
        firstEra.map((event) => (event.event === 'era' ? era(1, durability) : event)),
        era(2, durability),
        recover('0/0', ...kept),
        recover('1/0'),
        end(),
      );
    expect(cut('everySecond').outcome).toBe('holds');
    expect(cut('always').outcome).toBe('violated');
    const half = cut('everySecond', 'a');
    expect(witnesses(half).durability).toBe(
      'after a power cut, group 0 has a, but group 1 does not',
    );
  });

  test('each era keeps its own promise', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      era(1, 'everySecond'),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2, 'always'),
      recover('0/0'),
      recover('1/0'),
      multicast('b', [1], 'c2'),
      deliver('1/0', 'b'),
      answered('b', 1),
      era(3, 'everySecond'),
      recover('0/0'),
      recover('1/0'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      durability: 'c2 received the reply of group 1 to b, but in the end group 1 does not have b',
    });
  });

  test('a reply has shown a message before it that was undone', () => {
    const verdict = judgeEvents(
      groups(1),
      era(1),
      multicast('x', [0], 'c1', 0),
      multicast('m', [0], 'c2', 0),
      deliver('0/0', 'x', 'm'),
      answered('m', 0),
      era(2),
      recover('0/0', 'm'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      durability:
        'delivery 1 of group 0 was x when c2 received its reply to m, but after a power cut it is m at 0/0',
    });
  });

  test('a message may move forward in the order if its group has not replied to it', () => {
    // The entry group had it durable, and group 1 lost what it had delivered before.
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      era(1),
      multicast('x', [1], 'c1'),
      multicast('m', [0, 1], 'c2'),
      deliver('0/0', 'm'),
      deliver('1/0', 'x', 'm'),
      answered('m', 0),
      era(2),
      recover('0/0', 'm'),
      recover('1/0', 'm'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a message may move forward to a place that a snapshot of the earlier era covered', () => {
    const verdict = judgeEvents(
      groups(3),
      era(1),
      multicast('x', [0], 'c1'),
      multicast('m', [0], 'c2'),
      deliver('0/0', 'x', 'm'),
      restart('0/1'),
      restore('0/1', '0/0', 1),
      deliver('0/1', 'm'),
      era(2),
      recover('0/0', 'm'),
      recover('0/1', 'm'),
      recover('0/2', 'm'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({});
  });

  test('what a second power cut undoes is judged as well', () => {
    const verdict = judgeEvents(
      firstEra,
      era(2),
      recover('0/0', 'a', 'b'),
      recover('1/0', 'a', 'b'),
      era(3),
      recover('0/0'),
      recover('1/0'),
      end(),
    );
    expect(Object.keys(witnesses(verdict))).toEqual(['durability']);
  });

  test('a recovery that was cut short does not count', () => {
    const verdict = judgeEvents(
      firstEra,
      era(2),
      // It would have recovered less, and was not opened.
      restart('0/0'),
      recover('1/0'),
      era(3),
      recover('0/0', 'a', 'b'),
      recover('1/0', 'a', 'b'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a member that comes late continues from a snapshot of the new era', () => {
    const cut = (count: number) =>
      judgeEvents(
        groups(3),
        era(1),
        multicast('a', [0]),
        deliver('0/0', 'a'),
        deliver('0/1', 'a'),
        deliver('0/2', 'a'),
        era(2),
        recover('0/0', 'a'),
        recover('0/1', 'a'),
        multicast('b', [0], 'c2'),
        answered('b', 0),
        deliver('0/0', 'b'),
        deliver('0/1', 'b'),
        restart('0/2'),
        restore('0/2', '0/0', count),
        end(),
      );
    expect(cut(2).outcome).toBe('holds');
    expect(witnesses(cut(1))).toEqual({
      validity: 'b was multicast by c2, which did not crash, but 0/2 never delivered it',
      'uniform-agreement': 'b was delivered at 0/0, but never at 0/2',
    });
  });

  test('a recovery continues from a snapshot', () => {
    const verdict = judgeEvents(
      groups(1),
      era(1),
      multicast('a', [0]),
      multicast('b', [0]),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2),
      restart('0/0'),
      restore('0/0', '0/0', 1),
      deliver('0/0', 'b'),
      opened('0/0'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('is unknown unless the run was drained, and with always without replies', () => {
    expect(durabilityOf(judgeEvents(firstEra, end(false)))).toMatchObject({
      outcome: 'unknown',
      reason: 'the history does not end with "quiescent": true',
    });
    const silent = firstEra.filter(({ event }) => event !== 'answered');
    expect(durabilityOf(judgeEvents(silent, end()))).toMatchObject({
      outcome: 'unknown',
      reason: 'the history has no "answered" events',
    });
    const everySecond = silent.map((event) =>
      event.event === 'era' ? era(1, 'everySecond') : event,
    );
    expect(durabilityOf(judgeEvents(everySecond, end())).outcome).toBe('holds');
  });

  test('is not promised without an era, or with durability none', () => {
    for (const eras of [[], [era(1, 'none')]]) {
      const verdict = judgeEvents(groups(1), eras, multicast('a', [0]), deliver('0/0', 'a'), end());
      expect(durabilityOf(verdict)).toEqual({ property: 'durability', outcome: 'not-promised' });
      expect(verdict.outcome).toBe('holds');
    }
  });
});

describe('other properties across a power cut', () => {
  test('clients and replicas of earlier eras have ended', () => {
    // c1 is owed nothing any more, and 0/1 never came back.
    const verdict = judgeEvents(
      groups(2),
      era(1, 'everySecond'),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      era(2, 'everySecond'),
      recover('0/0'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('clients of the last era are owed their messages', () => {
    const verdict = judgeEvents(
      groups(1),
      era(1, 'everySecond'),
      era(2, 'everySecond'),
      recover('0/0'),
      multicast('a', [0]),
      end(),
    );
    expect(Object.keys(witnesses(verdict))).toEqual(['validity']);
  });

  test('members that open an era with different sequences', () => {
    const verdict = judgeEvents(
      groups(2),
      era(1),
      multicast('a', [0]),
      multicast('b', [0], 'c2'),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2),
      recover('0/0', 'a', 'b'),
      recover('0/1', 'b', 'a'),
      end(),
    );
    expect(witnesses(verdict)['uniform-prefix-order']).toBe(
      'delivery 1 of group 0 is a at 0/0, but b at 0/1',
    );
  });

  test('members that disagreed on what was undone', () => {
    const verdict = judgeEvents(
      groups(2),
      era(1, 'everySecond'),
      multicast('a', [0]),
      multicast('b', [0], 'c2'),
      deliver('0/0', 'a'),
      deliver('0/1', 'b'),
      era(2, 'everySecond'),
      recover('0/0'),
      recover('0/1'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-prefix-order': 'delivery 1 of group 0 is a at 0/0, but b at 0/1',
    });
  });

  test('a recovery delivers a message twice', () => {
    const verdict = judgeEvents(
      groups(1),
      era(1),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2),
      recover('0/0', 'a', 'a'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({ 'uniform-integrity': 'a was delivered twice at 0/0' });
  });

  test('deliveries that were undone constrain no order', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      era(1, 'everySecond'),
      multicast('a', [0, 1], 'c1'),
      multicast('b', [0, 1], 'c2'),
      deliver('0/0', 'a', 'b'),
      deliver('1/0', 'a', 'b'),
      era(2, 'everySecond'),
      recover('0/0', 'b'),
      recover('1/0', 'b'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a snapshot that covers more than the history has', () => {
    const verdict = judgeEvents(
      groups(1),
      era(1),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      answered('a', 0),
      era(2),
      restart('0/0'),
      restore('0/0', '0/0', 2),
      opened('0/0'),
      end(),
    );
    expect(witnesses(verdict)['uniform-integrity']).toBe(
      '0/0 installed a snapshot of 2 deliveries, but the history has only 1 of group 0',
    );
  });

  test('real-time order holds across eras', () => {
    const cut = (...recovered: string[]) =>
      judgeEvents(
        strict(tree([-1, 0, 0], 1, 1, 1)),
        era(1),
        at(1, multicast('m', [1, 2])),
        deliver('1/0', 'm'),
        at(2, answered('m', 1)),
        era(2),
        recover('0/0'),
        recover('1/0', 'm'),
        recover('2/0', ...recovered),
        at(3, multicast('late', [2], 'c2')),
        deliver('2/0', 'late'),
        deliver('2/0', ...(recovered.length === 0 ? ['m'] : [])),
        end(),
      );
    expect(cut('m').outcome).toBe('holds');
    expect(Object.keys(witnesses(cut()))).toEqual(['real-time-order']);
  });
});

describe('a directory has all eras first', () => {
  const start = [groups(1), era(3), era(7)];
  const session = (client: string, number: number): TraceEvent => ({
    event: 'client-start',
    client,
    clock: 'one',
    era: number,
  });

  test('so clients and restarts name theirs', () => {
    const verdict = judgeEvents(
      start,
      session('c1', 3),
      multicast('a', [0]),
      session('c2', 7),
      multicast('b', [0], 'c2'),
      deliver('0/0', 'a'),
      { event: 'restart', replica: '0/0', era: 7 },
      opened('0/0'),
      deliver('0/0', 'b'),
      answered('b', 0),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  const cases: [string, TraceEvent[], string][] = [
    ['an era that has not begun', [session('c1', 4)], 'era 4 has not begun'],
    ['eras out of order', [era(5)], 'era 5 begins after era 7'],
    [
      'a replica that goes back',
      [
        { event: 'restart', replica: '0/0', era: 7 },
        { event: 'restart', replica: '0/0', era: 3 },
      ],
      'replica "0/0" restarts in an era that it has left',
    ],
  ];
  test.each(cases)('refuses %s', (_, events, reason) => {
    expect(() => judgeEvents(start, events)).toThrow(reason);
  });

  test('refuses clients before the first era', () => {
    expect(() => judgeEvents(groups(1), clientStart('c1', 'one'), era(1))).toThrow(
      'clients occur before the first era',
    );
  });
});
