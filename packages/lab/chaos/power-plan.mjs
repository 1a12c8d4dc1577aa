/**
 * The plan of a round of power cuts, drawn from a seed. Called by `power.mjs`. A plan is pure data; the same options give the
 * same plan.
 */
import { Random } from '../dist/sim/random.js';
import { durationOf, mix } from './plan.mjs';
import { STAGES } from './power-stages.mjs';

/**
 * @typedef {'threads' | 'processes' | 'machines'} PowerMemory
 * @typedef {Exclude<import('tram-multicast/check').PromisedDurability, 'none'>} Durability
 */

/**
 * One power cut: after some milliseconds of load, or in a stage of the start that follows the cut before, after this percentage of
 * the time that the stage has taken when it was last completed.
 * @typedef {{ during: 'load', afterMs: number }} LoadCut
 * @typedef {{ during: 'start', stage: import('./power-stages.mjs').Stage, percent: number }} StartCut
 * @typedef {(LoadCut | StartCut) & { seed: number }} Cut  `seed`: of what the cut leaves behind the durable end of files
 */

/**
 * @typedef {object} PowerPlan
 * @property {PowerMemory} memory
 * @property {string} tree
 * @property {Durability} durability
 * @property {import('./plan.mjs').Order} order
 * @property {number} seed            of this round, for its clients
 * @property {number} snapshotBytes   few, so that journals begin with snapshots now and then
 * @property {readonly Cut[]} cuts
 */

const START_PERCENT = 40;
const LOAD_MS = { least: 20, most: 1000 };
const SNAPSHOT_BYTES = [65_536, 1_048_576, 67_108_864];

/**
 * @param {object} options
 * @param {PowerMemory} options.memory
 * @param {Durability} options.durability
 * @param {import('./plan.mjs').Order} options.order
 * @param {number} options.seed
 * @param {string} options.tree
 * @param {number} options.cuts
 * @returns {PowerPlan}
 */
export function planPower({ memory, durability, order, seed, tree, cuts }) {
  const random = new Random(mix(seed, `${tree}/${durability}`));
  const stages = memory === 'machines' ? STAGES : STAGES.filter((stage) => stage !== 'fetching');
  // Each in its turn. The seed draws with which one it begins.
  let turn = random.below(stages.length);
  return {
    memory,
    tree,
    durability,
    order,
    seed: random.next(),
    snapshotBytes: random.pick(SNAPSHOT_BYTES),
    cuts: Array.from({ length: cuts }, (_, place) => {
      // Before the first one of a start there must be something to recover.
      if (place === 0 || !random.percent(START_PERCENT)) {
        return { during: 'load', afterMs: durationOf(random, LOAD_MS), seed: random.next() };
      }
      const stage = stages[turn++ % stages.length];
      return { during: 'start', stage, percent: random.below(100), seed: random.next() };
    }),
  };
}
