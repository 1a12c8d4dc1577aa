/**
 * Members with scores, in the order of the scores, and of their bytes where scores are equal. A member's rank is its position in this
 * order, from 0.
 *
 * The order is kept in blocks, each of which is sorted. A Fenwick tree over the sizes of the blocks leads from ranks to blocks and back in
 * logarithmic time. It is made anew, when it is needed, after blocks were added or removed: at most once for dozens of changes.
 */

import type { Bytes } from '../resp/reply.js';
import { IndexedMap } from './indexed-map.js';

/** How many members a block has at most. */
const BLOCK_MAX = 128;

/** A block with fewer members is joined with a neighbour, if both fit into one with room for more. */
const BLOCK_MIN = BLOCK_MAX / 4;
const JOINED_MAX = (BLOCK_MAX * 3) / 4;

interface Block {
  readonly members: Bytes[];
  readonly scores: number[];
}

export class SortedSet {
  readonly #scores = new IndexedMap<number>();
  /** None is empty. */
  readonly #blocks: Block[] = [];
  /** At `i`, the size of the `i & -i` blocks that end before block i. Undefined: to be made. */
  #tree: number[] | undefined;

  get size(): number {
    return this.#scores.size;
  }

  /** For scans and for snapshots: by positions, not in order. */
  get scores(): IndexedMap<number> {
    return this.#scores;
  }

  score(member: Bytes): number | undefined {
    return this.#scores.get(member);
  }

  /** @param score  not NaN. @returns whether the member is new */
  set(member: Bytes, score: number): boolean {
    const before = this.#scores.get(member);
    if (before !== undefined) {
      if (before === score) return false;
      this.#take(member, before);
    }
    this.#put(member, score);
    return this.#scores.set(member, score);
  }

