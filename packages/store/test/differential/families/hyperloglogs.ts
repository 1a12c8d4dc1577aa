import * as fc from 'fast-check';
import { type Comparison, exact } from '../comparisons.js';
import { type Family, joined, member, several } from './family.js';

/** Others do not touch these keys: strings of ours lack the estimates that PFCOUNT of Redis leaves in them. */
const key = fc.constantFrom('hll1', 'hll2', 'hll3');
const element = fc.oneof(
  member,
  fc.integer({ min: 0, max: 100_000 }).map((n) => `element${n}`),
);
const manyElements = fc
  .tuple(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 1, max: 2_500 }))
  .map(([from, count]) => Array.from({ length: count }, (_, i) => `${from + i}`));

/** All bytes except for the estimate. */
const withoutEstimate: Comparison = (real, ours, command) => {
  const rest = (wire: typeof real): typeof real =>
    typeof wire[1] === 'string' && wire[1].startsWith('HYLL')
      ? [wire[0], wire[1].slice(0, 8) + wire[1].slice(16)]
      : wire;
  return exact(rest(real), rest(ours), command);
};

export const hyperloglogs: Family = {
  commands: {
    pfadd: fc.oneof(
      { weight: 6, arbitrary: joined('PFADD', key, several(element, 0, 20)) },
      { weight: 1, arbitrary: joined('PFADD', key, manyElements) },
    ),
    pfcount: joined('PFCOUNT', several(key)),
    pfmerge: joined('PFMERGE', key, several(key, 0, 3)),
  },
  comparisons: { get: withoutEstimate },
};
