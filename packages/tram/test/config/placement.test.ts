/** Where members are, and so which hosts lead. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placementOf, type Shape } from '../../src/config/placement.js';

const shapes = fc
  .record({
    groups: fc.integer({ min: 1, max: 20 }),
    replicas: fc.constantFrom(1, 3, 5, 7),
    sets: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ groups, replicas, sets }) => ({
    groups,
    replicas,
    hosts: replicas * Math.min(sets, groups),
  }));

/** By host: how many groups it leads at first. */
function led({ replicas, hosts }: Shape, placement: readonly number[]): number[] {
  const counts = Array<number>(hosts).fill(0);
  placement.forEach((host, replica) => {
    if (replica % replicas === 0) counts[host]++;
  });
  return counts;
}

describe.each(['spread', 'together'] as const)('%s', (leaders) => {
  test('no host runs two members of a group, and every host runs some', () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const { groups, replicas, hosts } = shape;
        const placement = placementOf(shape, leaders);
        for (let group = 0; group < groups; group++) {
          const members = placement.slice(group * replicas, (group + 1) * replicas);
          expect(new Set(members).size).toBe(replicas);
        }
        expect(new Set(placement).size).toBe(hosts);
      }),
    );
  });
});

test('spread: hosts lead equally many groups', () => {
  fc.assert(
    fc.property(shapes, (shape) => {
      const counts = led(shape, placementOf(shape, 'spread'));
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }),
  );
});

test('together: the first host of each set leads', () => {
  const shape = { groups: 5, replicas: 3, hosts: 6 };
  expect(led(shape, placementOf(shape, 'together'))).toEqual([3, 0, 0, 2, 0, 0]);
});

describe('with three groups of three', () => {
  const place = (hosts: number, leaders: 'spread' | 'together'): number[] =>
    placementOf({ groups: 3, replicas: 3, hosts }, leaders);

  test.each([
    ['three hosts, together', place(3, 'together'), [0, 1, 2, 0, 1, 2, 0, 1, 2]],
    ['three hosts, spread', place(3, 'spread'), [0, 1, 2, 1, 2, 0, 2, 0, 1]],
    ['six hosts, which share the groups', place(6, 'together'), [0, 1, 2, 3, 4, 5, 0, 1, 2]],
    ['six hosts, spread', place(6, 'spread'), [0, 1, 2, 3, 4, 5, 1, 2, 0]],
    [
      'two hosts: the last one runs all that are left',
      place(2, 'together'),
      [0, 1, 1, 0, 1, 1, 0, 1, 1],
    ],
    ['two hosts, spread', place(2, 'spread'), [0, 1, 1, 1, 0, 0, 0, 1, 1]],
  ])('%s', (_, placement, expected) => {
    expect(placement).toEqual(expected);
  });
});