  /** @returns whether it was there */
  delete(member: Bytes): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    this.#take(member, score);
    return this.#scores.delete(member);
  }

  /** @returns undefined if there is no such member */
  rank(member: Bytes): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#countBefore(score, member);
  }

  /** @param rank  0 <= rank < size */
  at(rank: number): readonly [member: Bytes, score: number] {
    const [index, offset] = this.#locate(rank);
    const block = this.#blocks[index];
    return [block.members[offset], block.scores[offset]];
  }

  /** How many have a lower score. @param included  also those that have this score */
  countBelow(score: number, included: boolean): number {
    return this.#countWhere((block, i) =>
      included ? block.scores[i] <= score : block.scores[i] < score,
    );
  }

  /** How many members come before this one, if all have the same score. @param included  also this one itself */
  countBeforeMember(member: Bytes, included: boolean): number {
    return this.#countWhere((block, i) =>
      included ? block.members[i] <= member : block.members[i] < member,
    );
  }

  /** Visits members by rank, from `from` to before `to`. They must not be changed meanwhile. */
  visit(from: number, to: number, visit: (member: Bytes, score: number) => void): void {
    if (from >= to) return;
    let [index, offset] = this.#locate(from);
    for (let left = to - from; left > 0; left--, offset++) {
      if (offset === this.#blocks[index].members.length) {
        index++;
        offset = 0;
      }
      const block = this.#blocks[index];
      visit(block.members[offset], block.scores[offset]);
    }
  }

  /** As `visit`, from `to - 1` down to `from`. */
  visitDown(from: number, to: number, visit: (member: Bytes, score: number) => void): void {
    if (from >= to) return;
    let [index, offset] = this.#locate(to - 1);
    for (let left = to - from; left > 0; left--, offset--) {
      if (offset < 0) {
        index--;
        offset = this.#blocks[index].members.length - 1;
      }
      const block = this.#blocks[index];
      visit(block.members[offset], block.scores[offset]);
    }
  }

  #put(member: Bytes, score: number): void {
    if (this.#blocks.length === 0) {
      this.#blocks.push({ members: [member], scores: [score] });
      this.#tree = undefined;
      return;
    }
    const index = Math.min(this.#blockOf(score, member), this.#blocks.length - 1);
    const block = this.#blocks[index];
    const offset = lowerBound(block, score, member);
    if (block.members.length < BLOCK_MAX) {
      block.members.splice(offset, 0, member);
      block.scores.splice(offset, 0, score);
      this.#resized(index, 1);
      return;
    }
    // Members that always come last leave full blocks behind.
    const last = offset === BLOCK_MAX && index === this.#blocks.length - 1;
    const half = last ? BLOCK_MAX : BLOCK_MAX / 2;
    const next = { members: block.members.splice(half), scores: block.scores.splice(half) };
    this.#blocks.splice(index + 1, 0, next);
    this.#tree = undefined;
    const [target, at] = offset > half || last ? [next, offset - half] : [block, offset];
    target.members.splice(at, 0, member);
    target.scores.splice(at, 0, score);
  }

  #take(member: Bytes, score: number): void {
    const index = this.#blockOf(score, member);
    const block = this.#blocks[index];
    const offset = lowerBound(block, score, member);
    block.members.splice(offset, 1);
    block.scores.splice(offset, 1);
    const size = block.members.length;
    this.#resized(index, -1);
    if (size === 0) this.#removeBlock(index);
    else if (size < BLOCK_MIN && !this.#join(index)) this.#join(index - 1);
  }

  /** Joins a block with the next one, if there is room. */
  #join(index: number): boolean {
    const block = this.#blocks[index];
    const next = this.#blocks[index + 1];
    if (block === undefined || next === undefined) return false;
    if (block.members.length + next.members.length > JOINED_MAX) return false;
    block.members.push(...next.members);
    block.scores.push(...next.scores);
    this.#removeBlock(index + 1);
    return true;
  }

  #removeBlock(index: number): void {
    this.#blocks.splice(index, 1);
    this.#tree = undefined;
  }

  /** The first block whose last member does not come before this one; the number of blocks if there is none. */
  #blockOf(score: number, member: Bytes): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const block = this.#blocks[middle];
      if (isBefore(block, block.members.length - 1, score, member)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #countBefore(score: number, member: Bytes): number {
    const index = this.#blockOf(score, member);
    return this.#sizeBefore(index) + lowerBound(this.#blocks[index], score, member);
  }

  /** How many are at the beginning for which this holds. */
  #countWhere(holds: (block: Block, offset: number) => boolean): number {
    const blocks = this.#blocks;
    const index = partition(blocks.length, (i) => holds(blocks[i], blocks[i].members.length - 1));
    if (index === blocks.length) return this.size;
    const block = blocks[index];
    return this.#sizeBefore(index) + partition(block.members.length, (i) => holds(block, i));
  }

  // ── The tree ──

  #resized(index: number, by: 1 | -1): void {
    const tree = this.#tree;
    if (tree === undefined) return;
    for (let i = index + 1; i < tree.length; i += i & -i) tree[i] += by;
  }

  /** How many members the blocks before this one have. */
  #sizeBefore(index: number): number {
    const tree = this.#treeOf();
    let size = 0;
    for (let i = index; i > 0; i -= i & -i) size += tree[i];
    return size;
  }

  /** The block and the position in it. @param rank  0 <= rank < size */
  #locate(rank: number): [index: number, offset: number] {
    const tree = this.#treeOf();
    let index = 0;
    let offset = rank;
    for (let step = 1 << (31 - Math.clz32(tree.length)); step > 0; step >>= 1) {
      const next = index + step;
      if (next < tree.length && tree[next] <= offset) {
        index = next;
        offset -= tree[next];
      }
    }
    return [index, offset];
  }

  #treeOf(): number[] {
    if (this.#tree !== undefined) return this.#tree;
    const tree = [0];
    for (const block of this.#blocks) tree.push(block.members.length);
    for (let i = 1; i < tree.length; i++) {
      const parent = i + (i & -i);
      if (parent < tree.length) tree[parent] += tree[i];
    }
    this.#tree = tree;
    return tree;
  }
}

function isBefore(block: Block, offset: number, score: number, member: Bytes): boolean {
  const other = block.scores[offset];
  return other < score || (other === score && block.members[offset] < member);
}

/** The position in the block at which the member is, or belongs. */
function lowerBound(block: Block, score: number, member: Bytes): number {
  let low = 0;
  let high = block.members.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(block, middle, score, member)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first position for which this does not hold: it holds up to some position, and not from there on. */
function partition(length: number, holds: (position: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
