/**
 * The plan of a round of power cuts, drawn from a seed. Called by `power.mjs`. A plan is pure data; the same options give the
 * same plan.
 */
import { Random } from '../dist/sim/random.js';
import { durationOf, mix } from './plan.mjs';

/**
 * @typedef {'threads' | 'processes' | 'machines'} PowerMemory
 * @typedef {Exclude<import('tram-multicast/check').PromisedDurability, 'none'>} Durability
 */

/**
 * One power cut: under load, or while the cluster starts and recovers from the cut before. It comes `after` so many
 * milliseconds of load, or that percentage of the time that the start before has taken.
 * @typedef {object} Cut
 * @property {'load' | 'start'} during
 * @property {number} after
 * @property {number} seed     of what the cut leaves behind the durable end of files
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

const START_PERCENT = 30;
const LOAD_MS = { least: 20, most: 1000 };
/** The first half of a start is that of processes, before they read the journals. */
const START_PERCENTAGE = { least: 20, most: 110 };
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
  return {
    memory,
    tree,
    durability,
    order,
    seed: random.next(),
    snapshotBytes: random.pick(SNAPSHOT_BYTES),
    cuts: Array.from({ length: cuts }, (_, place) => drawCut(random, place === 0)),
  };
}

/** @param {Random} random @param {boolean} isFirst  there must be something to recover @returns {Cut} */
function drawCut(random, isFirst) {
  const during = !isFirst && random.percent(START_PERCENT) ? 'start' : 'load';
  const { least, most } = START_PERCENTAGE;
  const after = during === 'start' ? random.between(least, most) : durationOf(random, LOAD_MS);
  return { during, after, seed: random.next() };
}
