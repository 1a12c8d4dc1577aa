/** For every property: a planted history that it alone rejects, and a good twin that holds. */

import { describe, expect, test } from 'vitest';
import type { TraceEvent } from '../../src/check/events.js';
import { History } from '../../src/check/history.js';
import { judge, type Verdict } from '../../src/check/judge.js';
import type { PropertyVerdict } from '../../src/check/properties.js';
import {
  answered,
  at,
  clientCrash,
  clientStart,
  crash,
  deliver,
  deliverAll,
  end,
  groups,
  judgeEvents,
  multicast,
  restart,
  restore,
  strict,
  touch,
  tree,
  witnesses,
} from './events.js';

describe('validity', () => {
  test('a message of a live client that nobody delivers', () => {
    const verdict = judgeEvents(groups(3), multicast('a', [0]), end());
    expect(witnesses(verdict)).toEqual({
      validity: 'a was multicast by c1, which did not crash, but 0/0 never delivered it',
    });
    expect(verdict.outcome).toBe('violated');
  });

  test('holds when every live replica has it', () => {
    const verdict = judgeEvents(
      groups(3),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      deliver('0/2', 'a'),
      crash('0/1'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a client that crashed is owed nothing', () => {
    const verdict = judgeEvents(groups(3), multicast('a', [0]), clientCrash('c1'), end());
    expect(verdict.outcome).toBe('holds');
  });

  test('is unknown, like agreement, unless the run was drained', () => {
    for (const events of [[], [end(false)]]) {
      const verdict = judgeEvents(groups(3), multicast('a', [0]), deliver('0/0', 'a'), events);
      expect(verdict.outcome).toBe('unknown');
      expect(verdict.properties.filter(({ outcome }) => outcome === 'unknown')).toEqual([
        expect.objectContaining({ property: 'validity' }),
        expect.objectContaining({ property: 'uniform-agreement' }),
      ]);
    }
  });
});

describe('uniform agreement', () => {
  test('a replica delivers, crashes, and the others never do', () => {
    const verdict = judgeEvents(
      groups(3),
      multicast('a', [0]),
      deliver('0/0', 'a'),
      crash('0/0'),
      clientCrash('c1'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-agreement': 'a was delivered at 0/0, but never at 0/1',
    });
  });

  test('one destination delivers and the other does not', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      multicast('a', [0, 1]),
      deliver('0/0', 'a'),
      clientCrash('c1'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-agreement': 'a was delivered at 0/0, but never at 1/0',
    });
  });

  test('holds when all of them do', () => {
    const verdict = judgeEvents(
      groups(3),
      multicast('a', [0]),
      deliverAll(0, 3, 'a'),
      crash('0/0'),
      clientCrash('c1'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });
});

describe('uniform integrity', () => {
  test('the same message twice at one replica', () => {
    const verdict = judgeEvents(
      groups(2),
      multicast('a', [0]),
      multicast('b', [0]),
      deliver('0/0', 'a', 'b'),
      deliver('0/1', 'a', 'b', 'a'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({ 'uniform-integrity': 'a was delivered twice at 0/1' });
  });

  test('a message that nobody multicast', () => {
    const verdict = judgeEvents(groups(1), deliver('0/0', 'ghost'), end());
    expect(witnesses(verdict)).toEqual({
      'uniform-integrity': 'ghost was delivered at 0/0, but never multicast',
    });
  });

  test('a delivery before its multicast', () => {
    const verdict = judgeEvents(groups(1), deliver('0/0', 'a'), multicast('a', [0]), end());
    expect(witnesses(verdict)).toEqual({
      'uniform-integrity': 'a was delivered at 0/0 before it was multicast',
    });
  });

  test('a group that is not a destination', () => {
    const verdict = judgeEvents(
      tree([-1, 0, 0], 1, 1, 1),
      multicast('a', [1, 2]),
      deliver('0/0', 'a'),
      deliver('1/0', 'a'),
      deliver('2/0', 'a'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-integrity': 'a was delivered at 0/0, but is addressed to groups 1, 2',
    });
  });

  test('holds for one delivery a replica', () => {
    const verdict = judgeEvents(groups(3), multicast('a', [0]), deliverAll(0, 3, 'a'), end());
    expect(verdict.outcome).toBe('holds');
  });
});

describe('uniform prefix order', () => {
  const abc = [multicast('a', [0], 'c1'), multicast('b', [0], 'c2'), multicast('c', [0], 'c3')];

  test('within a group: different messages, no common one, hence no cycle', () => {
    const verdict = judgeEvents(
      groups(3),
      abc,
      deliver('0/1', 'a', 'b'),
      deliver('0/2', 'a', 'c'),
      end(false),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-prefix-order': 'delivery 2 of group 0 is b at 0/1, but c at 0/2',
    });
  });

  test('what a crashed replica delivered counts', () => {
    const verdict = judgeEvents(
      groups(3),
      abc,
      deliver('0/0', 'b'),
      crash('0/0'),
      deliver('0/1', 'a'),
      deliver('0/2', 'a'),
      end(false),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-prefix-order': 'delivery 1 of group 0 is b at 0/0, but a at 0/1',
    });
  });

  test('across groups: of the messages to both, each has one that the other lacks', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      multicast('x', [0], 'c3'),
      multicast('a', [0, 1], 'c1'),
      multicast('b', [0, 1], 'c2'),
      deliver('0/0', 'x', 'a'),
      deliver('1/0', 'b'),
      end(false),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-prefix-order':
        'message 1 addressed to both group 0 and group 1 is a at 0/0, but b at 1/0',
    });
    expect(verdict.properties[3]).toMatchObject({
      violation: { groups: [0, 1], index: 0, one: { message: 'a' }, other: { message: 'b' } },
    });
  });

  test('holds for prefixes, with messages in between that only one group gets', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 3, 1),
      multicast('x', [0], 'c3'),
      multicast('a', [0, 1], 'c1'),
      multicast('y', [1], 'c3'),
      multicast('b', [0, 1], 'c2'),
      deliver('0/0', 'x', 'a', 'b'),
      deliver('0/1', 'x', 'a'),
      deliver('1/0', 'y', 'a'),
      end(false),
    );
    expect(witnesses(verdict)).toEqual({});
  });
});

