/**
 * One round of power cuts: a cluster with a journal under load loses its power again and again, also while it recovers. After
 * each recovery the bank's total must be intact, and everything that was acknowledged must be there. At the end the whole
 * history is judged, across all eras. Called by `power.mjs`, which keeps the files of a round that fails.
 */
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { History, MalformedTraceError } from 'tram-multicast/check';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { Random } from '../dist/sim/random.js';
import { ACCOUNTS, START_BALANCE } from './bank.mjs';
import { CheckError } from './clients.mjs';
import { LoopDisk } from './loop-disk.mjs';
import { GROUPS, REPLICAS } from './plan.mjs';
import { LocalSite } from './power-site.mjs';
import { STAGES, StartWatch } from './power-stages.mjs';
import { tearFiles } from './torn-files.mjs';
import {
  checkAcknowledged,
  checkAudits,
  checkFingerprints,
  checkPromise,
  checkVerdict,
  readFingerprints,
  readHistory,
  readRecords,
} from './verify.mjs';
import { checkOrderedTime, checkReplies } from './verify-replies.mjs';

/**
 * @typedef {object} PowerOptions
 * @property {string} directory  for all files of the round
 * @property {number} clients
 * @property {boolean} device    keep the journals on a device that loses what was not synced
 * @property {AbortSignal} signal
 * @property {(text: string) => void} tell  progress
 */

/**
 * @typedef {object} PowerResult
 * @property {string} tree
 * @property {number} cuts          under load
 * @property {number} startCuts     while the cluster started
 * @property {Record<import('./power-stages.mjs').Stage, number>} stages  in which of these
 * @property {number} eras          that began
 * @property {number} messages
 * @property {number} acknowledged
 * @property {number} deliveries
 * @property {number} slowestStartMs  from the start of the processes until the first audits
 * @property {number} seconds
 * @property {string[]} complaints  failed checks, in words
 */

const MESSAGES_PER_SECOND = 1500;
const WINDOW = 16;
const CALLS_MAX = 32;
const PAYLOAD_BYTES_MAX = 512;
const HOSTS = 3;
const LAST_LOAD_MS = 500;
const TELL_MS = 5000;
const LOOK_MS = 5;
const RIGHT_TOTAL = GROUPS * ACCOUNTS * START_BALANCE;

export class PowerRound {
  /** @type {string[]} */
  complaints = [];
  counts = { load: 0, start: 0 };
  /** Cuts during a start. */
  stages = /** @type {PowerResult['stages']} */ (
    Object.fromEntries(STAGES.map((stage) => [stage, 0]))
  );
  /** How long each stage of a start took when it was last completed. @type {Map<string, number>} */
  durations = new Map();
  /** By group: the last place of an acknowledged message in its deliveries. */
  acknowledged = new Array(GROUPS).fill(0);
  /** The files of clients that have been read for this. @type {Set<string>} */
  read = new Set();
  slowestStartMs = 0;
  startedMs = Date.now();
  /** @type {LoopDisk | undefined} */
  disk;
  /** @type {import('./power-site.mjs').Site | undefined} */
  site;

  /** @param {import('./power-plan.mjs').PowerPlan} plan @param {PowerOptions} options */
  constructor(plan, options) {
    this.plan = plan;
    this.options = options;
    const { directory } = options;
    this.trace = join(directory, 'trace');
    this.records = join(directory, 'records');
    this.states = join(directory, 'states');
    for (const path of [this.records, this.states]) mkdirSync(path);
    writeFileSync(join(directory, 'plan.json'), `${JSON.stringify(plan, null, 2)}\n`);
    this.random = new Random(plan.seed);
    if (options.device) this.disk = new LoopDisk(directory);
    this.journal = join(this.disk?.path ?? directory, 'journal');
  }

  /** @returns {Promise<PowerResult>} */
  async run() {
    const telling = setInterval(() => this.tellProgress(), TELL_MS);
    try {
      this.site = await this.makeSite();
      for (const cut of this.plan.cuts) await this.cutOnce(this.site, cut);
      await this.start(this.site);
      await this.unlessWrong(pause(LAST_LOAD_MS));
      await this.unlessWrong(this.site.finish());
    } catch (error) {
      if (!(error instanceof CheckError)) throw error;
      this.complaints.push(error.message);
    } finally {
      clearInterval(telling);
      await this.site?.destroy();
    }
    try {
      return await this.judge();
    } finally {
      this.endDisk();
    }
  }

