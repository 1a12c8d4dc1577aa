/**
 * A cluster of threads or processes on one machine, with its clients, that may lose its power at any time. Called by
 * `power-round.mjs`. `power-machines.mjs` is the same for a cluster across machines.
 *
 * All processes of the cluster are in one process group, so that one signal ends them at once. Their memory is removed
 * afterwards: nothing but the journals and the records of the run survives.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { hostProcesses } from 'tram-multicast/internal/hosting/host-processes.js';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { arenaPath, removeArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { CheckError, Clients, until } from './clients.mjs';
import { GROUPS } from './plan.mjs';
import { hasEnded, membersOf, signal } from './processes.mjs';

const SCRIPT = fileURLToPath(new URL('./power-starter.mjs', import.meta.url));
const START_MS = 60_000;
const FINISH_MS = 60_000;
const DEATH_MS = 30_000;
const LOOK_MS = 5;

/**
 * @typedef {object} SiteOptions
 * @property {string} name           of the cluster
 * @property {Record<string, any>} cluster  its options, without its name
 * @property {string} log            the file for its log
 * @property {string} fingerprints   the directory for fingerprints
 * @property {number} clients
 * @property {(name: string) => import('./load.mjs').ClientSettings} settingsOf  a client's
 * @property {(complaint: string) => void} complain
 */

/**
 * Everything that a power cut ends.
 * @typedef {object} Site
 * @property {() => Promise<import('./load.mjs').Audit[]>} start  the cluster and its load; returns what the first audits found
 * @property {() => Promise<void>} cut     the power, at any time
 * @property {() => boolean} isFetching    has a host begun to fetch what its journal lacks, since the start?
 * @property {() => Promise<void>} finish  the load, in order, and close the cluster
 * @property {() => Promise<void>} destroy
 * @property {() => string[]} remains      what is left, in words
 */

/** @implements {Site} */
export class LocalSite {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  starter;
  /** @type {Clients | undefined} */
  clients;
  /** Of all clients that were ever started. */
  started = 0;
  power = { isOff: true };
  isFinished = false;

  /** @param {SiteOptions} options */
  constructor(options) {
    this.options = options;
    this.arena = arenaPath(options.name);
  }

  get hasThreads() {
    return this.options.cluster.memory === 'threads';
  }

  async start() {
    const { name, cluster, log, fingerprints, clients, complain } = this.options;
    const settingsOf = () => this.settingsOf();
    const settings = {
      cluster: { ...cluster, name },
      log,
      fingerprints,
      clients: this.hasThreads ? Array.from({ length: clients }, settingsOf) : [],
    };
    /** Of this start. What happens after its end is no concern of the next one. */
    const power = { isOff: false };
    this.power = power;
    let printed = '';
    const starter = fork(SCRIPT, [JSON.stringify(settings)], {
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.starter = starter;
    /** @type {any} */
    let started;
    starter.stderr?.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    starter.on('message', (/** @type {any} */ message) => {
      if (message.what === 'started') started = message;
      else if (message.what === 'finished') this.isFinished = true;
      else if (!power.isOff) complain(message.text);
    });
    starter.on('close', (code, signal) => {
      if (!power.isOff) complain(`the cluster ended by itself (${signal ?? code}): ${printed}`);
    });
    await this.unlessCut(() => started !== undefined, START_MS, 'the cluster starts');
    if (power.isOff) return [];
    return this.hasThreads ? started.audits : await this.startClients(started.address);
  }

  /** A condition that comes true unless the power is cut. @param {() => boolean} isSo @param {number} timeoutMs @param {string} what */
  async unlessCut(isSo, timeoutMs, what) {
    const { power, starter } = this;
    await until(() => power.isOff || hasExited(starter) || isSo(), timeoutMs, what);
    if (!isSo() && !power.isOff) throw new CheckError(`did not happen: ${what}`);
  }

  settingsOf() {
    return this.options.settingsOf(`k${this.started++}`);
  }

  /** @param {string} address */
  async startClients(address) {
    const { clients: count, complain } = this.options;
    const { power } = this;
    const clients = new Clients(
      address,
      () => this.settingsOf(),
      (text) => !power.isOff && complain(text),
    );
    this.clients = clients;
    const started = await Promise.all(Array.from({ length: count }, () => clients.start()));
    return started.flatMap(({ audit }) => audit ?? []);
  }

  async cut() {
    const { starter, clients, arena } = this;
    this.power.isOff = true;
    const group = starter?.pid;
    if (group !== undefined) signal(-group, 'SIGKILL');
    await clients?.destroy();
    const areOver = () => group === undefined || membersOf(group).every(hasEnded);
    await until(areOver, DEATH_MS, 'all processes of the cluster end');
    removeArenaFile(arena);
  }

  /** Hosts on one machine read each other's journals. */
  isFetching() {
    return false;
  }

  async finish() {
    const { clients, starter, options } = this;
    await clients?.finish(FINISH_MS);
    await clients?.takeFingerprints(GROUPS, options.fingerprints, FINISH_MS);
    starter?.send('finish');
    await this.unlessCut(() => this.isFinished, FINISH_MS, 'the cluster closes');
    this.power.isOff = true;
    // It may hang at its end: see `end-with-parent.ts`.
    starter?.kill('SIGKILL');
    while (!hasExited(starter)) await pause(LOOK_MS);
  }

  async destroy() {
    if (!this.power.isOff) await this.cut();
  }

  remains() {
    return hostProcesses(this.arena).map(({ pid }) => `host process ${pid} is left`);
  }
}

/** @param {import('node:child_process').ChildProcess | undefined} child */
function hasExited(child) {
  return child === undefined || child.exitCode !== null || child.signalCode !== null;
}