describe('uniform acyclic order', () => {
  const three = [
    tree([-1, 0, 0], 1, 1, 1),
    multicast('a', [0, 2], 'c1'),
    multicast('b', [0, 1], 'c2'),
    multicast('c', [1, 2], 'c3'),
  ];

  test('three groups, each pair of which agrees', () => {
    const verdict = judgeEvents(
      three,
      deliver('0/0', 'a', 'b'),
      deliver('1/0', 'b', 'c'),
      deliver('2/0', 'c', 'a'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-acyclic-order': 'a < b at 0/0, b < c at 1/0, c < a at 2/0: a cycle',
    });
  });

  test('holds when the third agrees too', () => {
    const verdict = judgeEvents(
      three,
      deliver('0/0', 'a', 'b'),
      deliver('1/0', 'b', 'c'),
      deliver('2/0', 'a', 'c'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('two messages in opposite order: the shortest cycle among longer ones', () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      ids.map((id, i) => multicast(id, [0, 1], `c${i}`)),
      deliver('0/0', ...ids),
      deliver('1/0', 'b', 'c', 'd', 'e', 'f', 'a'),
      end(),
    );
    expect(witnesses(verdict)['uniform-acyclic-order']).toBe('a < b at 0/0, b < a at 1/0: a cycle');
    expect(Object.keys(witnesses(verdict))).toEqual([
      'uniform-prefix-order',
      'uniform-acyclic-order',
    ]);
  });

  test('a cycle of three is preferred to the cycle of four that is met first', () => {
    const verdict = judgeEvents(
      tree([-1, 0, 0, 0, 0, 0, 0], 1, 1, 1, 1, 1, 1, 1),
      // Groups 0 to 3 close p < q < r < s < p; groups 4 to 6 close x < y < z < x behind it.
      multicast('p', [3, 0], 'c1'),
      multicast('q', [0, 1], 'c2'),
      multicast('r', [1, 2], 'c3'),
      multicast('s', [2, 3, 4], 'c4'),
      multicast('x', [6, 4], 'c5'),
      multicast('y', [4, 5], 'c6'),
      multicast('z', [5, 6], 'c7'),
      deliver('0/0', 'p', 'q'),
      deliver('1/0', 'q', 'r'),
      deliver('2/0', 'r', 's'),
      deliver('3/0', 's', 'p'),
      deliver('4/0', 's', 'x', 'y'),
      deliver('5/0', 'y', 'z'),
      deliver('6/0', 'z', 'x'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'uniform-acyclic-order': expect.stringMatching(
        /^([xyz] < [xyz] at [456]\/0(, |: )){3}a cycle$/,
      ),
    });
  });
});

describe('partial genuineness', () => {
  test('a group on the way orders a message to a single other group', () => {
    const verdict = judgeEvents(
      tree([-1, 0], 1, 1),
      multicast('a', [1]),
      touch('a', 0),
      deliver('1/0', 'a'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'partial-genuineness': 'a is addressed only to group 1, but group 0 ordered it',
    });
  });

  test('holds when the relay serves two destinations, or the destination touches its own', () => {
    const verdict = judgeEvents(
      tree([-1, 0, 0], 1, 1, 1),
      multicast('a', [1, 2]),
      touch('a', 0),
      multicast('b', [1]),
      touch('b', 1),
      deliver('1/0', 'a', 'b'),
      deliver('2/0', 'a'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });
});

describe('FIFO per client and entry group', () => {
  const first = multicast('a', [0]);
  const second = multicast('b', [0]);

  test('a later message overtakes', () => {
    const verdict = judgeEvents(groups(3), first, second, deliverAll(0, 3, 'b', 'a'), end());
    expect(witnesses(verdict)).toEqual({
      'fifo-order':
        'c1 multicast a before b, both with entry group 0, but 0/0 delivered b without a before it',
    });
  });

  test('a gap, even if the client crashed', () => {
    const verdict = judgeEvents(
      groups(3),
      first,
      second,
      clientCrash('c1'),
      deliverAll(0, 3, 'b'),
      end(),
    );
    expect(Object.keys(witnesses(verdict))).toEqual(['fifo-order']);
  });

  test('holds in order; different entry groups and other clients are free', () => {
    const verdict = judgeEvents(
      tree([-1, 0, 0], 1, 1, 1),
      multicast('a', [1, 2]),
      multicast('b', [1]),
      multicast('c', [1], 'c2'),
      multicast('d', [1, 2]),
      deliver('1/0', 'c', 'b', 'a', 'd'),
      deliver('2/0', 'a', 'd'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('the entry group is the lowest common ancestor, unless it is recorded', () => {
    const run = (entryGroup?: number) =>
      judgeEvents(
        tree([-1, 0, 1, 1], 1, 1, 1, 1),
        multicast('a', [2, 3]),
        multicast('b', [1, 2], 'c1', entryGroup),
        deliver('2/0', 'b', 'a'),
        deliver('3/0', 'a'),
        deliver('1/0', 'b'),
        end(),
      );
    expect(witnesses(run())['fifo-order']).toContain('both with entry group 1');
    expect(run(0).outcome).toBe('holds');
  });

  test('is unknown where entry groups can not be known', () => {
    const verdict = judgeEvents(
      groups(1, 1),
      multicast('a', [0, 1]),
      deliver('0/0', 'a'),
      deliver('1/0', 'a'),
      end(),
    );
    expect(verdict.outcome).toBe('unknown');
    expect(verdict.properties.find(({ property }) => property === 'fifo-order')).toMatchObject({
      outcome: 'unknown',
    });
  });
});

describe('real-time order', () => {
  const start = strict(tree([-1, 0, 0, 0], 1, 1, 1, 1));
  /** Of `write` to groups 1 and 2, group 1 has shown the effect when group 2 is asked. */
  const twoGroups = (asked: number, ...clocks: TraceEvent[]) => [
    start,
    ...clocks,
    at(10_000, multicast('write', [1, 2], 'c1')),
    at(11_000, multicast('see', [1], 'c2')),
    at(12_400, answered('see', 1)),
    at(asked, multicast('ask', [2], 'c3')),
    at(15_000, answered('ask', 2)),
    at(16_000, answered('write', 1)),
    at(16_000, answered('write', 2)),
    ...deliver('1/0', 'write', 'see'),
    ...deliver('2/0', 'ask', 'write'),
    end(),
  ];
  const unknowns = (verdict: Verdict) =>
    verdict.properties.flatMap((property) =>
      property.outcome === 'unknown' ? [property.property, property.reason] : [],
    );

  const realTimeOf = ({ properties }: Verdict) =>
    properties.find(({ property }) => property === 'real-time-order');

  test('one group has shown a message that another, asked later, has not', () => {
    const verdict = judgeEvents(twoGroups(12_900));
    expect(witnesses(verdict)).toEqual({
      'real-time-order':
        '1/0 delivered write before see; c2 received the reply of group 1 to see at 12.4 ms; then c3 multicast ask at 12.9 ms; but 2/0 delivered ask before write',
    });
    expect(verdict.outcome).toBe('violated');
    const { violation } = realTimeOf(verdict) as PropertyVerdict & { outcome: 'violated' };
    expect(violation).toEqual({
      property: 'real-time-order',
      cycle: expect.arrayContaining([
        { before: 'write', after: 'see', replica: '1/0' },
        {
          before: 'see',
          after: 'ask',
          answeredBy: 1,
          receivedBy: 'c2',
          receivedUs: 12_400,
          multicastBy: 'c3',
          multicastUs: 12_900,
        },
        { before: 'ask', after: 'write', replica: '2/0' },
      ]),
    });
  });

  test('holds if the second group was asked before the reply of the first was received', () => {
    expect(judgeEvents(twoGroups(12_399.9)).outcome).toBe('holds');
  });

  test('at the same time neither is before the other', () => {
    expect(judgeEvents(twoGroups(12_400)).outcome).toBe('holds');
  });

  test('the reply of one destination binds the others', () => {
    const verdict = judgeEvents(
      start,
      at(1, multicast('write', [1, 2], 'c1')),
      at(2, answered('write', 1)),
      at(3, multicast('ask', [2], 'c2')),
      deliver('1/0', 'write'),
      deliver('2/0', 'ask', 'write'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'real-time-order':
        'c1 received the reply of group 1 to write at 0.002 ms; then c2 multicast ask at 0.003 ms; but 2/0 delivered ask before write',
    });
  });

  test('over three groups', () => {
    const verdict = judgeEvents(
      start,
      at(1, multicast('a', [1, 2], 'c1')),
      at(2, multicast('b', [2, 3], 'c2')),
      at(3, multicast('see', [3], 'c3')),
      at(4, answered('see', 3)),
      at(5, multicast('ask', [1], 'c4')),
      deliver('1/0', 'ask', 'a'),
      deliver('2/0', 'a', 'b'),
      deliver('3/0', 'b', 'see'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'real-time-order':
        '2/0 delivered a before b; 3/0 delivered b before see; c3 received the reply of group 3 to see at 0.004 ms; then c4 multicast ask at 0.005 ms; but 1/0 delivered ask before a',
    });
  });

  test('a cycle over two clocks, each of which orders two clients', () => {
    const verdict = judgeEvents(
      start,
      ['c1', 'c2'].map((client) => clientStart(client, 'one machine')),
      ['c3', 'c4'].map((client) => clientStart(client, 'another machine')),
      at(1, multicast('a', [1], 'c1')),
      at(2, answered('a', 1)),
      at(3, multicast('b', [2], 'c2')),
      at(1001, multicast('c', [2], 'c3')),
      at(1002, answered('c', 2)),
      at(1003, multicast('d', [1], 'c4')),
      deliver('1/0', 'd', 'a'),
      deliver('2/0', 'b', 'c'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'real-time-order':
        'c1 received the reply of group 1 to a at 0.002 ms; then c2 multicast b at 0.003 ms; 2/0 delivered b before c; c3 received the reply of group 2 to c at 1.002 ms; then c4 multicast d at 1.003 ms; but 1/0 delivered d before a',
    });
  });

  test("a client's own order needs no times", () => {
    const verdict = judgeEvents(
      start,
      multicast('write', [1, 2], 'c1'),
      answered('write', 1),
      multicast('ask', [2], 'c1'),
      answered('ask', 2),
      answered('write', 2),
      deliver('1/0', 'write'),
      deliver('2/0', 'ask', 'write'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({
      'real-time-order':
        'c1 received the reply of group 1 to write; then c1 multicast ask; but 2/0 delivered ask before write',
    });
  });

  test("a client's own order counts where its times are equal", () => {
    const events = (client: string) =>
      judgeEvents(
        start,
        at(1, multicast('write', [1, 2], 'c1')),
        at(2, answered('write', 1)),
        at(2, multicast('ask', [2], client)),
        deliver('1/0', 'write'),
        deliver('2/0', 'ask', 'write'),
        end(),
      );
    expect(Object.keys(witnesses(events('c1')))).toEqual(['real-time-order']);
    expect(events('c2').outcome).toBe('holds');
  });

  test('the events of different clients may be in any order in the trace', () => {
    const [groups, ...events] = twoGroups(12_900);
    const of = (client: string, ids: string[]) =>
      events.filter(
        (event) =>
          (event.event === 'multicast' && event.client === client) ||
          (event.event === 'answered' && ids.includes(event.id)),
      );
    const verdict = judgeEvents(
      groups,
      of('c3', ['ask']),
      of('c2', ['see']),
      of('c1', ['write']),
      events.filter(({ event }) => event === 'deliver' || event === 'end'),
    );
    expect(Object.keys(witnesses(verdict))).toEqual(['real-time-order']);
  });

  test('is unknown between clients of different clocks', () => {
    const verdict = judgeEvents(twoGroups(12_900, clientStart('c3', 'another machine')));
    expect(unknowns(verdict)).toEqual([
      'real-time-order',
      "clients read 2 clocks, whose times can't be compared; within each clock the order holds",
    ]);
    expect(verdict.outcome).toBe('unknown');
  });

  test('is judged between clients that name the same clock', () => {
    const clocks = ['c1', 'c2', 'c3'].map((client) => clientStart(client, 'this machine'));
    expect(judgeEvents(twoGroups(12_900, ...clocks)).outcome).toBe('violated');
  });

  test('a violation within one clock counts, whatever other clocks there are', () => {
    const verdict = judgeEvents(twoGroups(12_900, clientStart('c1', 'another machine')));
    expect(verdict.outcome).toBe('violated');
  });

  test('is unknown between clients without times', () => {
    const untimed = twoGroups(12_900).map((event) =>
      'timeUs' in event ? { ...event, timeUs: undefined } : event,
    );
    expect(unknowns(judgeEvents(untimed as TraceEvent[]))[1]).toContain('clients read 3 clocks');
  });

  test('is unknown without "answered" events', () => {
    const events = twoGroups(12_900).filter(({ event }) => event !== 'answered');
    expect(unknowns(judgeEvents(events))).toEqual([
      'real-time-order',
      'the history has no "answered" events',
    ]);
  });

  test('if it is not promised, a violation is reported, but is no failure', () => {
    const [, ...events] = twoGroups(12_900);
    const verdict = judgeEvents(tree([-1, 0, 0, 0], 1, 1, 1, 1), events);
    expect(verdict.outcome).toBe('holds');
    expect(realTimeOf(verdict)).toMatchObject({
      outcome: 'not-promised',
      witness: expect.stringContaining('but 2/0 delivered ask before write'),
      violation: { property: 'real-time-order' },
    });
    const quiet = judgeEvents(tree([-1, 0, 0, 0], 1, 1, 1, 1), end());
    expect(realTimeOf(quiet)).toEqual({
      property: 'real-time-order',
      outcome: 'not-promised',
    });
  });
});

describe('restart and restore', () => {
  const messages = ['a', 'b', 'c'].map((id) => multicast(id, [0]));
  const begun = [groups(3), ...messages, ...deliver('0/0', 'a', 'b'), crash('0/0')];
  const others = [...deliver('0/1', 'a', 'b', 'c'), ...deliver('0/2', 'a', 'b', 'c')];

  test('a restarted replica delivers everything again, in a new incarnation', () => {
    const verdict = judgeEvents(
      begun,
      others,
      restart('0/0'),
      deliver('0/0', 'a', 'b', 'c'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a restarted replica owes what it delivered in an earlier incarnation', () => {
    const verdict = judgeEvents(begun, others, restart('0/0'), end());
    expect(Object.keys(witnesses(verdict))).toEqual(['validity', 'uniform-agreement']);
  });

  test('an earlier incarnation still binds the others', () => {
    const verdict = judgeEvents(
      groups(3),
      multicast('a', [0], 'c1'),
      multicast('b', [0], 'c2'),
      deliver('0/0', 'b'),
      crash('0/0'),
      restart('0/0'),
      deliverAll(0, 3, 'a'),
      end(false),
    );
    expect(Object.keys(witnesses(verdict))).toEqual(['uniform-prefix-order']);
  });

  test('a snapshot counts as the first deliveries of the group', () => {
    const verdict = judgeEvents(
      begun,
      others,
      restart('0/0'),
      restore('0/0', '0/1', 2),
      deliver('0/0', 'c'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a snapshot may be recorded before the deliveries that it covers', () => {
    const verdict = judgeEvents(begun, restart('0/0'), restore('0/0', '0/1', 3), others, end());
    expect(verdict.outcome).toBe('holds');
  });

  test('the deliveries behind a snapshot may be only those of a replica that crashed', () => {
    const verdict = judgeEvents(
      groups(3),
      messages,
      deliver('0/0', 'a', 'b'),
      crash('0/0'),
      restart('0/1'),
      restore('0/1', '0/0', 2),
      deliver('0/1', 'c'),
      restore('0/2', '0/1', 3),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('a member that was left behind restores without a restart', () => {
    const verdict = judgeEvents(
      groups(3),
      messages,
      deliver('0/0', 'a', 'b', 'c'),
      deliver('0/1', 'a', 'b', 'c'),
      deliver('0/2', 'a'),
      restore('0/2', '0/1', 2),
      deliver('0/2', 'c'),
      end(),
    );
    expect(verdict.outcome).toBe('holds');
  });

  test('what a snapshot covers must not be delivered again', () => {
    const verdict = judgeEvents(
      begun,
      others,
      restart('0/0'),
      restore('0/0', '0/1', 2),
      deliver('0/0', 'b', 'c'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({ 'uniform-integrity': 'b was delivered twice at 0/0' });
  });

  test('a snapshot of the past makes a living replica deliver twice', () => {
    const verdict = judgeEvents(
      groups(3),
      messages,
      deliverAll(0, 3, 'a', 'b', 'c'),
      restore('0/2', '0/1', 1),
      deliver('0/2', 'b', 'c'),
      end(),
    );
    expect(witnesses(verdict)).toEqual({ 'uniform-integrity': 'b was delivered twice at 0/2' });
  });

  test('a gap after a snapshot contradicts the group', () => {
    const verdict = judgeEvents(
      begun,
      others,
      restart('0/0'),
      restore('0/0', '0/1', 1),
      deliver('0/0', 'c'),
      end(false),
    );
    expect(witnesses(verdict)).toMatchObject({
      'uniform-prefix-order': 'delivery 2 of group 0 is b at 0/1, but c at 0/0',
    });
  });

  test('a snapshot of more than the group delivered', () => {
    const verdict = judgeEvents(begun, others, restart('0/0'), restore('0/0', '0/1', 4), end());
    expect(witnesses(verdict)).toEqual({
      'uniform-integrity':
        '0/0 installed a snapshot of 4 deliveries, but the history has only 3 of group 0',
    });
  });
});

test('a history can be judged, extended, and judged again', () => {
  const history = new History();
  for (const event of [groups(1), multicast('a', [0])]) history.add(event);
  expect(judge(history).outcome).toBe('unknown');
  for (const event of [...deliver('0/0', 'a'), end()]) history.add(event);
  expect(judge(history).outcome).toBe('holds');
  expect(judge(history).counts).toMatchObject({ messages: 1, deliveries: 1, groups: 1 });
});

test('a history without any event holds nothing against anyone', () => {
  expect(judge([]).outcome).toBe('unknown');
});

test('a million deliveries', () => {
  const history = new History();
  const groupCount = 8;
  const messages = 200_010;
  history.add(tree([-1, 0, 1, 1, 2, 2, 3, 3], ...new Array(groupCount).fill(3)));
  const replicas = Array.from({ length: groupCount }, (_, group) =>
    [0, 1, 2].map((member) => `${group}/${member}`),
  );
  for (let i = 0; i < messages; i++) {
    const id = `c${i % 16}:${i}`;
    const one = i % groupCount;
    const destinations = i % 3 === 0 ? [one] : [one, (one + 1 + (i % 5)) % groupCount];
    history.add({ event: 'multicast', id, client: `c${i % 16}`, destinations });
    for (const group of destinations) {
      for (const replica of replicas[group]) history.add({ event: 'deliver', id, group, replica });
    }
  }
  history.add(end());
  const started = performance.now();
  const verdict = judge(history);
  const elapsedMs = performance.now() - started;
  console.log(`judged ${history.counts.deliveries} deliveries in ${elapsedMs.toFixed(0)} ms`);
  expect(history.counts.deliveries).toBeGreaterThanOrEqual(1_000_000);
  expect(verdict.outcome).toBe('holds');
});