  /** @returns {Promise<import('./power-site.mjs').Site>} */
  async makeSite() {
    const { memory } = this.plan;
    const { directory, clients } = this.options;
    const options = {
      name: `power-${process.pid}-${this.plan.tree}`,
      cluster: this.clusterOptions(),
      log: join(directory, 'cluster.log'),
      fingerprints: this.states,
      clients,
      settingsOf: (/** @type {string} */ name) => this.settingsOf(name),
      complain: (/** @type {string} */ text) => this.complain(text),
    };
    if (memory !== 'machines') return new LocalSite(options);
    const { MachinesSite } = await import('./power-machines.mjs');
    return new MachinesSite({ ...options, directory });
  }

  clusterOptions() {
    const { memory, tree, durability, order, snapshotBytes } = this.plan;
    return {
      groups: GROUPS,
      replicas: REPLICAS,
      tree,
      order,
      durability,
      journal: this.journal,
      snapshotBytes,
      memory,
      hosts: HOSTS,
      // JSON has no URLs.
      service: new URL('./bank.mjs', import.meta.url).href,
      payloadBytesMax: PAYLOAD_BYTES_MAX,
      clients: this.options.clients + 1,
      callsMax: CALLS_MAX,
      trace: this.trace,
    };
  }

  /** @param {string} name @returns {import('./load.mjs').ClientSettings} */
  settingsOf(name) {
    return {
      name,
      seed: this.random.next(),
      groups: GROUPS,
      window: WINDOW,
      rate: MESSAGES_PER_SECOND / this.options.clients,
      records: join(this.records, name),
      auditsFirst: true,
    };
  }

  /** Starts everything, and cuts the power. @param {import('./power-site.mjs').Site} site @param {import('./power-plan.mjs').Cut} cut */
  async cutOnce(site, cut) {
    const when =
      cut.during === 'load' ? await this.cutLoad(site, cut) : await this.cutStart(site, cut);
    this.counts[cut.during]++;
    this.log(`power cut ${this.counts.load + this.counts.start}, ${when}`);
    if (this.disk === undefined) {
      const torn = tearFiles(this.journal, new Random(cut.seed));
      for (const text of torn) this.log(text);
    } else {
      this.disk.cutPower();
    }
    this.readAcknowledged();
  }

  /** @param {import('./power-site.mjs').Site} site @param {import('./power-plan.mjs').LoadCut} cut @returns when it was cut, in words */
  async cutLoad(site, { afterMs }) {
    await this.start(site);
    await this.unlessWrong(pause(afterMs));
    await site.cut();
    return `after ${afterMs} ms of load`;
  }

  /** @param {import('./power-site.mjs').Site} site @param {import('./power-plan.mjs').StartCut} cut @returns when it was cut, in words */
  async cutStart(site, { stage, percent }) {
    const watch = this.watchStart(site);
    const afterMs = Math.round((percent / 100) * (this.durations.get(stage) ?? 0));
    const starting = site.start();
    try {
      await this.unlessWrong(Promise.race([starting, watch.reaches(stage, afterMs)]));
      await site.cut();
    } finally {
      watch.end();
    }
    const found = watch.stage;
    this.stages[found]++;
    this.checkAudits(await starting);
    return `while the cluster started, ${found}; meant for ${afterMs} ms after ${stage}`;
  }

  /** @param {import('./power-site.mjs').Site} site */
  async start(site) {
    const startedMs = Date.now();
    const watch = this.watchStart(site);
    try {
      this.checkAudits(await this.unlessWrong(site.start()));
    } finally {
      watch.end();
    }
    const endedMs = Date.now();
    for (const [stage, ms] of watch.durations(endedMs)) this.durations.set(stage, ms);
    this.slowestStartMs = Math.max(this.slowestStartMs, endedMs - startedMs);
  }

  /** @param {import('./power-site.mjs').Site} site */
  watchStart(site) {
    const isFetching = () => site.isFetching();
    const watch = new StartWatch(this.journal, { hosts: HOSTS, groups: GROUPS, isFetching });
    void watch.watch();
    return watch;
  }

