/** The overlay tree, against a twin that follows parents step by step. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  contains,
  GROUPS_MAX,
  highMask,
  lowMask,
  Overlay,
  OverlayError,
  parseTree,
  SHAPES,
  type Shape,
} from '../../src/protocol/overlay.js';

/** Any tree, and any numbering of its groups. */
const trees: fc.Arbitrary<number[]> = fc
  .integer({ min: 1, max: GROUPS_MAX })
  .chain((groups) =>
    fc.tuple(
      fc.tuple(...Array.from({ length: groups }, (_, i) => fc.nat(Math.max(0, i - 1)))),
      fc.shuffledSubarray(
        Array.from({ length: groups }, (_, i) => i),
        { minLength: groups, maxLength: groups },
      ),
    ),
  )
  .map(([above, names]) => {
    const parents = new Array<number>(names.length);
    names.forEach((name, i) => {
      parents[name] = i === 0 ? -1 : names[above[i]];
    });
    return parents;
  });

const treesWithGroups = trees.chain((parents) =>
  fc.tuple(
    fc.constant(parents),
    fc.uniqueArray(fc.nat(parents.length - 1), { minLength: 1, maxLength: 8 }),
  ),
);

const masks = (groups: readonly number[]): [number, number] => [
  groups.reduce((mask, group) => mask | lowMask(group), 0),
  groups.reduce((mask, group) => mask | highMask(group), 0),
];

/** From a group up to the root. */
function pathUp(parents: readonly number[], group: number): number[] {
  return group < 0 ? [] : [group, ...pathUp(parents, parents[group])];
}

/** The naive twin: the first group on one destination's way up that is on the way of all. */
function lowestCommonAncestor(parents: readonly number[], groups: readonly number[]): number {
  const [first, ...others] = groups.map((group) => pathUp(parents, group));
  return first.find((group) => others.every((path) => path.includes(group)))!;
}

test('the entry group is the lowest common ancestor of the destinations', () => {
  fc.assert(
    fc.property(treesWithGroups, ([parents, groups]) => {
      const overlay = new Overlay(parents);
      expect(overlay.entryGroup(...masks(groups))).toBe(lowestCommonAncestor(parents, groups));
    }),
    { numRuns: 500 },
  );
});

test('the path to a group is the group and all above it', () => {
  fc.assert(
    fc.property(treesWithGroups, ([parents, [group]]) => {
      const path = new Overlay(parents).pathTo(group!);
      expect(path).toEqual(pathUp(parents, group!).sort((one, other) => one - other));
    }),
  );
});

test('a group reaches itself and what lies below it', () => {
  fc.assert(
    fc.property(treesWithGroups, ([parents, groups]) => {
      const overlay = new Overlay(parents);
      expect(overlay.groups).toBe(parents.length);
      expect(overlay.root).toBe(parents.indexOf(-1));
      parents.forEach((parent, group) => {
        const isAtOrBelow = (other: number) => pathUp(parents, other).includes(group);
        expect(overlay.reaches(group, ...masks(groups))).toBe(groups.some(isAtOrBelow));
        const all = parents.map((_, other) => other);
        const isReached = (other: number) =>
          contains(overlay.reachLow[group], overlay.reachHigh[group], other);
        expect(all.filter(isReached)).toEqual(all.filter(isAtOrBelow));
        expect(overlay.parent(group)).toBe(parent);
        const children = parents.flatMap((above, child) => (above === group ? [child] : []));
        expect(overlay.children(group)).toEqual(children);
      });
    }),
    { numRuns: 50 },
  );
});

test('a set of groups is two masks', () => {
  const sets = fc.uniqueArray(fc.nat(GROUPS_MAX - 1), { maxLength: GROUPS_MAX });
  fc.assert(
    fc.property(sets, (groups) => {
      const [low, high] = masks(groups);
      for (let group = 0; group < GROUPS_MAX; group++) {
        expect(contains(low, high, group)).toBe(groups.includes(group));
      }
    }),
  );
});

describe('what is no tree is refused, with the group at fault', () => {
  test.each<[string, number[], string]>([
    ['nothing', [], 'a tree needs at least one group'],
    ['too many groups', SHAPES.breadth(65), 'a tree has at most 64 groups, not 65'],
    ['no root', [1, 0], 'a tree has exactly one root (parent -1); found none'],
    ['two roots', [-1, 0, -1], 'a tree has exactly one root (parent -1); found groups 0, 2'],
    [
      'a parent that is none',
      [-1, 2],
      'group 1 has parent 2: expected -1 for the root or a group from 0 to 1',
    ],
    [
      'a parent below -1',
      [-2],
      'group 0 has parent -2: expected -1 for the root or a group from 0 to 0',
    ],
    [
      'half a parent',
      [-1, 0.5],
      'group 1 has parent 0.5: expected -1 for the root or a group from 0 to 1',
    ],
    ['its own parent', [-1, 1], 'group 1 is its own ancestor: follow its parents and see'],
    ['a cycle', [-1, 2, 3, 1], 'group 1 is its own ancestor: follow its parents and see'],
  ])('%s', (_, parents, message) => {
    const build = () => new Overlay(parents);
    expect(build).toThrow(OverlayError);
    expect(build).toThrow(message);
    expect(build).toThrow(expect.objectContaining({ code: 'TRAM_INVALID_TREE' }));
  });
});

test('the shapes of the evaluation', () => {
  expect(SHAPES.base(8)).toEqual([-1, 0, 1, 1, 2, 2, 3, 3]);
  expect(SHAPES.breadth(4)).toEqual([-1, 0, 0, 0]);
  expect(SHAPES.depth(4)).toEqual([-1, 0, 1, 2]);
  expect(SHAPES.simple(3)).toEqual([-1, 0, 0]);
  for (const shape of Object.values(SHAPES)) {
    for (let groups = 1; groups <= GROUPS_MAX; groups++) {
      expect(new Overlay(shape(groups)).root).toBe(0);
    }
  }
});

describe('a tree as text', () => {
  test.each(Object.keys(SHAPES))('%s', (name) => {
    expect(parseTree(name, 6)).toEqual(SHAPES[name as Shape](6));
  });

  test('parents in a row, with or without brackets', () => {
    fc.assert(
      fc.property(trees, (parents) => {
        expect(parseTree(parents.join(','), parents.length)).toEqual(parents);
        expect(parseTree(`[${parents.join(', ')}]`, parents.length)).toEqual(parents);
      }),
    );
  });

  test.each(['', 'binary', '-1,,0', '-1,x', '-1,0.5', 'toString', '-1 0'])('%j is none', (text) => {
    const parse = () => parseTree(text, 3);
    expect(parse).toThrow(OverlayError);
    expect(parse).toThrow(
      `"${text}" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0`,
    );
  });
});

test('a drawing', () => {
  expect(new Overlay([-1, 0, 1, 1, 0]).describe()).toBe(
    ['g0', '├─ g1', '│  ├─ g2', '│  └─ g3', '└─ g4'].join('\n'),
  );
});
