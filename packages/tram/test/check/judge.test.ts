/** For every property: a planted history that it alone rejects, and a good twin that holds. */

import { describe, expect, test } from 'vitest';
import { History } from '../../src/check/history.js';
import { judge } from '../../src/check/judge.js';
import {
  clientCrash,
  crash,
  deliver,
  deliverAll,
  end,
  groups,
  judgeEvents,
  multicast,
  restart,
  restore,
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
    expect(verdict.properties.at(-1)).toMatchObject({ property: 'fifo-order', outcome: 'unknown' });
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