  /** After a recovery, nothing is lost. @param {import('./load.mjs').Audit[]} audits */
  checkAudits(audits) {
    for (const { total, places } of audits) {
      if (total !== RIGHT_TOTAL) {
        this.complain(`after a recovery the bank's total is ${total}, not ${RIGHT_TOTAL}`);
      }
      if (this.plan.durability !== 'always') continue;
      for (const [group, place] of places) {
        const last = this.acknowledged[group];
        if (place > last) continue;
        this.complain(
          `after a recovery group ${group} has ${place - 1} deliveries, but number ${last} was acknowledged before`,
        );
      }
    }
  }

  /** Reads what the clients that were killed have recorded. */
  readAcknowledged() {
    for (const { replies } of readRecords(this.records, this.read)) {
      for (const { group, place } of replies) {
        this.acknowledged[group] = Math.max(this.acknowledged[group], place);
      }
    }
  }

  /** Waits for a promise, but gives up as soon as a check fails or the run is interrupted. @template T @param {Promise<T>} promise */
  async unlessWrong(promise) {
    let isOver = false;
    const watch = async () => {
      while (!isOver) {
        this.options.signal.throwIfAborted();
        if (this.complaints.length > 0) throw new CheckError('the round was aborted');
        await pause(LOOK_MS);
      }
    };
    const watching = watch();
    try {
      return await Promise.race([promise, watching.then(() => promise)]);
    } finally {
      isOver = true;
      promise.catch(() => undefined);
    }
  }

  /** @param {string} text */
  log(text) {
    const line = `${new Date().toISOString()} ${text}\n`;
    appendFileSync(join(this.options.directory, 'events.log'), line);
  }

  /** @param {string} text */
  complain(text) {
    this.log(`FAILED: ${text}`);
    this.complaints.push(text);
  }

  tellProgress() {
    const { load, start } = this.counts;
    this.options.tell(`${load + start} of ${this.plan.cuts.length} power cuts`);
  }

  /** Copies the journals off the device if they are evidence. */
  endDisk() {
    if (this.disk === undefined) return;
    if (this.complaints.length > 0) {
      cpSync(this.journal, join(this.options.directory, 'journal'), { recursive: true });
    }
    this.disk.close();
  }

  /** A history that can't be read fails the round. */
  async readTrace() {
    try {
      return await readHistory(this.trace);
    } catch (error) {
      if (!(error instanceof MalformedTraceError)) throw error;
      this.complain(`the trace can't be read: ${error.message}`);
      return new History();
    }
  }

  /** @returns {Promise<PowerResult>} */
  async judge() {
    const { plan, options, complaints, counts } = this;
    const seconds = Math.round((Date.now() - this.startedMs) / 1000);
    options.tell('judging');
    const history = await this.readTrace();
    const records = readRecords(this.records);
    const isComplete = complaints.length === 0;
    complaints.push(
      ...checkVerdict(history, isComplete),
      ...checkPromise(history, plan.order, plan.durability),
      ...checkAudits(records, GROUPS),
    );
    if (isComplete) {
      complaints.push(...checkFingerprints(readFingerprints(this.states, GROUPS, REPLICAS)));
      if (plan.durability === 'always') {
        complaints.push(
          ...checkAcknowledged(history, records),
          ...checkReplies(history, records),
          ...checkOrderedTime(records, GROUPS),
        );
      }
      // A cut while the cluster starts may come before it has begun an era.
      if (history.counts.eras <= counts.load) {
        complaints.push(
          `the trace has ${history.counts.eras} eras after ${counts.load} power cuts`,
        );
      }
    }
    complaints.push(...(this.site?.remains() ?? []));
    const { messages, deliveries, eras } = history.counts;
    const result = {
      tree: plan.tree,
      cuts: counts.load,
      startCuts: counts.start,
      stages: this.stages,
      eras,
      messages,
      acknowledged: records.length,
      deliveries,
      slowestStartMs: this.slowestStartMs,
      seconds,
      complaints,
    };
    writeFileSync(join(options.directory, 'result.json'), `${JSON.stringify(result, null, 2)}\n`);
    return result;
  }
}
