/**
 * One round of chaos: a cluster of processes under load, the faults of a plan, and the judgement. Called by `main.mjs`, which
 * keeps the files of a round that fails. `machines-round.mjs` and `unauthenticated-round.mjs` derive rounds across machines.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster } from 'tram-multicast';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { Random } from '../dist/sim/random.js';
import { CheckError, Clients, untilCaughtUp } from './clients.mjs';
import { Faults } from './faults.mjs';
import { GROUPS, REPLICAS } from './plan.mjs';
import { nowUs } from './processes.mjs';
import {
  checkAcknowledged,
  checkAudits,
  checkFingerprints,
  checkPromise,
  checkRemains,
  checkVerdict,
  longestSilenceMs,
  NO_FINGERPRINT,
  readFingerprints,
  readHistory,
  readRecords,
} from './verify.mjs';
import {
  checkAbandoned,
  checkAnswers,
  checkOrderedTime,
  checkReplies,
  countDeferred,
  mostBehindMs,
} from './verify-replies.mjs';

/**
 * @typedef {object} RoundOptions
 * @property {string} directory  for all files of the round
 * @property {number} seconds    least duration of the load
 * @property {number} clients
 * @property {number} unauthenticated  for how many seconds unauthenticated peers call, in rounds that have them
 * @property {AbortSignal} signal
 * @property {(text: string) => void} tell  progress
 */

/**
 * @typedef {object} RoundResult
 * @property {string} tree
 * @property {number} hosts
 * @property {import('./plan.mjs').Order} order
 * @property {Record<string, number>} faults  by kind
 * @property {number} messages
 * @property {number} deliveries
 * @property {number} acknowledged
 * @property {number} audits
 * @property {number} deferred          deferred replies to acknowledged messages
 * @property {number} byTicks           of these, given because of a tick
 * @property {number} givenUp           messages that living clients gave up
 * @property {number} abandoned         messages that groups abandoned, counted by each group
 * @property {number} abandonedOfKilled of these, messages of clients that were killed
 * @property {number} behindMs          the most by which ordered time was behind the clock
 * @property {number} leaderChanges
 * @property {number} snapshots         restored by replicas
 * @property {number} longestSilenceMs  the longest time in which some group answered no message
 * @property {number} slowestRejoinMs   from the start of a host until its replicas are members again
 * @property {number} seconds           of load
 * @property {string[]} complaints      failed checks, in words
 */

const MESSAGES_PER_SECOND = 1500;
const WINDOW = 16;
const WAIT_PERCENT = 20;
export const CALLS_MAX = 32;
export const PAYLOAD_BYTES_MAX = 512;
/** Less than the default, so that scheduling delays of the machine cause leader changes as well. */
const SUSPECT_AFTER_MS = 100;
const AFTERMATH_MS = 500;
export const ANSWER_MS = 60_000;
const TELL_MS = 5000;

/**
 * @param {Round} round
 * @returns {Promise<RoundResult>}
 */
export async function runRound(round) {
  try {
    await round.run();
  } catch (error) {
    if (!(error instanceof CheckError)) throw error;
    round.complaints.push(error.message);
    round.keepEvidence();
  } finally {
    await round.clearUp();
  }
  return round.judge();
}

export class Round {
  /** @type {string[]} */
  complaints = [];
  /** @type {any} */
  cluster;
  /** @type {Clients | undefined} */
  clients;
  /** @type {Faults | undefined} */
  faults;
  messagesPerSecond = MESSAGES_PER_SECOND;
  /** How long groups wait for a client that can't be answered: until it gives up or has ended. @type {number | null} */
  patienceMs = null;
  loadStartedMs = 0;
  loadEndedMs = 0;
  loadEndedUs = 0;

  /**
   * @param {import('./plan.mjs').RoundPlan} plan
   * @param {RoundOptions} options
   */
  constructor(plan, options) {
    this.plan = plan;
    this.options = options;
    const { directory } = options;
    this.trace = join(directory, 'trace');
    this.records = join(directory, 'records');
    this.givenUp = join(directory, 'given-up');
    this.states = join(directory, 'states');
    this.logs = join(directory, 'logs');
    for (const path of [this.records, this.givenUp, this.states, this.logs]) {
      mkdirSync(path, { recursive: true });
    }
    writeFileSync(join(directory, 'plan.json'), `${JSON.stringify(plan, null, 2)}\n`);
    this.random = new Random(plan.seed);
    /** @type {(message: any) => void} */
    this.onHost = ({ what, host, why }) => {
      if (what === 'ended' && !this.faults?.struck.has(host)) {
        this.complain(`host ${host} ended unasked: ${why}`);
      }
    };
  }

