/**
 * How far a cluster that starts has come with its recovery, by what its journals show. A power cut leaves them as they are, so
 * they also tell into which stage a cut has fallen. Called by `power-round.mjs`.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FileDisk } from 'tram-multicast/internal/journal/disk.js';
import { eraFolder, openedPath, snapshotOf } from 'tram-multicast/internal/journal/format.js';
import { readIdentity } from 'tram-multicast/internal/journal/identity.js';

/**
 * In their order:
 *
 * - `starting`: processes start. No host has promised the new era.
 * - `promising`: some hosts have promised it.
 * - `planning`: all have. The journals are read, the plan is made, and replicas deliver what it says.
 * - `fetching`: the same, and a host has begun to fetch what its own journal lacks. Only across machines.
 * - `opening`: some opening snapshots are there.
 * - `marking`: all are. The era is open, and not all hosts have marked it.
 * - `open`: all hosts have marked it. Groups elect leaders, and clients connect.
 *
 * @typedef {'starting' | 'promising' | 'planning' | 'fetching' | 'opening' | 'marking' | 'open'} Stage
 */

/** @type {readonly Stage[]} */
export const STAGES = [
  'starting',
  'promising',
  'planning',
  'fetching',
  'opening',
  'marking',
  'open',
];

const LOOK_MS = 1;

/** One start of a cluster, as its journals show it. */
export class StartWatch {
  /** @type {Stage} */
  stage = 'starting';
  isOver = false;
  /** When each stage was first seen. @type {Partial<Record<Stage, number>>} */
  seenMs = { starting: Date.now() };

  /**
   * Before the processes start.
   * @param {string} journal  the directory of all hosts
   * @param {{ hosts: number, groups: number, isFetching: () => boolean }} cluster  each host has a member of each group
   */
  constructor(journal, cluster) {
    this.journal = journal;
    this.cluster = cluster;
    /** The highest era that was promised before. */
    this.before = Math.max(0, ...this.disks().map(promisedBy));
  }

  /** Looks until the start is over. */
  async watch() {
    while (!this.isOver) {
      this.look();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** The start has succeeded or failed, or the power was cut. */
  end() {
    this.look();
    this.isOver = true;
  }

  /** Resolves once the start has reached a stage, and has been there for so long. @param {Stage} stage @param {number} forMs */
  async reaches(stage, forMs) {
    const isBefore = () => STAGES.indexOf(this.stage) < STAGES.indexOf(stage);
    while (!this.isOver && isBefore()) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (forMs > 0) await new Promise((resolve) => setTimeout(resolve, forMs));
  }

  /** How long each stage has lasted that was seen. @param {number} endedMs  when the start had succeeded */
  durations(endedMs) {
    const seen = STAGES.filter((stage) => this.seenMs[stage] !== undefined);
    const ends = [...seen.slice(1).map((stage) => this.seenMs[stage] ?? 0), endedMs];
    return new Map(seen.map((stage, i) => [stage, ends[i] - (this.seenMs[stage] ?? 0)]));
  }

  look() {
    this.stage = this.found();
    this.seenMs[this.stage] ??= Date.now();
  }

  /** @returns {Stage} */
  found() {
    const { hosts, groups, isFetching } = this.cluster;
    const disks = this.disks();
    const era = Math.max(0, ...disks.map(promisedBy));
    if (era === this.before) return 'starting';
    if (disks.filter((disk) => promisedBy(disk) === era).length < hosts) return 'promising';
    const names = disks.map((disk) => disk.list(eraFolder(era)));
    const present = names.map(
      (list) => new Set(list.flatMap((name) => snapshotOf(name)?.group ?? [])),
    );
    if (names.every(({ length }) => length === 0)) return isFetching() ? 'fetching' : 'planning';
    if (present.some(({ size }) => size < groups)) return 'opening';
    const marks = names.filter((list) =>
      list.some((name) => `${eraFolder(era)}/${name}` === openedPath(era)),
    );
    return marks.length < hosts ? 'marking' : 'open';
  }

  /** One for each host that has a journal. */
  disks() {
    return hostsIn(this.journal).map((name) => new FileDisk(join(this.journal, name)));
  }
}

/** @param {string} journal */
function hostsIn(journal) {
  try {
    return readdirSync(journal);
  } catch {
    // Nothing has started yet.
    return [];
  }
}

/** @param {FileDisk} disk */
function promisedBy(disk) {
  return readIdentity(disk)?.promisedEra ?? 0;
}
