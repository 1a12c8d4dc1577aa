/** The destinations of a benchmark's messages: a fixed list of sets that clients cycle through. */
import { highMask, lowMask, type Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { Random } from '../../sim/random.js';

export interface DestinationSet {
  readonly low: number;
  readonly high: number;
}

/** The paper's workloads (§8.2, §8.3), and the simplest one. */
export type Pattern = 'rotating' | 'random' | 'adjacent';

const DRAWN_SETS = 256;
/** One message of so many goes to two groups, in a mix. */
const MIX = 10;
const SEED = 8;

/** Sets of `count` groups: in rotation, drawn uniformly, or drawn among groups that are connected in the tree. */
export function destinationSets(
  overlay: Overlay,
  pattern: Pattern,
  count: number,
): DestinationSet[] {
  const { groups } = overlay;
  if (pattern === 'rotating') {
    return Array.from({ length: groups }, (_, first) =>
      setOf(Array.from({ length: count }, (_, i) => (first + i) % groups)),
    );
  }
  const random = new Random(SEED);
  return Array.from({ length: DRAWN_SETS }, () =>
    setOf(pattern === 'random' ? drawn(random, groups, count) : together(random, overlay, count)),
  );
}

/** Nine of ten messages go to one group, the tenth to two, all of them in rotation. */
export function mixedSets(overlay: Overlay): DestinationSet[] {
  const [single, double] = [1, 2].map((count) => destinationSets(overlay, 'rotating', count));
  const { groups } = overlay;
  return Array.from({ length: groups }, (_, turn) => [
    ...Array.from({ length: MIX - 1 }, (_, i) => single[(turn * (MIX - 1) + i) % groups]),
    double[turn],
  ]).flat();
}

export function everyGroup(groups: number): DestinationSet {
  return setOf(Array.from({ length: groups }, (_, group) => group));
}

export function setOf(groups: readonly number[]): DestinationSet {
  let low = 0;
  let high = 0;
  for (const group of groups) {
    low |= lowMask(group);
    high |= highMask(group);
  }
  return { low, high };
}

function drawn(random: Random, groups: number, count: number): number[] {
  const left = Array.from({ length: groups }, (_, group) => group);
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]);
}

/** Starts at a random group and adds random neighbours. */
function together(random: Random, overlay: Overlay, count: number): number[] {
  const chosen = [random.below(overlay.groups)];
  while (chosen.length < count) {
    const around = chosen
      .flatMap((group) => [overlay.parent(group), ...overlay.children(group)])
      .filter((group) => group >= 0 && !chosen.includes(group));
    chosen.push(random.pick(around));
  }
  return chosen;
}
