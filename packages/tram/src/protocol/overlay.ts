/**
 * The overlay tree (paper §4): which group is above which. It is fixed for the lifetime of a cluster and known to every
 * client and replica.
 *
 * Sets of groups are two 32-bit masks, low and high: 64 groups at most.
 */

export const GROUPS_MAX = 64;

/** The given parents do not form a tree. The message says which group is at fault, and why. */
export class OverlayError extends Error {
  readonly code = 'TRAM_INVALID_TREE';
  override readonly name = 'OverlayError';
}

export function lowMask(group: number): number {
  return group < 32 ? 1 << group : 0;
}

export function highMask(group: number): number {
  return group >= 32 ? 1 << (group - 32) : 0;
}

export function contains(low: number, high: number, group: number): boolean {
  return ((group < 32 ? low >>> group : high >>> (group - 32)) & 1) === 1;
}

export class Overlay {
  readonly groups: number;
  readonly root: number;
  /** Groups reachable downwards, itself included. */
  readonly reachLow: Int32Array;
  readonly reachHigh: Int32Array;
  private readonly childrenOf: number[][];

  constructor(readonly parents: readonly number[]) {
    this.root = validate(parents);
    this.groups = parents.length;
    this.childrenOf = parents.map(() => []);
    this.reachLow = new Int32Array(this.groups);
    this.reachHigh = new Int32Array(this.groups);
    for (let group = 0; group < this.groups; group++) {
      const parent = parents[group];
      if (parent >= 0) this.childrenOf[parent].push(group);
      for (let above = group; above >= 0; above = parents[above]) {
        this.reachLow[above] |= lowMask(group);
        this.reachHigh[above] |= highMask(group);
      }
    }
  }

  parent(group: number): number {
    return this.parents[group];
  }

  children(group: number): readonly number[] {
    return this.childrenOf[group];
  }

  /** The group and all above it, in the order of their numbers. */
  pathTo(group: number): number[] {
    const path: number[] = [];
    for (let above = group; above >= 0; above = this.parents[above]) path.push(above);
    return path.sort((one, other) => one - other);
  }

  /** Does any destination lie at or below `group`? */
  reaches(group: number, low: number, high: number): boolean {
    return ((low & this.reachLow[group]) | (high & this.reachHigh[group])) !== 0;
  }

  /** The lowest common ancestor of a non-empty set of destinations: where the message is ordered first. */
  entryGroup(low: number, high: number): number {
    let group = low !== 0 ? 31 - Math.clz32(low & -low) : 63 - Math.clz32(high & -high);
    while ((low & ~this.reachLow[group]) | (high & ~this.reachHigh[group])) {
      group = this.parents[group];
    }
    return group;
  }

  describe(): string {
    const lines: string[] = [];
    const draw = (group: number, indent: string, branch: string): void => {
      lines.push(`${indent}${branch}g${group}`);
      const below = this.children(group);
      const deeper = indent + (branch === '├─ ' ? '│  ' : branch === '└─ ' ? '   ' : '');
      below.forEach((child, i) => {
        draw(child, deeper, i + 1 < below.length ? '├─ ' : '└─ ');
      });
    };
    draw(this.root, '', '');
    return lines.join('\n');
  }
}

/** Returns the root of a valid tree. */
function validate(parents: readonly number[]): number {
  const groups = parents.length;
  if (groups === 0) throw new OverlayError('a tree needs at least one group');
  if (groups > GROUPS_MAX) {
    throw new OverlayError(`a tree has at most ${GROUPS_MAX} groups, not ${groups}`);
  }
  const roots: number[] = [];
  parents.forEach((parent, group) => {
    if (!Number.isInteger(parent) || parent < -1 || parent >= groups) {
      throw new OverlayError(
        `group ${group} has parent ${parent}: expected -1 for the root or a group from 0 to ${groups - 1}`,
      );
    }
    if (parent === -1) roots.push(group);
  });
  if (roots.length !== 1) {
    const found = roots.length === 0 ? 'none' : `groups ${roots.join(', ')}`;
    throw new OverlayError(`a tree has exactly one root (parent -1); found ${found}`);
  }
  parents.forEach((_, group) => {
    let above = group;
    for (let steps = 0; above !== -1; steps++) {
      if (steps === groups) {
        throw new OverlayError(`group ${group} is its own ancestor: follow its parents and see`);
      }
      above = parents[above];
    }
  });
  return roots[0];
}

/** The shapes of the paper's evaluation, for any number of groups. */
const breadth = (groups: number): number[] =>
  Array.from({ length: groups }, (_, group) => (group === 0 ? -1 : 0));

export const SHAPES = {
  /** `[-1,0,1,1,2,2,3,3]`: a root above a binary tree. */
  base: (groups: number) =>
    Array.from({ length: groups }, (_, group) => (group === 0 ? -1 : group >> 1)),
  /** All other groups directly below the root; with three groups the paper's "simple" tree. */
  breadth,
  /** A chain. */
  depth: (groups: number) => Array.from({ length: groups }, (_, group) => group - 1),
  simple: breadth,
} as const satisfies Record<string, (groups: number) => number[]>;

export type Shape = keyof typeof SHAPES;

/** `base`, `breadth`, `depth`, `simple`, or a parents array such as `-1,0,0`. */
export function parseTree(text: string, groups: number): number[] {
  if (Object.hasOwn(SHAPES, text)) return SHAPES[text as Shape](groups);
  const parents = text
    .replace(/^\[|\]$/g, '')
    .split(',')
    .map((part) => Number(part.trim() || Number.NaN));
  if (parents.some((parent) => !Number.isInteger(parent))) {
    throw new OverlayError(
      `"${text}" is no tree: expected ${Object.keys(SHAPES).join(', ')} or parents such as -1,0,0`,
    );
  }
  return parents;
}