  /** @param {string} text */
  log(text) {
    const atMs = this.loadStartedMs === 0 ? 0 : Date.now() - this.loadStartedMs;
    const line = `${new Date().toISOString()} ${String(atMs).padStart(6)} ms  ${text}\n`;
    appendFileSync(join(this.options.directory, 'events.log'), line);
  }

  /** Records a failure that no step of the round waits for. @param {string} text */
  complain(text) {
    this.log(`FAILED: ${text}`);
    this.complaints.push(text);
  }

  /** Waits for a promise, but gives up as soon as a check fails or the run is interrupted. @template T @param {Promise<T>} promise */
  async unlessWrong(promise) {
    let isOver = false;
    const watch = async () => {
      while (!isOver) {
        this.options.signal.throwIfAborted();
        if (this.complaints.length > 0) throw new CheckError('the round was aborted');
        await pause(10);
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

  async run() {
    const { options } = this;
    const cluster = await this.start();
    const clients = this.startClients(String(cluster.address));
    const faults = this.makeFaults(cluster, clients);
    this.faults = faults;
    await this.unlessWrong(
      Promise.all(Array.from({ length: options.clients }, () => clients.start())),
    );
    this.loadStartedMs = Date.now();
    const telling = setInterval(() => this.tellProgress(), TELL_MS);
    try {
      await this.unlessWrong(faults.run(this.plan));
      const restMs = this.loadStartedMs + options.seconds * 1000 - Date.now();
      await this.unlessWrong(pause(Math.max(AFTERMATH_MS, restMs)));
      this.loadEndedMs = Date.now();
      this.loadEndedUs = nowUs();
      this.log('load ends');
      if (this.patienceMs === null) await this.killSome(clients);
      await this.unlessWrong(clients.finish(ANSWER_MS));
      await this.unlessWrong(untilCaughtUp(cluster));
      await this.unlessWrong(clients.takeFingerprints(GROUPS, this.states, ANSWER_MS));
    } finally {
      clearInterval(telling);
    }
    await this.unlessWrong(untilCaughtUp(cluster));
    await this.close(cluster);
  }

  /**
   * Kills one or two clients whose messages wait. The client that takes fingerprints gets one of their slots at most. From
   * the other one, groups can't learn that a client has ended. @param {Clients} clients
   */
  async killSome(clients) {
    for (const client of clients.running.slice(1, 3)) {
      await clients.kill(client);
      this.log(`${client.name} was killed`);
    }
  }

  /** @param {Cluster} cluster @param {Clients} clients */
  makeFaults(cluster, clients) {
    return new Faults(cluster, clients, (text) => this.log(text));
  }

  /** @param {Cluster} cluster */
  async close(cluster) {
    await cluster.close();
  }

  async start() {
    const { tree, hosts, order, rings } = this.plan;
    subscribe('tram:host', this.onHost);
    const { clients, signal } = this.options;
    this.cluster = await Cluster.start({
      groups: GROUPS,
      replicas: REPLICAS,
      tree,
      hosts,
      order,
      ...rings,
      payloadBytesMax: PAYLOAD_BYTES_MAX,
      suspectAfterMs: SUSPECT_AFTER_MS,
      memory: 'processes',
      name: `chaos-${process.pid}-${tree}-${hosts}`,
      service: new URL('./bank.mjs', import.meta.url),
      // One more than run at a time, so that new clients reuse the slots of killed ones.
      clients: clients + 1,
      callsMax: CALLS_MAX,
      trace: this.trace,
      logDirectory: this.logs,
      // A host that ends unasked is a failure.
      restartHosts: false,
      logger: {
        info: (text) => this.log(text),
        warn: (text) => this.log(text),
        error: (text) => this.complain(text),
      },
      signal,
    });
    return this.cluster;
  }

  /** @param {string} address */
  startClients(address) {
    const { clients } = this.options;
    this.clients = new Clients(
      address,
      (name) => ({
        name,
        seed: this.random.next(),
        groups: GROUPS,
        window: WINDOW,
        rate: this.messagesPerSecond / clients,
        records: join(this.records, name),
        givenUp: join(this.givenUp, name),
        waits: { percent: WAIT_PERCENT, patienceMs: this.patienceMs },
      }),
      (text) => this.complain(text),
      this.startClient,
    );
    return this.clients;
  }

  /** Starts clients elsewhere than on this machine. @returns {import('./clients.mjs').Starter | undefined} */
  get startClient() {
    return undefined;
  }

  tellProgress() {
    const { cluster, faults, plan, options } = this;
    if (cluster === undefined || faults === undefined) return;
    const planned = [...plan.hostLanes, plan.leadLane, plan.clientLane].flat().length;
    options.tell(`${faults.total} of ${planned} faults, ${this.progress(cluster)}`);
  }

  /** @param {Cluster} cluster */
  progress(cluster) {
    return `${cluster.status().answered} messages answered`;
  }

  /** Copies status and memory of the cluster before it is destroyed. */
  keepEvidence() {
    const { cluster, options } = this;
    if (cluster === undefined) return;
    const status = JSON.stringify(cluster.status(), null, 2);
    writeFileSync(join(options.directory, 'status.json'), `${status}\n`);
    for (const { path, name } of this.memoryFiles()) {
      if (existsSync(path)) copyFileSync(path, join(options.directory, name));
    }
  }

  /** The files of the cluster's memory, and the names of their copies. @returns {{ path: string, name: string }[]} */
  memoryFiles() {
    return [{ path: String(this.cluster.address), name: 'memory' }];
  }

  async clearUp() {
    const { cluster, clients, faults } = this;
    if (faults !== undefined) faults.isOver = true;
    await clients?.destroy();
    await cluster?.destroy();
    unsubscribe('tram:host', this.onHost);
  }

  /** Processes and files that the round should have removed. @returns {string[]} */
  remains() {
    return checkRemains(String(this.cluster?.address), this.clients?.pids ?? []);
  }

  /** @returns {Promise<RoundResult>} */
  async judge() {
    const { options, plan, complaints } = this;
    const { directory } = options;
    if (this.loadEndedMs === 0) this.loadEndedMs = Date.now();
    options.tell('judging');
    const history = await readHistory(this.trace);
    const records = readRecords(this.records);
    const givenUp = readRecords(this.givenUp);
    const states = readFingerprints(this.states, GROUPS, REPLICAS);
    const isComplete = complaints.length === 0;
    complaints.push(
      ...checkVerdict(history, isComplete),
      ...checkPromise(history, plan.order),
      ...checkAudits(records, GROUPS),
      ...checkOrderedTime(records, GROUPS),
    );
    const killed = this.clients?.killed ?? [];
    // A replica that has written nothing is reported by `checkFingerprints`.
    const fingerprints = isComplete
      ? states.flatMap(([first]) => (first === NO_FINGERPRINT ? [] : first))
      : [];
    if (isComplete) {
      complaints.push(
        ...checkAcknowledged(history, records),
        ...checkFingerprints(states),
        ...checkReplies(history, records),
        ...checkAnswers(this.trace, this.clients?.givenUpByFinished ?? new Map()),
        ...checkAbandoned(fingerprints, records, givenUp, killed),
      );
    }
    complaints.push(...this.remains());
    const { messages, deliveries, leaders, restores } = history.counts;
    const result = {
      tree: plan.tree,
      hosts: plan.hosts,
      order: plan.order,
      faults: Object.fromEntries(this.faults?.counts ?? []),
      messages,
      deliveries,
      acknowledged: records.length,
      audits: records.filter(({ total }) => total !== undefined).length,
      ...countDeferred(fingerprints, records, killed),
      givenUp: givenUp.length,
      behindMs: mostBehindMs(records),
      // The first leader of a group is not a change.
      leaderChanges: leaders - GROUPS,
      snapshots: restores,
      longestSilenceMs: longestSilenceMs(records, GROUPS, this.loadEndedUs),
      slowestRejoinMs: Math.max(0, ...(this.faults?.rejoinedMs ?? [])),
      seconds: Math.round((this.loadEndedMs - this.loadStartedMs) / 1000),
      complaints,
    };
    writeFileSync(join(directory, 'result.json'), `${JSON.stringify(result, null, 2)}\n`);
    return result;
  }
}
