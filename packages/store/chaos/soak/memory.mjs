/** Samples the memory of the processes of a store, and tells whether it is level. */
import { readFileSync } from 'node:fs';

/** Of each of these windows only the largest sample counts: the garbage collector runs now and then, and hosts are killed. */
const WINDOW_MS = 10_000;
/** Memory may grow at first: the heaps of V8 find their size. */
const SETTLING = 1 / 3;
/** What counts as level: less than this for the whole time that was measured, or less than a quarter of the mean. */
const GROWTH_MIB_MAX = 64;
const GROWTH_MAX = 0.25;

const MIB = 1024 * 1024;

/**
 * @typedef {object} Trend
 * @property {number} firstMiB
 * @property {number} lastMiB
 * @property {number} mostMiB
 * @property {number} slopeMiBPerMinute  of a line through what came after the settling
 * @property {boolean} isLevel
 */

export class Memory {
  #began = performance.now();
  /** For each role the largest sample of each window. @type {Map<string, number[]>} */
  #windows = new Map();

  /** @param {string} role @param {readonly number[]} pids  their memory counts together */
  sample(role, pids) {
    const bytes = pids.reduce((sum, pid) => sum + memoryOf(pid), 0);
    const windows = this.#windows.get(role) ?? [];
    this.#windows.set(role, windows);
    const at = Math.floor((performance.now() - this.#began) / WINDOW_MS);
    windows[at] = Math.max(windows[at] ?? 0, bytes);
  }

  /** @returns {Record<string, Trend>} for each role */
  trends() {
    return Object.fromEntries([...this.#windows].map(([role, windows]) => [role, trend(windows)]));
  }
}

/** @param {readonly number[]} windows @returns {Trend} */
function trend(windows) {
  // The last one is not over.
  const whole = windows.length > 1 ? windows.slice(0, -1) : windows;
  const settled = whole
    .slice(Math.floor(whole.length * SETTLING))
    .map((bytes) => (bytes ?? 0) / MIB);
  const slope = slopeOf(settled);
  const mean = settled.reduce((a, b) => a + b, 0) / settled.length;
  const growth = slope * (settled.length - 1);
  return {
    firstMiB: Math.round(settled[0]),
    lastMiB: Math.round(settled[settled.length - 1]),
    mostMiB: Math.round(Math.max(...settled)),
    slopeMiBPerMinute: Math.round((slope * 60_000 * 10) / WINDOW_MS) / 10,
    isLevel: growth < GROWTH_MIB_MAX || growth < GROWTH_MAX * mean,
  };
}

/** Of the line with the least squares. @param {readonly number[]} values */
function slopeOf(values) {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  let above = 0;
  let below = 0;
  for (const [i, value] of values.entries()) {
    above += (i - middle) * (value - mean);
    below += (i - middle) ** 2;
  }
  return below === 0 ? 0 : above / below;
}

/** Without what processes share, which is reserved at the start. 0 if the process has ended. @param {number} pid */
export function memoryOf(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
